"""A counter that can be waited on: how the engine says that something changed, to nobody in particular."""

import trio


class Revision:
    """Counts changes. Bumping never waits; many bumps wake a waiter once."""

    def __init__(self, whole: "Revision | None" = None) -> None:
        """``whole`` is the counter of what this is a part of: it counts every change of the part, too."""
        self.value = 0
        self._whole = whole
        self._bumps = trio.lowlevel.ParkingLot()

    def bump(self) -> None:
        """Note a change."""
        self.value += 1
        self._bumps.unpark_all()
        if self._whole is not None:
            self._whole.bump()

    async def beyond(self, seen: int) -> int:
        """Wait until the counter exceeds ``seen``; return it."""
        while self.value <= seen:
            await self._bumps.park()
        return self.value
