"""Progress of an index on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from semindex.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINES = 5
"""Lines of progress for a whole run where there is no terminal."""


class IndexProgress:
    """Shows how far a run is; use it as a context manager, which leaves the terminal as it was."""

    def __init__(self, *, is_ticking: bool = False) -> None:
        """If it is ticking, a thread keeps the elapsed time going between two calls."""
        self._is_ticking = is_ticking
        self._bar: tuple[Progress, TaskID] | None = None
        self._told = -1
        self._remark = ""

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            progress = _progress(self._is_ticking)
            self._bar = progress, progress.add_task("", total=None)
            try:
                progress.start()
            except BaseException:
                # An interrupt that comes just now must not leave the cursor hidden.
                progress.stop()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def show(self, processed: int, total: int, activity: str) -> None:
        """Show the files that are done and those to do (0: not known yet), and in a few words what is going on."""
        if self._bar is not None:
            self._draw(processed, total, activity)
        elif total and (step := LINES * processed // total) > self._told:
            self._told = step
            _write(f"indexed {processed} of {total} files")

    def remark(self, sentence: str) -> None:
        """Show a sentence that explains why nothing goes on; where there is no terminal, a repetition says nothing."""
        if self._bar is not None:
            self._draw(0, 0, sentence)
        elif sentence != self._remark:
            _write(printable(sentence))
        self._remark = sentence

    def _draw(self, processed: int, total: int, activity: str) -> None:
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, description=printable(activity), total=total or None, completed=processed)
            progress.refresh()


def _progress(is_ticking: bool) -> "Progress":
    # Slow to import, and of no use to scripts.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=is_ticking,
        transient=True,
    )


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
