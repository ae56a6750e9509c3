"""``indexctl watch``: all registrations as they change, in place on a terminal, a line per change elsewhere."""

import math
import sys
import time
from contextlib import AbstractContextManager
from typing import Protocol

from indexctl.client import Client, Json, route
from indexctl.output import print_json
from indexctl.waiting import follow
from semindex.model.status import State
from semindex.progress import LINES
from semindex.terminal import printable


class Watcher(Protocol):
    """Shows what is seen."""

    def show(self, status: Json) -> None:
        """Show the status of a service."""

    def remark(self, sentence: str) -> None:
        """Show why the service cannot be seen."""


def watch(client: Client, *, as_json: bool) -> None:
    """Show all registrations until the time of the command is up, or Ctrl-C; a service that went away is waited for.

    Raises CommandError and its kinds if the service is not there to begin with.
    """
    client.get(route("status"), needs=("phase", "registrations"))
    with _watcher(as_json=as_json) as watcher:
        needs = ("phase", "message", "registrations")
        for status in follow(client, route("status"), needs=needs, patience=math.inf, on_outage=watcher.remark):
            watcher.show(status)


def _watcher(*, as_json: bool) -> AbstractContextManager[Watcher]:
    if as_json or not sys.stdout.isatty():
        return LineWatcher(as_json=as_json)
    # Slow to import, and of no use to scripts.
    from indexctl.live import LiveWatcher

    return LiveWatcher()


class LineWatcher(AbstractContextManager["LineWatcher"]):
    """Writes a line for each registration that has changed: of another state, further by a fifth, with other files."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._told: dict[str, object] = {}
        self._service: object = None

    def __exit__(self, *_: object) -> None:
        """Nothing is to be undone."""

    def show(self, status: Json) -> None:
        """Write what has changed since the last time."""
        service = (status["phase"], status["message"])
        if service != self._service:
            self._service = service
            self._write({"phase": status["phase"], "message": status["message"]}, f"service {' '.join(service)}")
        seen = {each["id"]: each for each in status["registrations"]}
        for id_ in self._told.keys() - seen.keys():
            del self._told[id_]
            self._write({"released": id_}, f"{id_} released")
        for id_, each in seen.items():
            if (gist := _gist(each)) != self._told.get(id_):
                self._told[id_] = gist
                self._write(each, f"{id_} {each['state']} {each['message']}")

    def remark(self, sentence: str) -> None:
        """Write why the service cannot be seen, unless that is what was written last."""
        if sentence != self._service:
            self._service = sentence
            self._write({"phase": "unreachable", "message": sentence}, f"service unreachable {sentence}")

    def _write(self, value: Json, line: str) -> None:
        if self._as_json:
            print_json(value, compact=True)
        else:
            sys.stdout.write(f"{time.strftime('%H:%M:%S')} {printable(line)}\n")
        sys.stdout.flush()


def _gist(status: Json) -> object:
    """Return what of a registration must differ for it to count as changed."""
    total = status.get("totalItems")
    if status["state"] == State.INDEXING and total:
        return "indexing", LINES * status["processedItems"] // total, status.get("lastError")
    return (
        status["state"],
        status["message"],
        status.get("lifecycle"),
        status.get("filesIndexed"),
        status.get("totalChunks"),
    )
