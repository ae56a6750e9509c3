"""SIGKILL at named points: right after a call has changed what is stored, before its caller goes on.

As a program, ``python -m semindex.testing.killpoints serve …`` is ``semindex``, which kills itself at the point that
the file named by the variable below holds, the first time that it comes there.
"""

import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semindex.cli import main
from semindex.state.ledger import SqliteLedger
from semindex.state.registrations import SqliteRegistrations
from semindex.stores.edge import EdgeVectorStore

POINTS: dict[str, tuple[type, str]] = {
    "upsert → ledger": (EdgeVectorStore, "upsert"),
    "delete → upsert": (EdgeVectorStore, "delete_files"),
    "ledger → next": (SqliteLedger, "apply"),
    "releasing → stop": (SqliteRegistrations, "set_lifecycle"),
    "close → drop": (EdgeVectorStore, "close"),
    "drop → ledger": (EdgeVectorStore, "drop"),
    "ledger → forget": (SqliteLedger, "clear"),
    "forget → receipt": (SqliteRegistrations, "delete"),
}
"""By name, the call after which the process is killed: those of indexing, then a release's steps in their order."""
VARIABLE = "SEMINDEX_KILL_POINT"


def kill_at(point: str, is_due: Callable[[], bool]) -> None:
    """From now on ask, each time that this process comes to the point, whether to be killed there."""
    owner, name = POINTS[point]
    call = getattr(owner, name)

    @functools.wraps(call)
    async def call_and_be_killed(*arguments: Any, **options: Any) -> Any:
        result = await call(*arguments, **options)
        if is_due():
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, call_and_be_killed)


def _is_named(point: str, file: Path) -> bool:
    return file.exists() and file.read_text() == point


if __name__ == "__main__":
    for each in POINTS:
        kill_at(each, functools.partial(_is_named, each, Path(os.environ[VARIABLE])))
    sys.exit(main())
