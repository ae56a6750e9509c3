from pathlib import Path

import pytest

from semindex.stores import edge_files
from semindex.stores.edge_files import Record

RECORD = Record("0.9.0", 256, "token", ready=True, removed=7)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    edge_files.write_record(tmp_path, RECORD)
    edge_files.write_record(tmp_path, RECORD._replace(removed=8))

    assert edge_files.read_record(tmp_path) == RECORD._replace(removed=8)
    assert [file.name for file in tmp_path.iterdir()] == [edge_files.RECORD_NAME]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[]", b"{}", b'{"engine": "0.9.0", "colour": "red"}', b"null"]
)
def test_a_record_that_makes_no_sense_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / edge_files.RECORD_NAME).write_bytes(content)

    assert edge_files.read_record(tmp_path) is None


def test_a_directory_without_a_record_has_none(tmp_path: Path) -> None:
    assert edge_files.read_record(tmp_path) is None
    assert edge_files.read_record(tmp_path / "missing") is None


def test_what_is_set_aside_never_takes_the_place_of_another(tmp_path: Path) -> None:
    moved = []
    for content in ("first", "second", "third"):
        (tmp_path / "ws").mkdir()
        (tmp_path / "ws" / "file").write_text(content)
        moved.append(edge_files.set_aside(tmp_path / "ws"))

    assert [path.name for path in moved] == ["ws.bad-1", "ws.bad-2", "ws.bad-3"]
    assert [(path / "file").read_text() for path in moved] == ["first", "second", "third"]


def test_what_a_deletion_left_when_it_was_cut_short_is_deleted_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "ws.dropped" / "segments").mkdir(parents=True)

    assert edge_files.names(tmp_path) == []
    assert edge_files.discard(tmp_path / "ws") is True
    assert edge_files.discard(tmp_path / "ws") is False
    assert list(tmp_path.iterdir()) == []


def test_a_deletion_after_one_that_was_cut_short_deletes_both(tmp_path: Path) -> None:
    (tmp_path / "ws.dropped").mkdir()
    (tmp_path / "ws").mkdir()

    assert edge_files.discard(tmp_path / "ws") is True
    assert list(tmp_path.iterdir()) == []


def test_a_new_directory_takes_nothing_over(tmp_path: Path) -> None:
    edge_files.begin(tmp_path / "store" / "ws", RECORD)
    (tmp_path / "store" / "ws" / "rest").write_text("of an earlier attempt")

    edge_files.begin(tmp_path / "store" / "ws", RECORD)

    assert [file.name for file in (tmp_path / "store" / "ws").iterdir()] == [edge_files.RECORD_NAME]


def test_collections_are_the_directories_without_a_dot(tmp_path: Path) -> None:
    for name in ("ws-b", "ws-a", "ws-a.bad-1", "ws-c.dropped"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")

    assert edge_files.names(tmp_path) == ["ws-a", "ws-b"]
    assert edge_files.names(tmp_path / "missing") == []


@pytest.mark.parametrize("cut_after_the_first_rename", [False, True])
def test_a_replacement_that_is_repeated_or_was_cut_leaves_the_copy_in_place(
    tmp_path: Path, cut_after_the_first_rename: bool
) -> None:
    collection = tmp_path / "ws"
    for directory, content in ((collection, "old"), (edge_files.replacement(collection), "new")):
        edge_files.begin(directory, RECORD._replace(ready=True))
        (directory / "content").write_text(content)
    if cut_after_the_first_rename:
        collection.rename(tmp_path / "ws.dropped")
    else:
        edge_files.replace(collection)

    edge_files.recover(tmp_path)
    edge_files.replace(collection)
    edge_files.recover(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == ["ws"]
    assert (collection / "content").read_text() == "new"


def test_a_copy_that_was_just_taking_its_place_takes_it_although_it_is_given_up(tmp_path: Path) -> None:
    collection = tmp_path / "ws"
    for directory in (collection, edge_files.replacement(collection)):
        edge_files.begin(directory, RECORD._replace(ready=True))
    collection.rename(tmp_path / "ws.dropped")

    edge_files.abandon(collection)

    assert [entry.name for entry in tmp_path.iterdir()] == ["ws"]


def test_a_copy_is_not_begun_where_the_disk_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edge_files.require_room_for_copy(tmp_path)
    monkeypatch.setattr(edge_files, "SPARE", 1 << 60)
    with pytest.raises(OSError, match="No space left"):
        edge_files.require_room_for_copy(tmp_path)


def test_why_a_copy_failed_is_an_error_of_the_system(tmp_path: Path) -> None:
    for directory in ("source", "target"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "file").write_text("")
    with pytest.raises(FileExistsError) as caught:
        edge_files.copy(tmp_path / "source", tmp_path / "target")
    assert str(caught.value) == f"[Errno 17] File exists: '{tmp_path}/source'"


def test_a_copy_has_the_same_bytes_and_no_more_of_them_on_disk(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "segments" / "one").mkdir(parents=True)
    edge_files.write_record(source, RECORD)
    (source / "empty").touch()
    (source / "full").write_bytes(b"x" * 100_000)
    for name, holes in {"hole": [], "begin": [0], "middle": [1 << 20], "end": [(32 << 20) - 4]}.items():
        with (source / "segments" / "one" / name).open("wb") as file:
            file.truncate(32 << 20)
            for place in holes:
                file.seek(place)
                file.write(b"data")
    edge_files.begin(target, RECORD._replace(token="other"))

    edge_files.copy(source, target)

    for path in (path for path in source.rglob("*") if path.is_file() and path.name != edge_files.RECORD_NAME):
        copied = target / path.relative_to(source)
        assert copied.read_bytes() == path.read_bytes(), path.name
        assert copied.stat().st_blocks <= path.stat().st_blocks
    assert edge_files.read_record(target) == RECORD._replace(token="other")
