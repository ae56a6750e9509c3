from collections import Counter

import trio
from hypothesis import given
from hypothesis import strategies as st

from semindex.engine.filetable import FILES_PER_STEP, FileTable, table_of
from semindex.model.chunks import Signature
from semindex.model.status import FileRecord, FileState

records = st.builds(
    FileRecord,
    path=st.sampled_from("abcdef"),
    state=st.sampled_from(FileState),
    chunks=st.integers(0, 5),
    reason=st.none() | st.just("a reason"),
    signature=st.none() | st.builds(Signature, *[st.integers(0, 9)] * 4),
)
steps = st.lists(records | st.sampled_from("abcdef"))
"""Records are put, paths are forgotten."""


@given(steps)
def test_counts_failures_and_points_are_those_of_the_records(steps: list[FileRecord | str]) -> None:
    table, model = FileTable(), dict[str, FileRecord]()
    for step in steps:
        if isinstance(step, str):
            table.forget(step)
            model.pop(step, None)
        else:
            table.put(step)
            model[step.path] = step

        assert table.states == Counter(record.state for record in model.values())
        assert len(table) == len(model)
        assert table.chunks == sum(record.chunks for record in model.values())
        assert table.text_bytes == sum(
            record.signature.size for record in model.values() if record.chunks and record.signature is not None
        )
        assert {record.path: record for record in table} == model
        assert sorted(table.paths()) == sorted(model)
        assert dict(table.failures(99)) == {
            path: record.reason or "unknown" for path, record in model.items() if record.state is FileState.FAILED
        }


def test_only_so_many_failures_are_shown() -> None:
    table = FileTable(FileRecord(f"f{number}", FileState.FAILED, reason="r") for number in range(20))

    assert table.failures(3) == (("f0", "r"), ("f1", "r"), ("f2", "r"))


def test_a_path_is_in_the_table_until_it_is_forgotten() -> None:
    table = FileTable([FileRecord("a", FileState.PENDING)])
    assert "a" in table
    assert table.get("a") == FileRecord("a", FileState.PENDING)

    table.forget("a")
    assert "a" not in table
    assert table.get("a") is None


async def test_a_large_table_is_made_in_steps() -> None:
    records = [FileRecord(str(number), FileState.INDEXED, chunks=1) for number in range(3 * FILES_PER_STEP)]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        await trio.lowlevel.checkpoint()
        before = turns
        table = await table_of(records)
        assert turns - before >= 2
        nursery.cancel_scope.cancel()

    assert list(table) == records
