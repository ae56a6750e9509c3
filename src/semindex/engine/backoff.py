"""How long to wait between two tries of what has failed."""


class Backoff:
    """Pauses in seconds: doubling from the first to the longest, until something has worked."""

    def __init__(self, first: float, longest: float) -> None:
        self._longest = longest
        self._first = min(first, longest)
        self._next = self._first

    def next(self) -> float:
        """Return how long to wait now."""
        pause, self._next = self._next, min(2 * self._next, self._longest)
        return pause

    def reset(self) -> None:
        """Begin with the first pause again, because it has worked."""
        self._next = self._first
