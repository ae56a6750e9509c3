"""Git's configuration, against git."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semindex.files.git import repository_at
from semindex.files.gitconfig import global_excludes_file, parse
from tests.files.repositories import git, write

TEXT = r"""
# a comment
[user]
    name = Somebody ; not part of it
[core] excludesFile = plain
[Core "Sub.Section"]
    key = "quoted # and ; kept"   # gone
    Two-Words = a "b  c" d
[core]
    flag
    empty =
    escapes = "a\tb\\\"c"
    long = one \
two
    EXCLUDESFILE = ~/last
"""


def test_settings_are_read_in_order_with_quotes_escapes_and_comments() -> None:
    assert list(parse(TEXT)) == [
        ("user.name", "Somebody"),
        ("core.excludesfile", "plain"),
        ("core.Sub.Section.key", "quoted # and ; kept"),
        ("core.Sub.Section.two-words", "a b  c d"),
        ("core.empty", ""),
        ("core.escapes", 'a\tb\\"c'),
        ("core.long", "one two"),
        ("core.excludesfile", "~/last"),
    ]


def test_reading_ends_at_the_first_thing_that_is_not_valid() -> None:
    assert list(parse("[core]\na = 1\n= 2\nb = 3\n")) == [("core.a", "1")]
    assert list(parse('[core]\na = "1\nb = 3\n')) == []
    assert list(parse("[core\na = 1\n")) == []
    assert list(parse("")) == []


# No tabs: of one in the middle, older versions of git make a space.
PARTS = ["a", "b c", " ", '"', "\\\\", '\\"', "\\n", "\\\n", "#", ";", "=", "[", "~/x", "ü", ".", "\\x"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_a_value_is_what_git_reads(tmp_path: Path, value: str) -> None:
    write(tmp_path, "config", text=f"[core]\n\tbefore = 1\n\texcludesFile = {value}\n\tafter = 2\n")
    ours = dict(parse((tmp_path / "config").read_text(encoding="utf-8")))
    try:
        gits = git(tmp_path, "config", "--file", "config", "--get", "core.excludesFile")
    except AssertionError:
        assert "core.after" not in ours  # Git refuses the whole file.
        return

    assert ours["core.excludesfile"] == gits.removesuffix("\n")
    assert ours["core.after"] == "2"


def test_the_file_that_git_would_use_is_found(git_repository: Path) -> None:
    repository = repository_at(str(git_repository))
    home = {"HOME": "/home/somebody"}
    write(git_repository, "system", text="[core]\nexcludesFile = /system\n")
    write(git_repository, "included", text="[core]\nexcludesFile = ~/included\n")
    write(git_repository, "global", text="[include]\npath = included\n")

    def chosen(**environ: str) -> str | None:
        return global_excludes_file(repository, {"GIT_CONFIG_NOSYSTEM": "1", **environ})

    assert chosen() is None
    assert chosen(**home) == "/home/somebody/.config/git/ignore"
    assert chosen(**home, XDG_CONFIG_HOME="/config") == "/config/git/ignore"
    with_system = {"GIT_CONFIG_NOSYSTEM": "0", "GIT_CONFIG_SYSTEM": str(git_repository / "system")}
    assert chosen(**home, **with_system) == "/system"
    with_both = {**with_system, "GIT_CONFIG_GLOBAL": str(git_repository / "global")}
    assert chosen(**home, **with_both) == "/home/somebody/included"

    git(git_repository, "config", "core.excludesFile", "relative")
    assert chosen(**home, **with_both) == str(git_repository / "relative")

    git(git_repository, "config", "core.excludesFile", "")
    assert chosen(**home, **with_both) is None


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    write(tmp_path, "loop", text="[include]\npath = loop\npath = loop\n[core]\nexcludesFile = /found\n")
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(tmp_path / "loop")}

    assert global_excludes_file(None, environ) == "/found"


def test_a_configuration_that_is_a_fifo_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(tmp_path / "config")}

    assert global_excludes_file(None, environ) is None
    writer = os.open(tmp_path / "config", os.O_RDWR)
    try:
        assert global_excludes_file(None, environ) is None
        os.write(writer, b"[core]\nexcludesFile = /found\n")
        assert global_excludes_file(None, environ) is None
    finally:
        os.close(writer)


@pytest.mark.parametrize("value", ["~", "~/", "~nobody-of-that-name/x"])
def test_a_home_that_is_unknown_leaves_the_path_as_it_is(tmp_path: Path, value: str) -> None:
    write(tmp_path, "config", text=f"[core]\nexcludesFile = {value}\n")
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(tmp_path / "config"), "HOME": "/home/me"}
    found = global_excludes_file(None, environ)

    assert found == {"~": "/home/me", "~/": "/home/me/"}.get(value, f"/{value}")
