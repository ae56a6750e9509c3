"""The cell on twins, and what it is measured by."""

import numpy as np
import pytest
import trio
import trio.testing
from attrs import evolve

from semindex.embedders.hashing import HashingEmbedder
from semindex.model.ids import collection_name, point_id
from semindex.model.points import Payload
from semindex.model.profiles import Role
from semindex.model.status import FileRecord, FileState, State
from semindex.testing.audit import differences, stored
from semindex.testing.bench import Bench, words

R, W = "/r", "/w"
NAME = collection_name(R)


def test_a_text_of_words_is_long_enough_and_full_of_them() -> None:
    assert words("apple").split() == ["apple"] * 11
    assert len(words("apple", units=3000)) >= 3000
    assert words("apple", "pear").startswith("apple pear\napple pear\n")


@pytest.fixture
async def built(autojump_clock: trio.testing.MockClock) -> Bench:
    bench = Bench()
    bench.tree(R, a=words("apple"), b=words("banana", units=3000))
    with trio.fail_after(60):
        async with bench.process() as process:
            assert (await (await process.start(R)).settled()).state is State.INDEXED
            assert (await process.found(R, "apple")).paths == ("a.py",)
    return bench


async def test_a_process_stops_its_workspaces_when_it_ends(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    bench.tree(R, a=words("apple"))
    bench.tree(W, a=words("apple"))
    async with bench.process() as process:
        primary = await process.start(R)
        overlay = await process.start(W, baseline=R)

    assert primary.closed.is_set()
    assert overlay.closed.is_set()


async def test_an_index_that_is_right_has_no_differences(built: Bench) -> None:
    assert await differences(built, R) == []
    assert len(await stored(built, R)) > 3


async def test_what_was_sent_is_told_by_role(built: Bench) -> None:
    await trio.lowlevel.checkpoint()

    assert [text.split()[0] for text in built.sent(Role.QUERY)] == ["apple"]
    assert {text.split()[0] for text in built.sent()} == {"apple", "banana"}


async def test_points_that_are_missing_or_too_many_are_found(built: Bench) -> None:
    await built.store.delete_files(NAME, ["a.py"])
    assert await differences(built, R) == ["a.py:1 is not stored"]

    (apple,) = await HashingEmbedder(512).embed(["apple"], Role.DOCUMENT)
    stray: Payload = {
        "filePath": "stray.py",
        "fileHash": "h",
        "codeChunk": "apple",
        "startLine": 1,
        "endLine": 1,
        "segmentHash": "s",
        "pathSegments": {},
    }
    await built.store.upsert(NAME, ["00000000-0000-4000-8000-000000000001"], apple[None], [stray])
    assert sorted(await differences(built, R)) == ["a.py:1 is not stored", "stray.py:1 is stored by mistake"]


async def test_a_vector_of_another_text_is_found(built: Bench) -> None:
    (hit,) = [hit for hit in await stored(built, R) if hit.file_path == "a.py"]
    (vector,) = np.eye(1, 512, dtype=np.float32)
    payload: Payload = {
        "filePath": hit.file_path,
        "fileHash": hit.file_hash,
        "codeChunk": hit.code_chunk,
        "startLine": hit.start_line,
        "endLine": hit.end_line,
        "segmentHash": hit.segment_hash,
        "pathSegments": {"0": "a.py"},
    }
    await built.store.upsert(NAME, [point_id(hit.segment_hash)], vector[None], [payload])
    assert await differences(built, R) == ["a.py:1 has the vector of another text"]


async def test_records_that_are_not_right_are_found(built: Bench) -> None:
    ledger = built.ledgers[R]
    ledger["a.py"] = evolve(ledger["a.py"], dirty=True)
    ledger["gone.py"] = FileRecord("gone.py", FileState.INDEXED)
    del ledger["b.py"]
    found = await differences(built, R)

    assert found[0] == "gone.py is in the ledger only"
    assert found[1].startswith("a.py is recorded as")
    assert found[2:] == ["b.py is not in the ledger"]


async def test_a_file_that_cannot_be_indexed_has_to_be_recorded_as_failed(built: Bench) -> None:
    assert "a.py is not recorded as failed" in await differences(built, R, failed=["a.py"])

    built.ledgers[R]["a.py"] = FileRecord("a.py", FileState.FAILED, reason="refused")
    await built.store.delete_files(NAME, ["a.py"])
    assert await differences(built, R, failed=["a.py"]) == []


async def test_what_a_worktree_inherits_is_not_expected_in_its_own_collection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = Bench()
    bench.tree(R, a=words("apple"), b=words("banana"))
    bench.tree(W, a=words("apple"), b=words("blueberry"))
    async with bench.process() as process:
        await (await process.start(R)).settled()
        await (await process.start(W, baseline=R)).settled()

    assert await differences(bench, W, baseline=R) == []
    assert "a.py is inherited by mistake" in await differences(bench, W)
    await bench.store.delete_files(collection_name(W), ["b.py"])
    assert await differences(bench, W, baseline=R) == ["b.py:1 is not stored"]
