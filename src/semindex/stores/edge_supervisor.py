"""Keeps a worker of the embedded store alive, and carries calls through its deaths.

Owns the restart with growing delays, the retry of calls that were under way, and their deadline. Every operation is
idempotent, which is why a call that may have been done is done again.
"""

import logging
from collections import deque
from collections.abc import Mapping

import trio
from attrs import frozen

from semindex.model.errors import StoreUnavailable
from semindex.stores.edge_connection import Connection, WorkerLost, start_worker
from semindex.stores.edge_protocol import Frame, Settings

logger = logging.getLogger(__name__)

CALL_DEADLINE = 30.0
"""Seconds for one call with its retry; the slowest seen took three, on a loaded machine."""

FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0
"""Seconds between a death and the next start: the first, and the limit of its doubling."""

DEATHS_TOLERATED = 5
DEATH_WINDOW = 60.0
"""From so many deaths within so many seconds on, calls that find no worker fail at once instead of waiting for one."""

TRIES = 2


@frozen
class WorkerHealth:
    """State of the worker now, which is how tests find the process that they end."""

    pid: int | None
    """Process id of the worker; None while there is none that can be used."""
    restarts: int
    """Deaths since the store was opened."""
    last_error: str | None
    """Why the worker last died."""


class WorkerSupervisor:
    """At most one worker at a time, started again whenever it dies."""

    def __init__(self, settings: Settings, *, call_deadline: float = CALL_DEADLINE) -> None:
        """Start nothing: :meth:`run` does."""
        self._settings = settings
        self._call_deadline = call_deadline
        self._connection: Connection | None = None
        self._changed = trio.Event()
        self._closed = False
        self._deaths: deque[float] = deque()
        self._restarts = 0
        self._last_error: str | None = None

    @property
    def health(self) -> WorkerHealth:
        """Return a snapshot."""
        pid = None if self._connection is None else self._connection.pid
        return WorkerHealth(pid, self._restarts, self._last_error)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a worker alive until cancelled; it then closes its collections. Started: calls are taken, and wait."""
        task_status.started()
        try:
            while True:
                try:
                    cause = await self._serve()
                except OSError as error:
                    cause = f"it could not be started: {error}"
                self._bury(cause)
                await trio.sleep(min(FIRST_DELAY * 2 ** (len(self._deaths) - 1), LONGEST_DELAY))
        finally:
            self._closed = True
            self._set_connection(None)

    async def call(self, request: Mapping[str, object], blob: bytes) -> list[Frame]:
        """Have the worker do something and return the frames of its reply. Raises StoreUnavailable.

        A worker that has said nothing at all during the whole time that a call may take hangs, and is killed.
        """
        began = trio.current_time()
        try:
            with trio.fail_after(self._call_deadline):
                return await self._ask(request, blob)
        except trio.TooSlowError:
            if self._connection is not None and self._connection.last_heard <= began:
                self._connection.kill(f"it hung for {self._call_deadline:g} s in {request['operation']}")
            message = f"The embedded vector store did not answer within {self._call_deadline:g} s; try again."
            raise StoreUnavailable(message) from None

    async def _ask(self, request: object, blob: bytes) -> list[Frame]:
        tries = 0
        while True:
            connection = await self._connected()
            try:
                return await connection.ask(request, blob)
            except WorkerLost:
                tries += 1
                if tries == TRIES:
                    message = f"The embedded vector store failed twice during one call ({self._last_error})."
                    raise StoreUnavailable(message) from None

    async def _connected(self) -> Connection:
        """Return a worker that is ready, or wait for one."""
        while self._connection is None:
            if self._closed:
                raise StoreUnavailable("The embedded vector store is closed.")
            if self._recent_deaths() >= DEATHS_TOLERATED:
                raise StoreUnavailable(
                    f"The embedded vector store's worker died {len(self._deaths)} times "
                    f"in {DEATH_WINDOW:.0f} s ({self._last_error}); it is being restarted."
                )
            await self._changed.wait()
        return self._connection

    async def _serve(self) -> str:
        """Run one worker until it dies; return why it did. Raises OSError if none can be started."""
        async with start_worker(self._settings) as process:
            connection = Connection(process, self._set_connection)
            await connection.run()
        return connection.cause_of_death()

    def _set_connection(self, connection: Connection | None) -> None:
        self._connection = connection
        self._changed.set()
        self._changed = trio.Event()

    def _bury(self, cause: str) -> None:
        self._restarts += 1
        self._last_error = cause
        self._deaths.append(trio.current_time())
        self._recent_deaths()
        logger.warning("embedded store: the worker died, %s; starting another", cause)
        self._set_connection(None)

    def _recent_deaths(self) -> int:
        while self._deaths and self._deaths[0] < trio.current_time() - DEATH_WINDOW:
            self._deaths.popleft()
        return len(self._deaths)
