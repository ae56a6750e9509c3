"""The cell's one budget for embedding."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.priority import Priority
from semindex.engine.scheduler import BACKFILL_SHARE, CACHE_PATIENCE, Embedded, EmbeddingScheduler
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable, StateUnwritable
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Vectors
from semindex.state.memory import MemoryEmbeddingCache
from semindex.testing.intercept import Around, Call, Failing, Gate, Proceed, Recorder, intercept

EDIT, BACKFILL = Priority.EDIT, Priority.BACKFILL
PATIENCE = 60.0


class Desk:
    """A scheduler at work, its embedder and its cache."""

    def __init__(self, arounds: Sequence[Around], batch_size: int, concurrency: int) -> None:
        self.embedder = HashingEmbedder(batch_size=batch_size)
        self.cache = MemoryEmbeddingCache()
        self.recorder = Recorder()
        through: list[Around] = [*arounds, self.recorder]
        self.scheduler = EmbeddingScheduler(
            intercept(self.embedder, "embedder", through),
            intercept(self.cache, "cache", through),
            concurrency=concurrency,
        )

    def batches(self, role: Role = Role.DOCUMENT) -> list[list[str]]:
        return [list(call.texts) for call in self.embedder.calls if call.role is role]

    async def documents(self, *texts: str, priority: Priority = EDIT) -> Embedded:
        return await self.scheduler.embed_documents(texts, priority)


@asynccontextmanager
async def desk_of(*arounds: Around, batch_size: int = 4, concurrency: int = 1) -> AsyncIterator[Desk]:
    desk = Desk(arounds, batch_size, concurrency)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.scheduler.run)
            yield desk
            nursery.cancel_scope.cancel(reason="the test is over")


async def the_vector(text: str) -> Vectors:
    vector: Vectors = (await HashingEmbedder().embed([text], Role.DOCUMENT))[0]
    return vector


async def assert_right(embedded: Embedded, texts: Sequence[str]) -> None:
    assert embedded.errors == {}
    assert sorted(embedded.vectors) == list(range(len(texts)))
    for index, text in enumerate(texts):
        np.testing.assert_array_equal(embedded.vectors[index], await the_vector(text))


async def test_each_text_gets_its_own_vector_in_the_order_of_the_call(autojump_clock: trio.testing.MockClock) -> None:
    texts = [f"text number{n}" for n in range(11)]
    async with desk_of() as desk:
        embedded = await desk.documents(*texts)

        await assert_right(embedded, texts)
        assert embedded.sent == 11
        assert [len(batch) for batch in desk.batches()] == [4, 4, 3]


async def test_nothing_is_asked_for_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with desk_of() as desk:
        with trio.testing.assert_checkpoints():
            assert await desk.documents() == Embedded({}, {}, 0)
        assert desk.batches() == []


async def test_the_same_text_in_one_call_is_sent_once(autojump_clock: trio.testing.MockClock) -> None:
    async with desk_of() as desk:
        embedded = await desk.documents("same", "other", "same")

        await assert_right(embedded, ["same", "other", "same"])
        assert embedded.sent == 2
        assert desk.batches() == [["same", "other"]]


@pytest.mark.parametrize("state", ["queued", "on its way"])
async def test_a_text_that_is_under_way_for_another_call_is_not_sent_again(
    autojump_clock: trio.testing.MockClock, state: str
) -> None:
    gate = Gate("embedder.embed")
    async with desk_of(gate) as desk, trio.open_nursery() as nursery:
        gate.shut()
        if state == "queued":
            nursery.start_soon(desk.documents, "in front")
            await gate.reached()
        counts: list[int] = []

        async def ask() -> None:
            embedded = await desk.documents("same")
            await assert_right(embedded, ["same"])
            counts.append(embedded.sent)

        for _ in range(3):
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await trio.testing.wait_all_tasks_blocked()

        assert sorted(counts) == [0, 0, 1]
        assert sum(batch.count("same") for batch in desk.batches()) == 1


async def test_a_text_that_arrives_while_another_call_looks_into_the_cache_is_not_sent_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    looking = Gate("cache.get", after=True)
    async with desk_of(looking) as desk, trio.open_nursery() as nursery:
        looking.shut()
        answers: list[Embedded] = []

        async def ask() -> None:
            answers.append(await desk.documents("same"))

        nursery.start_soon(ask)
        await looking.reached()
        looking.open()
        looking.shut()  # lets the first one go on; the second one has looked, and is told late
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        looking.open()
        await trio.testing.wait_all_tasks_blocked()

        assert len(answers) == 2
        assert desk.batches() == [["same"]]


async def test_what_is_in_the_cache_is_not_sent(autojump_clock: trio.testing.MockClock) -> None:
    async with desk_of() as desk:
        await desk.documents("one", "two")
        embedded = await desk.documents("two", "three", "one")

        await assert_right(embedded, ["two", "three", "one"])
        assert embedded.sent == 1
        assert desk.batches() == [["one", "two"], ["three"]]


async def test_queries_and_documents_do_not_share_vectors_and_have_their_own_prefix(
    autojump_clock: trio.testing.MockClock,
) -> None:
    profile = EmbeddingProfile("p", "m", 64, query_prefix="query: ", document_prefix="passage: ")

    class Prefixed(HashingEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.profile = profile  # type: ignore[misc]  # a twin with prefixes

    embedder, cache = Prefixed(), MemoryEmbeddingCache()
    scheduler = EmbeddingScheduler(embedder, cache)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(scheduler.run)
            await scheduler.embed_documents(["text"], EDIT)
            await scheduler.embed_query("text")
            await scheduler.embed_query("text")
            nursery.cancel_scope.cancel()

    assert [(call.texts, call.role) for call in embedder.calls] == [
        (("passage: text",), Role.DOCUMENT),
        (("query: text",), Role.QUERY),
    ]


async def test_edits_go_before_backfill_and_queries_wait_for_neither(autojump_clock: trio.testing.MockClock) -> None:
    gate = Gate("embedder.embed", about="DOCUMENT")
    async with desk_of(gate, batch_size=2) as desk, trio.open_nursery() as nursery:
        gate.shut()
        nursery.start_soon(desk.documents, "first")
        await gate.reached()
        for n in range(3):
            nursery.start_soon(partial(desk.documents, f"old{n}", priority=BACKFILL))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(partial(desk.documents, f"edited{n}", priority=EDIT))
            await trio.testing.wait_all_tasks_blocked()
        await desk.scheduler.embed_query("question")
        gate.open()
        await trio.testing.wait_all_tasks_blocked()

        assert desk.batches(Role.QUERY) == [["question"]]
        assert desk.batches() == [["first"], ["edited0", "edited1"], ["edited2", "old0"], ["old1", "old2"]]


async def test_steady_edits_leave_backfill_its_share(autojump_clock: trio.testing.MockClock) -> None:
    gate = Gate("embedder.embed")
    async with desk_of(gate, batch_size=1) as desk, trio.open_nursery() as nursery:
        gate.shut()
        nursery.start_soon(desk.scheduler.embed_documents, [f"edit{n}" for n in range(40)], EDIT)
        nursery.start_soon(desk.scheduler.embed_documents, [f"old{n}" for n in range(40)], BACKFILL)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await trio.testing.wait_all_tasks_blocked()

        sent = [text for (text,) in desk.batches()]
        first = sent[: 3 * BACKFILL_SHARE]
        assert [index for index, text in enumerate(first) if text.startswith("old")] == [9, 19, 29]


async def test_a_waiting_text_that_becomes_urgent_goes_with_the_urgent_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    gate = Gate("embedder.embed")
    async with desk_of(gate, batch_size=1) as desk, trio.open_nursery() as nursery:
        gate.shut()
        nursery.start_soon(desk.documents, "first")
        await gate.reached()
        nursery.start_soon(desk.scheduler.embed_documents, ["old0", "old1", "old2"], BACKFILL)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(desk.documents, "old2")
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await trio.testing.wait_all_tasks_blocked()

        assert desk.batches() == [["first"], ["old2"], ["old0"], ["old1"]]


async def test_at_most_so_many_batches_run_at_once(autojump_clock: trio.testing.MockClock) -> None:
    running, most = 0, 0

    async def count(call: Call, proceed: Proceed) -> Any:
        nonlocal running, most
        if not call.is_named("embedder.embed", "DOCUMENT"):
            return await proceed()
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1
        return await proceed()

    async with desk_of(count, batch_size=1, concurrency=3) as desk:
        await desk.documents(*(f"text{n}" for n in range(12)))

        assert most == 3
        assert trio.current_time() == pytest.approx(4)


async def test_what_is_given_up_before_it_was_sent_is_not_sent(autojump_clock: trio.testing.MockClock) -> None:
    gate = Gate("embedder.embed")
    async with desk_of(gate) as desk, trio.open_nursery() as nursery:
        gate.shut()
        nursery.start_soon(desk.documents, "first")
        await gate.reached()
        with trio.move_on_after(1):
            await desk.documents("given up", "shared")
        nursery.start_soon(desk.documents, "shared")
        with trio.move_on_after(1):
            await desk.documents("shared", "given up too")
        gate.open()
        await trio.testing.wait_all_tasks_blocked()

        assert desk.batches() == [["first"], ["shared"]]
        assert desk.scheduler.queued == 0


async def test_what_is_given_up_on_its_way_ends_in_the_cache(autojump_clock: trio.testing.MockClock) -> None:
    gate = Gate("embedder.embed")
    async with desk_of(gate) as desk:
        gate.shut()
        with trio.move_on_after(1):
            await desk.documents("late")
        assert desk.scheduler.queued == 1
        gate.open()
        await trio.testing.wait_all_tasks_blocked()
        assert desk.scheduler.queued == 0

        embedded = await desk.documents("late")
        await assert_right(embedded, ["late"])
        assert (embedded.sent, desk.batches()) == (0, [["late"]])


async def test_vectors_are_kept_however_slow_the_disk_is(autojump_clock: trio.testing.MockClock) -> None:
    async def slow(call: Call, proceed: Proceed) -> object:
        if str(call) == "cache.put":
            await trio.sleep(CACHE_PATIENCE - 1)
        return await proceed()

    async with desk_of(slow) as desk:
        await desk.documents("late")
        embedded = await desk.documents("late")
        assert (embedded.sent, desk.batches()) == (0, [["late"]])


@pytest.mark.parametrize("held", ["cache.get", "embedder.embed"])
async def test_others_still_get_a_text_whose_first_asker_gave_up(
    autojump_clock: trio.testing.MockClock, held: str
) -> None:
    gate = Gate(held)
    async with desk_of(gate) as desk, trio.open_nursery() as nursery:
        gate.shut()

        async def ask() -> None:
            await assert_right(await desk.documents("shared"), ["shared"])
            asked.set()

        asked = trio.Event()
        with trio.move_on_after(1):
            async with trio.open_nursery() as first:
                first.start_soon(desk.documents, "shared")
                await gate.reached()
                nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await asked.wait()

        assert desk.batches() == [["shared"]]
        assert desk.scheduler.queued == 0


async def test_a_rejected_batch_is_split_down_to_the_text_at_fault(autojump_clock: trio.testing.MockClock) -> None:
    refused = Failing("embedder.embed", EmbedderRejected("Too long."), times=99, about="poison")
    async with desk_of(refused, batch_size=8) as desk:
        texts = [f"text{n}" for n in range(7)]
        embedded = await desk.documents(*texts[:5], "poison", *texts[5:])

        assert {index: str(error) for index, error in embedded.errors.items()} == {5: "Too long."}
        assert sorted(embedded.vectors) == [0, 1, 2, 3, 4, 6, 7]
        assert embedded.sent == 7
        np.testing.assert_array_equal(embedded.vectors[7], await the_vector("text6"))
        assert sorted(text for batch in desk.batches() for text in batch) == texts


async def test_a_bug_of_the_adapter_costs_the_text_at_fault_and_the_scheduler_goes_on(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    bug = Failing("embedder.embed", ValueError("a bug"), times=99, about="poison")
    async with desk_of(bug) as desk:
        embedded = await desk.documents("fine", "poison", "fine too")

        assert sorted(embedded.vectors) == [0, 2]
        assert isinstance(embedded.errors[1], EmbedderRejected)
        await assert_right(await desk.documents("afterwards"), ["afterwards"])
    assert "a bug" in caplog.text


async def test_an_embedder_that_does_not_answer_is_told_for_every_text_and_asked_again_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    down = Failing("embedder.embed", EmbedderUnavailable("It does not answer."), times=1)
    async with desk_of(down) as desk:
        embedded = await desk.documents("one", "two")
        assert [str(error) for error in embedded.errors.values()] == ["It does not answer."] * 2
        assert (embedded.vectors, embedded.sent) == ({}, 0)

        await assert_right(await desk.documents("one", "two"), ["one", "two"])


async def test_a_query_raises_what_the_embedder_raised(autojump_clock: trio.testing.MockClock) -> None:
    down = Failing("embedder.embed", EmbedderUnavailable("It does not answer."), times=1)
    async with desk_of(down) as desk:
        with pytest.raises(EmbedderUnavailable, match="It does not answer"):
            await desk.scheduler.embed_query("question")

        np.testing.assert_array_equal(await desk.scheduler.embed_query("question"), await the_vector("question"))


@frozen
class Answering:
    """Makes the embedder answer something else whenever it is asked for the poison."""

    spoil: Callable[[Vectors], Any]

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        answer = await proceed()
        return self.spoil(answer) if call.is_named("embedder.embed", "poison") else answer


def with_nan(vectors: Vectors) -> Vectors:
    spoilt = vectors.copy()
    spoilt[:, 3] = np.nan
    return spoilt


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vectors: vectors[:-1],
        lambda vectors: np.concatenate([vectors, vectors]),
        lambda vectors: vectors[:, :-1],
        lambda vectors: vectors[0],
        lambda vectors: np.full_like(vectors, np.inf),
        with_nan,
        lambda vectors: None,
    ],
    ids=["one too few", "too many", "wrong dimension", "wrong shape", "infinite", "NaN", "nothing"],
)
async def test_vectors_that_cannot_be_right_are_refused_and_never_kept(
    autojump_clock: trio.testing.MockClock, spoil: Callable[[Vectors], Any]
) -> None:
    async with desk_of(Answering(spoil)) as desk:
        embedded = await desk.documents("fine", "poison", "fine too")

        assert sorted(embedded.vectors) == [0, 2]
        assert isinstance(embedded.errors[1], EmbedderRejected)
        np.testing.assert_array_equal(embedded.vectors[2], await the_vector("fine too"))
        kept = [call.args[2] for call in desk.recorder.of("cache.put")]
        assert sum(len(vectors) for vectors in kept) == 2
        assert all(np.isfinite(vectors).all() and vectors.shape[1] == 64 for vectors in kept)


@pytest.mark.parametrize("call", ["cache.get", "cache.put"])
@pytest.mark.parametrize("error", [StateUnwritable("The disk is full."), KeyError("a bug")], ids=["full", "bug"])
async def test_a_cache_that_fails_costs_no_vector(
    autojump_clock: trio.testing.MockClock, call: str, error: Exception
) -> None:
    async with desk_of(Failing(call, error, times=1)) as desk:
        await assert_right(await desk.documents("one", "two"), ["one", "two"])
        assert desk.batches() == [["one", "two"]]


async def test_a_cache_that_hangs_while_it_keeps_delays_a_batch_by_a_bound_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    gate = Gate("cache.put")
    async with desk_of(gate) as desk:
        gate.shut()
        await assert_right(await desk.documents("one"), ["one"])

        assert trio.current_time() == pytest.approx(CACHE_PATIENCE)


async def test_vectors_that_have_arrived_are_kept_although_the_scheduler_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    gate = Gate("cache.put")
    desk = Desk([gate], 4, 1)
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.scheduler.run)
            nursery.start_soon(desk.documents, "one")
            await gate.reached()
            nursery.cancel_scope.cancel()
            gate.open()

    assert (await desk.cache.counters()).bytes > 0


PROGRAM = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcdefg"), max_size=5),
        st.sampled_from([EDIT, BACKFILL]),
        st.integers(0, 5),
        st.none() | st.integers(0, 6),
    ),
    max_size=12,
)
"""Calls: texts, priority, when it is made, and after how long it is given up."""


@frozen
class Program:
    """Calls that are made, and perhaps given up, at their time; one text is refused."""

    calls: list[tuple[list[str], Priority, int, int | None]]
    latencies: list[int]
    poison: str

    async def adapter(self, call: Call, proceed: Proceed) -> Any:
        if call.is_named("embedder.embed"):
            await trio.sleep(self.latencies.pop() if self.latencies else 1)
            if self.poison in call.args[0]:
                raise EmbedderRejected("Refused.")
        return await proceed()

    async def ask(self, desk: Desk, texts: list[str], priority: Priority, start: int, patience: int | None) -> None:
        await trio.sleep(start)
        with trio.move_on_after(float("inf") if patience is None else patience + 0.5):
            embedded = await desk.documents(*texts, priority=priority)
            assert set(embedded.errors) == {index for index, text in enumerate(texts) if text == self.poison}
            for index, vector in embedded.vectors.items():
                np.testing.assert_array_equal(vector, await the_vector(texts[index]))
            assert len(embedded.errors) + len(embedded.vectors) == len(texts)

    async def run(self) -> None:
        async with desk_of(self.adapter, batch_size=3, concurrency=2) as desk:
            async with trio.open_nursery() as nursery:
                for call in self.calls:
                    nursery.start_soon(self.ask, desk, *call)
            await trio.sleep(30)  # what nobody waits for any more comes to its end
            assert desk.scheduler.queued == 0
            sent = [text for batch in desk.batches() for text in batch]
            assert len(sent) == len(set(sent))


@settings(max_examples=60)
@given(program=st.builds(Program, PROGRAM, st.lists(st.integers(0, 4), max_size=12), st.sampled_from("abcdefg-")))
def test_whatever_is_asked_by_whomever_each_text_is_sent_once_and_answered_right(program: Program) -> None:
    trio.run(program.run, clock=trio.testing.MockClock(autojump_threshold=0))
