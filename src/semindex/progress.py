"""Progress of an index on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from semindex.terminal import printable

LINES = 5
"""Lines of progress for a whole run where there is no terminal."""


class IndexProgress:
    """Shows how far a run is; use it as a context manager, which leaves the terminal as it was."""

    def __init__(self, *, is_ticking: bool = False) -> None:
        """If it is ticking, a thread keeps the elapsed time going between two calls."""
        console = Console(stderr=True)
        self._is_live = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=is_ticking,
            transient=True,
        )
        self._task: TaskID | None = None
        self._told = -1
        self._remark = ""

    def __enter__(self) -> Self:
        if self._is_live:
            self._progress.start()
            self._task = self._progress.add_task("", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._progress.stop()

    def show(self, processed: int, total: int, activity: str) -> None:
        """Show the files that are done and those there are to do (0: not known yet), and in a few words what is going on."""
        if self._task is not None:
            self._progress.update(
                self._task,
                description=escape(printable(activity)),
                total=total or None,
                completed=processed,
                refresh=True,
            )
        elif total and (step := LINES * processed // total) > self._told:
            self._told = step
            _write(f"indexed {processed} of {total} files")

    def remark(self, sentence: str) -> None:
        """Show a sentence that explains why nothing goes on; where there is no terminal, a repetition says nothing."""
        if self._task is not None:
            self._progress.update(self._task, description=escape(printable(sentence)), total=None, refresh=True)
        elif sentence != self._remark:
            _write(printable(sentence))
        self._remark = sentence


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
