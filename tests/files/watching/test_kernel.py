"""The kernel's inotify as it is wrapped."""

import errno
from pathlib import Path

import pytest

from semindex.files.watching.kernel import READ_BYTES, Instance, limit


def test_a_directory_is_one_watch_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Instance() as instance:
        assert instance.add(str(tmp_path / "a")) == instance.add(f"{tmp_path}/a/../a")


def test_there_is_nothing_to_read_while_nothing_happens(tmp_path: Path) -> None:
    with Instance() as instance:
        instance.add(str(tmp_path))

        assert instance.read() == ([], False)


def test_what_does_not_fit_into_one_read_comes_with_the_next(tmp_path: Path) -> None:
    names = [f"{number:0200}" for number in range(READ_BYTES // 200)]
    with Instance() as instance:
        instance.add(str(tmp_path))
        for name in names:
            (tmp_path / name).mkdir()
        first, there_is_more = instance.read()
        rest, there_is_still_more = instance.read()

        assert [event.name for event in first + rest] == names
        assert (there_is_more, there_is_still_more) == (True, False)


def test_a_closed_instance_refuses_like_the_kernel(tmp_path: Path) -> None:
    with Instance() as instance:
        pass

    with pytest.raises(OSError, match="closed") as refused:
        instance.add(str(tmp_path))
    assert refused.value.errno == errno.EBADF


def test_limits_are_shown_as_people_write_numbers() -> None:
    assert int(limit("max_queued_events").replace(",", "")) > 0
    assert limit("no_such_limit") == "unknown"
