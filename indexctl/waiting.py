"""Waiting without polling: following a route from change to change, until something has come about.

A request is held by the cell until something changes; what it answers is a fresh snapshot, never a remembered one. A
service that is restarted meanwhile is waited for.
"""

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from indexctl.client import ANSWER_TIMEOUT, Client, Json, route
from indexctl.errors import CommandError, Conflict, NotFound, TimedOut, Unavailable
from semindex.model.answers import CellPhase
from semindex.model.limits import MAX_HOLD
from semindex.model.registrations import Lifecycle, OperationState
from semindex.model.status import State
from semindex.progress import IndexProgress

PACE = 0.1
"""Seconds between two requests: a cell that is indexing changes all the time."""
LAST_WORD = 0.3
"""Seconds of the command's time that are kept for the last answer to arrive."""
RETRY_PAUSE = 0.3
"""Seconds before a service that did not answer is tried again."""
RESTART_PATIENCE = 30.0
"""Seconds for which a service may be away, as it is when it is restarted."""


def follow(
    client: Client,
    path: str,
    *,
    needs: Collection[str] = (),
    patience: float = RESTART_PATIENCE,
    on_outage: Callable[[str], None],
) -> Iterator[Json]:
    """Yield what a route answers now and after every change, until the time of the command is up.

    ``patience`` is for how many seconds the service may be away; ``on_outage`` is then told why, in a sentence, more
    than once. Raises CommandError and its kinds.
    """
    since: dict[str, str] = {}
    away_since: float | None = None
    while (left := client.remaining()) > 0:
        hold = max(0.0, min(MAX_HOLD, left - LAST_WORD))
        query = {"wait": f"{hold:.3f}", **since} if since else None
        try:
            answer = client.get(path, query, needs=(*needs, "revision"), timeout=hold + ANSWER_TIMEOUT)
        except Unavailable as error:
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since >= patience:
                raise
            on_outage(str(error))
            time.sleep(min(RETRY_PAUSE, client.remaining()))
            continue
        away_since, since = None, {"since": answer["revision"]}
        yield answer
        time.sleep(min(PACE, client.remaining()))


def until_indexed(client: Client, registration_id: str) -> Json:
    """Wait until a registration is indexed, and return its status.

    Raises CommandError with the reason if it is in error, or idle until somebody does something about it.
    """
    message = "It has not answered."
    path = route("registrations", registration_id)
    with IndexProgress(is_ticking=True) as progress:
        for status in follow(client, path, needs=("id", "state", "message"), on_outage=progress.remark):
            message = status["message"]
            if status.get("lifecycle") == Lifecycle.RELEASING:
                raise Conflict(f"The registration {registration_id} is being released.")
            if "operation" not in status:
                if status["state"] == State.INDEXED:
                    return status
                _refuse_to_wait(client, status)
            _show(progress, status)
    raise TimedOut(f"Timed out waiting for registration {registration_id}: {message}")


def _refuse_to_wait(client: Client, status: Json) -> None:
    """Raise CommandError if a state does not pass by itself."""
    reason = status.get("lastError")
    if status["state"] == State.ERROR:
        raise CommandError(reason or status["message"])
    if status["state"] == State.STANDBY:
        # A workspace that merely waits for its primary gives no error.
        if reason:
            raise CommandError(reason)
        for other in client.get(route("registrations"), needs=("registrations",))["registrations"]:
            if other["path"] == status.get("baselinePath") and other["state"] == State.ERROR:
                raise CommandError(f"The primary {other['id']} is in error: {other.get('lastError', other['message'])}")


def until_ended(client: Client, operation: Json) -> Json:
    """Wait until an operation has ended, and return it. Raises CommandError with the reason if it has failed."""
    registration = route("registrations", operation["registrationId"])
    with IndexProgress(is_ticking=True) as progress:
        for now in follow(client, route("operations", operation["id"]), needs=("state",), on_outage=progress.remark):
            if now["state"] == OperationState.COMPLETED:
                return now
            if now["state"] == OperationState.FAILED:
                raise CommandError(f"The {now['kind']} of {now['registrationId']} has failed: {now.get('error')}")
            with suppress(Unavailable, NotFound):
                _show(progress, client.get(registration, needs=("state", "message")))
    raise TimedOut(f"Timed out waiting for operation {operation['id']}, which goes on.")


def until_ready(client: Client) -> Json:
    """Wait until a service is there and ready, and return its status."""
    message = ""

    def note(sentence: str) -> None:
        nonlocal message
        message = sentence

    for status in follow(client, route("status"), needs=("phase", "message"), patience=math.inf, on_outage=note):
        if status["phase"] == CellPhase.READY:
            return status
        note(status["message"])
    raise TimedOut(f"Timed out waiting for the service: {message}")


def _show(progress: IndexProgress, status: Json) -> None:
    """Show how far an index is; one that is complete is waited for because something is about to begin."""
    total = status.get("totalItems", 0)
    if status["state"] == State.INDEXING and total and not status.get("lastError"):
        progress.show(status.get("processedItems", 0), total, "Indexing")
    elif status["state"] != State.INDEXED:
        progress.remark(status["message"])
