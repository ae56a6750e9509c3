"""The in-memory twins."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio.testing

from semindex.model.status import FileRecord
from semindex.ports import CellState, EmbeddingCache, Ledger
from semindex.state.memory import MemoryCellState, MemoryEmbeddingCache, MemoryLedger
from tests.state.conformance import (
    ROOM,
    EmbeddingCacheConformance,
    LedgerConformance,
    OpenCache,
    OpenLedger,
    record,
)
from tests.state.state_conformance import CellStateConformance, OpenState


class TestMemoryLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(self) -> OpenLedger:
        kept: dict[str, FileRecord] = {}

        @asynccontextmanager
        async def open_ledger() -> AsyncIterator[Ledger]:
            yield MemoryLedger(kept)

        return open_ledger


class TestMemoryEmbeddingCache(EmbeddingCacheConformance):
    @pytest.fixture
    def open_cache(self) -> OpenCache:
        large, small = MemoryEmbeddingCache(), MemoryEmbeddingCache(ROOM * (64 * 4 + 32))

        @asynccontextmanager
        async def open_cache(*, limited: bool = False) -> AsyncIterator[EmbeddingCache]:
            yield small if limited else large

        return open_cache


class TestMemoryCellState(CellStateConformance):
    @pytest.fixture
    def open_state(self) -> OpenState:
        state = MemoryCellState()

        @asynccontextmanager
        async def open_state() -> AsyncIterator[CellState]:
            await state.restart()
            yield state

        return open_state


async def test_time_passes_while_a_twin_is_used(autojump_clock: trio.testing.MockClock) -> None:
    ledger = MemoryLedger()
    with trio.move_on_after(3600):
        while True:
            await ledger.apply([record("a")])
            await trio.sleep(1)

    assert await ledger.load() == {"a": record("a")}
