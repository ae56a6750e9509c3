"""Progress of an index on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from semindex.model.status import WorkspaceStatus

LINES = 5
"""Lines of progress for a whole run where there is no terminal."""


class IndexProgress:
    """Shows statuses as they come; use it as a context manager, which leaves the terminal as it was."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._is_live = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task: TaskID | None = None
        self._told = -1

    def __enter__(self) -> Self:
        if self._is_live:
            self._progress.start()
            self._task = self._progress.add_task("Looking for files", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._progress.stop()

    def show(self, status: WorkspaceStatus) -> None:
        """Show a status."""
        if self._task is not None:
            self._progress.update(
                self._task,
                description="Indexing" if status.total else "Looking for files",
                total=status.total or None,
                completed=status.processed,
                refresh=True,
            )
        elif status.total and (step := LINES * status.processed // status.total) > self._told:
            self._told = step
            sys.stderr.write(f"indexed {status.processed} of {status.total} files\n")
            sys.stderr.flush()
