"""The live table of ``indexctl watch`` on a terminal."""

from contextlib import AbstractContextManager
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar

from indexctl.client import Json
from indexctl.views import plain, progress, state, table
from semindex.model.status import State

BAR_WIDTH = 20


class LiveWatcher(AbstractContextManager["LiveWatcher"]):
    """Keeps a table of all registrations in place; leaving it, by Ctrl-C or an error, leaves the last one behind."""

    def __init__(self) -> None:
        self._live = Live(console=Console(highlight=False), auto_refresh=False)
        self._rows: RenderableType = ""

    def __enter__(self) -> Self:
        try:
            self._live.start()
        except BaseException:
            # An interrupt that comes just now must not leave the cursor hidden.
            self._live.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: Json) -> None:
        """Draw the table anew."""
        rows = table("id", "state", "", "files", "")
        for each in status["registrations"]:
            rows.add_row(plain(each["id"]), state(each["state"]), _bar(each), progress(each), plain(each["message"]))
        self._rows = rows if status["registrations"] else plain("Nothing is registered.")
        self._draw(plain(f"{status['phase']}: {status['message']}", "dim"))

    def remark(self, sentence: str) -> None:
        """Say above the last table why there is no newer one."""
        self._draw(plain(sentence, "red"))

    def _draw(self, heading: RenderableType) -> None:
        self._live.update(Group(heading, self._rows), refresh=True)


def _bar(status: Json) -> ProgressBar:
    if status["state"] == State.INDEXED:
        return ProgressBar(total=1, completed=1, width=BAR_WIDTH)
    total = status.get("totalItems") or None
    is_looking = status["state"] == State.INDEXING and total is None
    return ProgressBar(total=total or 1, completed=status.get("processedItems", 0), width=BAR_WIDTH, pulse=is_looking)
