"""The ledger in memory, the work queue and the overlay relation, and how they keep up with each other."""

from itertools import pairwise

import pytest
import trio
import trio.testing

from semindex.engine.filetable import FILES_PER_STEP, FileTable
from semindex.engine.index import Index, Outcome
from semindex.engine.priority import Priority
from semindex.model.chunks import Signature
from semindex.model.status import FileRecord, FileState
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Gate

ROOT = "/primary"
PATIENCE = 60.0
NOW, LATER = Signature(1, 2, 3, 4), Signature(1, 2, 9, 4)


def indexed(path: str, file_hash: str = "h1", **fields: object) -> FileRecord:
    values: dict[str, object] = {"signature": NOW, "chunks": 2, "chunking": "now", **fields}
    return FileRecord(path, FileState.INDEXED, file_hash, **values)  # type: ignore[arg-type]  # a test's shorthand


async def test_a_file_that_becomes_ignored_while_it_is_embedded_does_not_enter_the_index(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = Bench(), Gate("embedder.embed")
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            tree.write("a.py", words("apricot"))
            await workspace.sweep()
            await gate.reached()
            tree.write(".gitignore", "a.py\n")
            await workspace.sweep()
            gate.open()
            await workspace.settled()

            assert workspace.index.table.paths() == ["b.py"]
            assert (await process.found(ROOT, "apricot")).paths == ()


async def test_a_file_that_is_back_before_its_leaving_was_stored_stays_in_the_index(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = Bench(), Gate("store.upsert")
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            tree.write("b.py", words("blueberry"))
            await workspace.sweep()
            await gate.reached()
            tree.write(".gitignore", "a.py\n")
            await workspace.sweep()
            await trio.testing.wait_all_tasks_blocked()  # the outcome of a.py waits behind the store
            tree.delete(".gitignore")
            await workspace.sweep()
            gate.open()

            assert (await process.found(ROOT, "apple")).paths == ("a.py",)


async def test_a_verdict_that_came_during_other_work_on_the_file_waits_for_its_turn() -> None:
    index = Index()
    index.note_pending("a", Priority.EDIT)
    await index.queue.take(9)
    index.expel("a", None, Priority.EDIT)

    index.finish(Outcome("a", indexed("a")))
    assert index.verdicts == {"a": None}

    await index.queue.take(9)
    index.finish(Outcome("a", None))
    assert index.verdicts == {}
    assert index.table.paths() == []


async def test_a_file_may_stay_if_that_is_found_out_before_it_has_left() -> None:
    await trio.lowlevel.checkpoint()
    index = Index()
    index.expel("a", "too large", Priority.EDIT)

    assert index.readmit("a")
    assert not index.readmit("a")
    assert (index.verdicts, index.queue.outstanding()) == ({}, ["a"])


async def test_of_every_edit_that_is_settled_it_is_told_how_long_it_took_also_after_starting_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    told = list[float]()
    index = Index(edit_settled=told.append)
    for seconds in (2, 3):
        index.mark("a", Priority.EDIT)
        await trio.sleep(seconds)
        await index.queue.take(1)
        index.finish(Outcome("a", indexed("a")))
        await index.start_over(FileTable())

    assert told == [2, 3]


FAILED = FileRecord("a", FileState.FAILED, signature=NOW, reason="refused")
SKIPPED = FileRecord("a", FileState.SKIPPED, signature=NOW, reason="binary")


@pytest.mark.parametrize(
    ("record", "signature", "needed"),
    [
        (None, NOW, True),
        (FileRecord("a", FileState.PENDING), NOW, True),
        (indexed("a"), NOW, False),
        (indexed("a"), LATER, True),
        (indexed("a", signature=None), NOW, True),
        (indexed("a", dirty=True), NOW, True),
        (indexed("a", chunking="older"), NOW, True),
        (SKIPPED, NOW, False),
        (SKIPPED, LATER, True),
        (FAILED, NOW, False),
        (FAILED, LATER, True),
        (FileRecord("a", FileState.FAILED, reason="read too soon after a write"), NOW, True),
        (FileRecord("a", FileState.FAILED, signature=NOW, dirty=True, reason="the store refused it"), NOW, False),
    ],
)
def test_a_file_is_read_if_its_record_does_not_stand_for_what_is_on_disk(
    record: FileRecord | None, signature: Signature, needed: bool
) -> None:
    index = Index()
    index.take_over([] if record is None else [record])

    assert index.needs_work("a", signature, "now", retry_failed=False) is needed


@pytest.mark.parametrize("record", [FAILED, FileRecord("a", FileState.FAILED, signature=NOW, dirty=True)])
def test_a_failed_file_is_tried_again_by_a_full_comparison(record: FileRecord) -> None:
    index = Index()
    index.take_over([record])

    assert index.needs_work("a", NOW, "now", retry_failed=True)


def inherited(path: str, file_hash: str = "h1") -> FileRecord:
    return indexed(path, file_hash, chunks=0, inherited=True)


@pytest.fixture
async def relation() -> tuple[Index, Index]:
    """A baseline with three files, and an overlay that inherits two of them and has a copy of its own of the third."""
    baseline, overlay = Index(), Index()
    await baseline.start_over(FileTable([indexed("a"), indexed("b"), indexed("c", "h2")]))
    await overlay.start_over(FileTable([inherited("a"), inherited("b"), indexed("c")]))
    baseline.attach(overlay)
    await overlay.find_shadows()
    return baseline, overlay


async def test_a_change_of_the_baseline_is_noted_in_the_overlay_within_the_same_step(
    relation: tuple[Index, Index],
) -> None:
    baseline, overlay = relation
    await trio.lowlevel.checkpoint()
    with trio.testing.assert_no_checkpoints():
        baseline.begin_write([Outcome("a", indexed("a", "h9"), ids=("1",))])
        assert overlay.queue.outstanding() == ["a"]
        assert (overlay.moves, overlay.inheritable("a")) == (1, None)


async def test_what_the_overlay_holds_itself_is_looked_at_again_but_was_never_in_doubt(
    relation: tuple[Index, Index],
) -> None:
    baseline, overlay = relation
    await trio.lowlevel.checkpoint()
    baseline.take_over([indexed("c", "h1")])

    assert overlay.queue.outstanding() == ["c"]
    assert overlay.moves == 0


async def test_a_baseline_that_starts_over_puts_in_doubt_what_it_holds_no_more(relation: tuple[Index, Index]) -> None:
    baseline, overlay = relation
    await trio.lowlevel.checkpoint()
    await baseline.start_over(FileTable([indexed("a"), indexed("b", "h9")]))

    assert overlay.queue.outstanding() == ["b"]
    assert overlay.moves > 0


async def test_a_baseline_that_starts_over_puts_its_overlays_in_doubt_at_once_and_has_them_follow_in_steps() -> None:
    baseline, overlay = Index(), Index()
    paths = [f"f{number}" for number in range(5 * FILES_PER_STEP)]
    await baseline.start_over(FileTable(map(indexed, paths)))
    await overlay.start_over(FileTable(map(inherited, paths)))
    baseline.attach(overlay)
    lengths = list[int]()

    async def look() -> None:
        while True:
            lengths.append(len(overlay.queue))
            assert not overlay.followed.is_set() or len(overlay.queue) in (0, len(paths))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await baseline.start_over(FileTable())
        nursery.cancel_scope.cancel()

    # Of two tasks that both only pass checkpoints, one may take two steps while the other takes one.
    assert all(after - before <= 2 * FILES_PER_STEP for before, after in pairwise([0, *lengths, len(paths)]))
    assert overlay.queue.outstanding() == paths


async def test_an_overlay_has_not_followed_before_a_start_over_that_was_cut_short_is_repeated() -> None:
    baseline, overlay = Index(), Index()
    paths = [f"f{number}" for number in range(5 * FILES_PER_STEP)]
    await baseline.start_over(FileTable(map(indexed, paths)))
    await overlay.start_over(FileTable(map(inherited, paths)))
    baseline.attach(overlay)
    followed = overlay.followed
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(baseline.start_over, FileTable())
            for _ in range(3):  # the first of its seven steps, or a few more
                await trio.lowlevel.checkpoint()
            scope.cancel()
    assert overlay.moves > 0
    assert not overlay.followed.is_set()
    awaited = overlay.followed

    await baseline.start_over(FileTable())
    assert awaited.is_set()
    assert awaited is overlay.followed is not followed
    assert overlay.queue.outstanding() == paths


async def test_a_detached_overlay_hears_nothing(relation: tuple[Index, Index]) -> None:
    baseline, overlay = relation
    await trio.lowlevel.checkpoint()
    baseline.detach(overlay)
    baseline.detach(overlay)
    baseline.take_over([indexed("a", "h9")])

    assert overlay.queue.outstanding() == []
    assert baseline.overlays == []


async def test_only_whole_files_of_its_own_are_served_to_others(relation: tuple[Index, Index]) -> None:
    baseline, overlay = relation
    await trio.lowlevel.checkpoint()
    assert [overlay.hash_of(path) for path in "abc"] == [None, None, "h1"]
    assert [overlay.inheritable(path) for path in "abcd"] == ["h1", "h1", "h2", None]

    baseline.take_over([FileRecord("a", FileState.FAILED, "h1"), indexed("b", dirty=True)])
    assert [overlay.inheritable(path) for path in "ab"] == [None, None]


async def test_a_file_whose_content_is_known_need_not_be_chunked(relation: tuple[Index, Index]) -> None:
    _, overlay = relation
    await trio.lowlevel.checkpoint()
    assert overlay.expected_hash("c", "now") == "h1"
    assert overlay.expected_hash("c", "newer") == "h2"
    assert overlay.expected_hash("a", "now") == "h1"
    assert overlay.expected_hash("d", "now") is None


async def test_what_is_shadowed_is_not_copied_before_it_changes(relation: tuple[Index, Index]) -> None:
    _, overlay = relation
    await trio.lowlevel.checkpoint()
    shadowed = overlay.shadowed
    assert shadowed == {"c"}
    overlay.take_over([indexed("c", chunks=3)])
    assert overlay.shadowed is shadowed

    overlay.mark("c", Priority.EDIT)
    assert overlay.shadowed == frozenset()
    await overlay.queue.take(1)
    overlay.finish(Outcome("c", indexed("c")))
    assert overlay.shadowed == {"c"}
