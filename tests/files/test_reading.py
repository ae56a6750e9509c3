import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.files import reading
from semindex.files.reading import FileRead, decode, read_regular
from semindex.model.chunks import FileProblem, ProblemKind
from semindex.model.profiles import ChunkingProfile

KILO, EXTENDED = ChunkingProfile.KILO, ChunkingProfile.EXTENDED


def problem(root: Path, path: str, **options: int) -> FileProblem:
    result = read_regular(str(root), path, **options)
    assert isinstance(result, FileProblem), result
    assert result.path == path
    return result


def content(root: Path, path: str) -> FileRead:
    result = read_regular(str(root), path)
    assert isinstance(result, FileRead), result
    return result


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_file_is_read_whole_with_the_signature_of_its_stat(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    file = tmp_path / "a" / "b" / "c.py"
    file.write_bytes(b"\r\n\xff" * 5000)
    read = content(tmp_path, "a/b/c.py")
    status = file.stat()
    assert read.data == file.read_bytes()
    assert read.signature == reading.signature_of(status)
    assert read.signature.size == 15000
    assert read.signature.mtime_ns == status.st_mtime_ns


def test_a_signature_younger_than_two_seconds_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "new.py"
    file.write_text("x")
    assert not content(tmp_path, "new.py").trusted


def test_a_signature_from_before_the_clock_was_put_back_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "future.py"
    file.write_text("x")
    tomorrow = time.time_ns() + 86_400_000_000_000
    os.utime(file, ns=(tomorrow, tomorrow))
    assert not content(tmp_path, "future.py").trusted


def test_a_signature_whose_times_are_old_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.py").write_text("x")
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert content(tmp_path, "old.py").trusted


def test_a_file_at_the_limit_is_read_and_one_byte_more_is_skipped_with_its_signature(tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(b"a" * reading.MAX_FILE_BYTES)
    (tmp_path / "over").write_bytes(b"a" * (reading.MAX_FILE_BYTES + 1))
    assert len(content(tmp_path, "full").data) == 1_048_576
    over = problem(tmp_path, "over")
    assert (over.kind, over.reason) == (ProblemKind.SKIPPED, "The file is larger than 1 MiB.")
    assert over.signature == reading.signature_of((tmp_path / "over").stat())


def test_a_missing_file_a_directory_and_a_name_that_cannot_exist_are_gone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for path in ("none", "folder", "none/at/all", "file/below", "x" * 300, "nul\0byte", "\ud800"):
        assert problem(tmp_path, path).kind is ProblemKind.GONE, path


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../secret", "a/../b", "./a", "a//b", "a/", "a/."])
def test_a_path_that_is_not_plainly_below_the_root_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "root" / "a").mkdir(parents=True)
    assert problem(tmp_path / "root", path).kind is ProblemKind.SKIPPED


def test_no_link_is_followed_at_any_depth(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "file.py").write_text("inside")
    (tmp_path / "outside.py").write_text("outside")
    (root / "to_file.py").symlink_to("real/file.py")
    (root / "to_outside.py").symlink_to("../outside.py")
    (root / "to_folder").symlink_to("real")
    (root / "loop").symlink_to("loop")
    for path in ("to_file.py", "to_outside.py", "to_folder/file.py", "loop", "loop/x"):
        assert problem(root, path).kind is ProblemKind.GONE, path
    assert content(root, "real/file.py").data == b"inside"


def test_the_root_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file.py").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert content(tmp_path / "link", "file.py").data == b"x"


def test_a_fifo_a_socket_and_a_device_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    monkeypatch.chdir(tmp_path)  # a socket's path may only be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        for path in ("fifo.py", "socket.py"):
            assert problem(tmp_path, path).kind is ProblemKind.GONE
    assert problem(Path("/dev"), "null").kind is ProblemKind.GONE


def test_a_file_that_cannot_be_read_has_failed_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(os, "open", refuse_all_but(str(tmp_path), os.open, refuse))
    failed = problem(tmp_path, "file")
    assert (failed.kind, failed.reason) == (ProblemKind.FAILED, "The file cannot be read: Permission denied.")


def refuse_all_but(name: str, really: Callable[..., int], refuse: Callable[..., int]) -> Callable[..., int]:
    return lambda path, *rest, **options: (really if path == name else refuse)(path, *rest, **options)


def test_a_missing_root_says_nothing_about_its_files(tmp_path: Path) -> None:
    assert problem(tmp_path / "unmounted", "file").kind is ProblemKind.FAILED


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Path]:
    """Offer a file that two threads never stop replacing: one writes in place, one renames another file over it."""
    file, stop = tmp_path / "busy", threading.Event()
    file.write_bytes(b"A" * 40_000)

    def rewrite() -> None:
        while not stop.is_set():
            for letter in (b"A", b"B"):
                file.write_bytes(letter * 40_000)

    def replace() -> None:
        while not stop.is_set():
            (tmp_path / "next").write_bytes(b"C" * 40_000)
            (tmp_path / "next").replace(file)

    threads = [threading.Thread(target=rewrite), threading.Thread(target=replace)]
    for thread in threads:
        thread.start()
    yield file
    stop.set()
    for thread in threads:
        thread.join(30)


def test_what_is_read_of_a_busy_file_was_its_content_at_one_instant_or_is_no_content(writing: Path) -> None:
    seen = set()
    for _ in range(300):
        result = read_regular(str(writing.parent), writing.name)
        if isinstance(result, FileRead):
            # Truncated to begin with, then filled from the front: each prefix of one letter is a state it was in.
            assert len(set(result.data)) <= 1
            seen.add("read")
        else:
            assert result.kind in {ProblemKind.FAILED, ProblemKind.GONE}
            seen.add(result.reason)
    assert seen


def test_a_file_that_changes_under_every_read_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log"
    file.write_text("x")
    really = os.fstat

    def append_after(descriptor: int) -> os.stat_result:
        status = really(descriptor)
        with file.open("a") as log:
            log.write("more")
        return status

    monkeypatch.setattr(os, "fstat", append_after)
    failed = problem(tmp_path, "log")
    assert (failed.kind, failed.reason) == (ProblemKind.FAILED, "The file kept changing while it was read.")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("x")
    (tmp_path / "a" / "link").symlink_to("b")
    before = open_descriptors()
    for path in ("a/b/c", "a/b/none", "a/link/c", "a/b", "none/x"):
        read_regular(str(tmp_path), path)
    assert open_descriptors() == before


def test_a_nul_among_the_first_8000_bytes_makes_a_file_binary() -> None:
    for profile in ChunkingProfile:
        assert decode(b"a" * 7999 + b"\0", profile) is None
        assert decode(b"a" * 8000 + b"\0", profile) == "a" * 8000 + "\0"


def test_each_maximal_invalid_part_becomes_one_replacement_character_and_the_byte_order_mark_stays() -> None:
    assert decode(b"\xef\xbb\xbfa\xff\xf0\x9f\x98b\xe2\x82", KILO) == "\ufeffa\ufffd\ufffdb\ufffd"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_text_in_the_extended_profile_only(codec: str) -> None:
    data = "\ufeffclass A:\r\n    x = '\U0001f600'\n".encode(codec)
    assert decode(data, EXTENDED) == "\ufeffclass A:\r\n    x = '\U0001f600'\n"
    assert decode(data, KILO) is None
    assert decode(data[2:], EXTENDED) is None


def test_utf_32_and_binary_data_that_begin_like_utf_16_stay_binary() -> None:
    assert decode("\ufeffabc".encode("utf-32-le"), EXTENDED) is None
    assert decode(b"\xff\xfe\x01\x00\x00\x00", EXTENDED) is None


@given(st.binary(max_size=200), st.sampled_from(ChunkingProfile))
def test_no_bytes_fail_to_decode_and_text_never_holds_lone_surrogates(data: bytes, profile: ChunkingProfile) -> None:
    text = decode(data, profile)
    if text is not None:
        text.encode()
