"""Health follows the first failing try, under a virtual clock, and nobody is asked while all is well."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - qdrant-client is built on it
import pytest
import trio
from attrs import define
from trio.testing import MockClock

from semindex.embedders.endpoint import endpoint_of
from semindex.embedders.openai_compatible import open_endpoint_embedder
from semindex.model.errors import EmbedderUnavailable, SemindexError, StoreUnavailable
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.observe.calls import observed
from semindex.observe.health import DependencyHealth
from semindex.stores.qdrant import open_qdrant_store
from semindex.stores.qdrant_calls import parse_url
from semindex.testing.doubles import Fault, Faulty, InProcess
from semindex.testing.embedder_double import EmbedderDouble
from semindex.testing.qdrant_double import open_qdrant_double

DEADLINE = 5.0
"""Seconds within which an outage shows."""


@define
class Dependency:
    """A server under observation, and a call to it."""

    server: Faulty
    health: DependencyHealth
    call: Callable[[], Awaitable[object]]


@asynccontextmanager
async def embedder(_: Path) -> AsyncIterator[Dependency]:
    server, health = Faulty(EmbedderDouble()), DependencyHealth(EmbedderUnavailable, lambda: None)
    profile = EmbeddingProfile("openai-compatible", "m", 32)
    async with open_endpoint_embedder(
        endpoint_of("http://embedder.test/v1", None),
        profile,
        batch_size=60,
        concurrency=4,
        request_timeout=60,
        tries=3,
        failed=health.try_failed,
        transport=InProcess(server),
    ) as adapter:
        port = observed(adapter, health)
        yield Dependency(server, health, partial(port.embed, ["text"], Role.DOCUMENT))


@asynccontextmanager
async def store(directory: Path) -> AsyncIterator[Dependency]:
    health = DependencyHealth(StoreUnavailable, lambda: None)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_qdrant_double(directory))
        transport: Any = InProcess(server, httpx)
        adapter = await stack.enter_async_context(
            open_qdrant_store(
                parse_url("http://q:1"),
                None,
                call_timeout=30,
                concurrency=4,
                failed=health.try_failed,
                transport=transport,
            )
        )
        yield Dependency(server, health, observed(adapter, health).collections)


DEPENDENCIES = {"embedder": embedder, "store": store}


@pytest.mark.parametrize("name", DEPENDENCIES)
@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=503, times=None),
        Fault(status=500, times=None),
        Fault(status=503, headers={"retry-after": "20"}, times=None),
        Fault(cut=0, times=None),
        Fault(status=401, times=None),
    ],
    ids=["503", "500", "503 with a time", "cut", "401"],
)
async def test_an_outage_and_its_end_show_within_five_seconds(
    autojump_clock: MockClock, fast_directory: Path, name: str, fault: Fault
) -> None:
    async with DEPENDENCIES[name](fast_directory) as at, trio.open_nursery() as nursery:
        nursery.start_soon(at.health.probe_while_failing, at.call)
        await at.call()
        assert at.health.status.reachable
        assert at.health.status.latency_ms is not None
        asked = len(at.server.requests)
        await trio.sleep(3600)
        assert len(at.server.requests) == asked, "nobody is asked while all is well"

        at.server.script(fault)

        async def fail() -> None:
            with pytest.raises(SemindexError):
                await at.call()

        nursery.start_soon(fail)
        await trio.sleep(DEADLINE)
        assert not at.health.status.reachable
        assert at.health.status.last_error
        assert at.health.status.checked_at is not None
        await trio.sleep(120)
        assert not at.health.status.reachable

        at.server.script()
        await trio.sleep(DEADLINE)
        assert at.health.status.reachable
        assert at.health.recoveries.value == 1
        asked = len(at.server.requests)
        await trio.sleep(3600)
        assert len(at.server.requests) == asked
        nursery.cancel_scope.cancel(reason="all is seen")


@pytest.mark.parametrize("name", DEPENDENCIES)
async def test_a_try_that_fails_and_is_repeated_shows_until_it_succeeds(
    autojump_clock: MockClock, fast_directory: Path, name: str
) -> None:
    async with DEPENDENCIES[name](fast_directory) as at:
        await at.call()
        at.server.script(Fault(status=503, times=1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.call)
            await trio.testing.wait_all_tasks_blocked()
            assert not at.health.status.reachable

        assert at.health.status.reachable
