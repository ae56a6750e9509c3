"""Which way of watching this platform has."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from semindex.files.watching.polling import Pace, PollingSource
from semindex.ports import EventSource


@asynccontextmanager
async def open_event_source(
    pace: Pace | None = None, overflowed: Callable[[], object] = lambda: None
) -> AsyncIterator[EventSource]:
    """Open the event source of a cell; ``overflowed`` is called whenever events were lost."""
    if sys.platform == "linux":
        # Imported here, because elsewhere what it needs is not installed.
        from semindex.files.watching.inotify import open_inotify_source

        async with open_inotify_source(pace, overflowed) as source:
            yield source
    else:
        yield PollingSource(pace)
