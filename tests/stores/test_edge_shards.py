"""What the worker keeps of collections and refuses of their directories, without the process around it."""

import json
import shutil
import uuid
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams

from semindex.stores import edge_engine, edge_files
from semindex.stores.edge_engine import Shard
from semindex.stores.edge_files import Record
from semindex.stores.edge_protocol import ErrorKind, Settings
from semindex.stores.edge_shards import OPEN_SHARDS, Refused, Shards, may_pass
from semindex.stores.filters import INDEXED_KEYS, Filter

EVERY_POINT = {"must": [{"key": "filePath", "match": {"value": "a.py"}}]}


@contextmanager
def opened(directory: Path, engine: str = "0.9.0") -> Iterator[Shards]:
    shards = Shards(Settings(str(directory), engine, list(INDEXED_KEYS), 16, 100))
    yield shards
    shards.close_all()


def fill(shard: Shard, points: int, first: int = 0) -> None:
    ids = [str(uuid.UUID(int=first + number)) for number in range(points)]
    shard.upsert(ids, memoryview(array("f", [1.0, 0.0] * points)), [{"filePath": "a.py"} for _ in ids])


def refusal(shards: Shards, name: str = "ws") -> Refused:
    with pytest.raises(Refused) as caught:
        shards.get(name)
    return caught.value


def kept(directory: Path) -> list[str]:
    """Return what lies in the store's directory besides the empty collection that others are copied from."""
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("blank."))


def test_a_creation_that_is_repeated_after_a_lost_reply_changes_nothing(directory: Path) -> None:
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
        fill(shards.get("ws"), 3)

        shards.create("ws", 2, "token")
        with pytest.raises(Refused, match="exists already"):
            shards.create("ws", 2, "another token")

        assert shards.get("ws").count({}) == 3


def test_a_creation_that_was_cut_short_left_no_collection(directory: Path) -> None:
    edge_files.begin(directory / "ws", Record("0.9.0", 2, "token"))
    EdgeShard.create(str(directory / "ws"), EdgeConfig(EdgeVectorParams(2, Distance.Cosine))).close()

    with opened(directory) as shards:
        assert refusal(shards).kind is ErrorKind.MISSING
        shards.create("ws", 3, "token")
        assert shards.get("ws").dimension() == 3
    assert kept(directory) == ["ws"]


def test_a_collection_that_was_made_from_a_copy_is_like_the_first_and_shares_nothing_with_it(directory: Path) -> None:
    with opened(directory) as shards:
        shards.create("first", 2, "first")
        fill(shards.get("first"), 3)
        shards.create("copied", 2, "copied")
        assert shards.get("copied").count({}) == 0
        fill(shards.get("copied"), 2)
    with opened(directory) as shards:
        assert {name: shards.get(name).count({}) for name in ("first", "copied")} == {"first": 3, "copied": 2}
        with pytest.raises(Refused, match="exists already"):
            shards.create("copied", 2, "another token")
    first, copied = (EdgeShard.load(str(directory / name)) for name in ("first", "copied"))
    assert set(copied.info().payload_schema) == set(first.info().payload_schema) == set(INDEXED_KEYS)
    assert len({(directory / name / "edge_config.json").read_bytes() for name in ("first", "copied")}) == 1
    first.close()
    copied.close()


def test_an_empty_collection_that_is_damaged_is_copied_by_nobody(directory: Path) -> None:
    with opened(directory) as shards:
        shards.create("first", 2, "first")
        next(directory.glob("blank.*/segments/*/vector_storage/deleted/status.dat")).write_bytes(b"")
        shards.create("second", 2, "second")
        fill(shards.get("second"), 1)
        shards.create("third", 2, "third")

        assert shards.get("second").count({}) == 1
        assert shards.get("third").count({}) == 0
    assert kept(directory) == ["first", "second", "third"]


def test_only_the_collections_used_last_stay_open(directory: Path) -> None:
    names = [f"ws-{number}" for number in range(OPEN_SHARDS + 2)]
    with opened(directory) as shards, opened(directory) as other:
        for name in names:
            shards.create(name, 2, name)
            fill(shards.get(name), 1)
        shards.get("ws-2")
        shards.get("ws-0")

        held = [name for name in names if name not in ("ws-1", "ws-3")]
        assert all("in use by another process" in str(refusal(other, name)) for name in held)
        for name in ("ws-1", "ws-3"):
            assert other.get(name).count({}) == 1


def test_an_index_that_is_missing_is_made_when_a_collection_is_opened(directory: Path) -> None:
    edge_files.begin(directory / "ws", Record("0.9.0", 2, "token", ready=True))
    EdgeShard.create(str(directory / "ws"), EdgeConfig(EdgeVectorParams(2, Distance.Cosine))).close()

    with opened(directory) as shards:
        shards.get("ws")
    again = EdgeShard.load(str(directory / "ws"))
    assert set(again.info().payload_schema) == set(INDEXED_KEYS)
    again.close()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(lambda ws: (ws / edge_files.RECORD_NAME).unlink(), "record is missing", id="no record"),
        pytest.param(lambda ws: (ws / edge_files.RECORD_NAME).write_text("{"), "unreadable", id="half a record"),
        pytest.param(
            lambda ws: (ws / "edge_config.json").write_text(""), "Service runtime error", id="empty configuration"
        ),
        pytest.param(
            lambda ws: next(ws.glob("segments/*/vector_storage/deleted/status.dat")).write_bytes(b""),
            "index out of bounds",
            id="a file so short that the engine panics",
        ),
    ],
)
def test_a_damaged_collection_is_set_aside_and_told_of(
    directory: Path, capfd: pytest.CaptureFixture[str], spoil: Callable[[Path], object], why: str
) -> None:
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
        fill(shards.get("ws"), 3)
    spoil(directory / "ws")

    with opened(directory) as shards:
        refused = refusal(shards)

        assert refused.kind is ErrorKind.DAMAGED
        assert why in str(refused)
        assert str(directory / "ws.bad-1") in str(refused)
        assert str(refused) in capfd.readouterr().err
        assert refusal(shards).kind is ErrorKind.MISSING
        assert shards.names() == []
        shards.create("ws", 2, "token")
    assert (directory / "ws.bad-1").is_dir()


@pytest.mark.parametrize("field", [{"engine": "0.8.0"}, {"layout": 0}])
def test_a_collection_of_another_engine_or_layout_is_set_aside(directory: Path, field: dict[str, object]) -> None:
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
    record = directory / "ws" / edge_files.RECORD_NAME
    record.write_text(json.dumps(json.loads(record.read_text()) | field))

    with opened(directory) as shards:
        assert refusal(shards).kind is ErrorKind.DAMAGED
        assert not (directory / "ws").exists()


def test_a_collection_that_another_process_holds_is_left_alone(directory: Path) -> None:
    with opened(directory) as first, opened(directory) as second:
        first.create("ws", 2, "token")
        fill(first.get("ws"), 3)

        refused = refusal(second)

        assert refused.kind is ErrorKind.UNAVAILABLE
        assert "in use by another process" in str(refused)
        assert first.get("ws").count({}) == 3
    assert kept(directory) == ["ws"]


def test_removed_points_are_counted_across_closing_until_the_collection_is_optimised(directory: Path) -> None:
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
        fill(shards.get("ws"), 10)
        fill(shards.get("ws"), 4)
        shards.get("ws").delete(EVERY_POINT)
    with opened(directory) as shards:
        assert shards.get("ws").gauge() == {"points": 0, "indexed": 0, "removed": 14, "dimension": 2}

        shards.get("ws").optimize()

        assert shards.get("ws").gauge()["removed"] == 0


@pytest.mark.parametrize("matching", [{}, {"should": []}, {"must": [], "must_not": []}])
def test_a_filter_that_would_match_every_point_deletes_none(directory: Path, matching: Filter) -> None:
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
        fill(shards.get("ws"), 3)

        with pytest.raises(ValueError, match="empty filter"):
            shards.get("ws").delete(matching)

        assert shards.get("ws").count({}) == 3


def test_no_more_than_a_bounded_number_of_points_waits_for_a_flush(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_engine, "FLUSH_EVERY", 100)
    with opened(directory) as shards:
        shards.create("ws", 2, "token")
        for batch in range(10):
            fill(shards.get("ws"), 30, first=30 * batch)
        shutil.copytree(directory / "ws", directory / "ws.copy", ignore=shutil.ignore_patterns("wal"))

    flushed = EdgeShard.load(str(directory / "ws.copy"))
    assert 200 <= flushed.info().points_count < 300
    flushed.close()


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(2, "No such file or directory"), False),
        (Exception("Service runtime error: IO Error: Too many open files (os error 24)"), True),
        (Exception("Service runtime error: IO Error: No such file or directory (os error 2)"), False),
        (Exception("Service runtime error: failed to open segment"), False),
    ],
)
def test_trouble_that_says_nothing_about_the_files_may_pass(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes
