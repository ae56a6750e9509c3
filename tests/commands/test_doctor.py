"""``semindex doctor``: what it finds, and what it says to do."""

import json
import os
import shutil
import socket
import stat
from collections import namedtuple
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from semindex import cli
from semindex.commands import checks
from semindex.commands.checks import CHECKS, Verdict, examine
from semindex.commands.configured import Configured
from semindex.config import CellConfig, ListenConfig
from semindex.model.errors import ConfigurationError
from semindex.parsing import grammars
from semindex.ports import VectorStore
from semindex.state.cell_directory import Phase, open_cell_directory
from semindex.stores.memory import MemoryVectorStore
from semindex.testing.faults import Fault, FaultPlan
from semindex.testing.intercept import Recorder, intercept

OK, WARN, FAIL = Verdict.OK, Verdict.WARN, Verdict.FAIL


@pytest.fixture
def config(tmp_path: Path) -> CellConfig:
    """A configuration below a directory that holds nothing but an empty root."""
    root = tmp_path / "root"
    root.mkdir()
    return CellConfig(
        state_directory=tmp_path / "state",
        cache_directory=tmp_path / "cache",
        allowed_roots=(root,),
        listen=ListenConfig(port=0),
    )


async def found(name: str, config: CellConfig) -> tuple[Verdict, str]:
    """The finding of one check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", {name: CHECKS[name]})
        [finding] = await examine(Configured(config, has_file=False, roots=()))
    return finding.verdict, finding.message


def test_everything_is_checked_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "root").mkdir()

    assert cli.main(["doctor", "--root", str(tmp_path / "root"), "--port", "0", "--json"]) == 0

    findings = json.loads(capsys.readouterr().out)["checks"]
    assert [finding["name"] for finding in findings] == list(CHECKS)
    assert "FAIL" not in {finding["verdict"] for finding in findings}
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_configuration_that_cannot_be_used_is_the_one_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--config", str(tmp_path / "missing.json")]) == 1
    assert capsys.readouterr().out.startswith(
        f"FAIL  configuration      The configuration file {tmp_path}/missing.json"
    )


async def test_a_missing_root_fails(config: CellConfig) -> None:
    config.allowed_roots[0].rmdir()

    assert await found("configuration", config) == (
        FAIL, f"These roots are missing: {config.allowed_roots[0]}. Create them, or correct the configuration.",
    )  # fmt: skip


async def test_a_secret_file_that_others_may_read_fails(config: CellConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config.state_directory.mkdir()
    token = config.state_directory / "mcp.token"
    token.write_text("a token of some length")
    token.chmod(0o644)

    verdict, message = await found("secrets", config)

    assert (verdict, f"chmod 600 {token}" in message) == (FAIL, True)


async def test_a_state_directory_that_a_start_would_make_private_is_fine(config: CellConfig) -> None:
    config.state_directory.mkdir(mode=0o755)

    assert (await found("state directory", config))[0] is OK
    assert stat.S_IMODE(config.state_directory.stat().st_mode) == 0o755
    async with open_cell_directory(config.state_directory):
        assert stat.S_IMODE(config.state_directory.stat().st_mode) == 0o700


async def test_a_state_directory_that_a_start_would_refuse_fails_with_its_words(config: CellConfig) -> None:
    config.state_directory.mkdir(mode=0o755)
    (config.state_directory / "thesis.tex").touch()
    with pytest.raises(ConfigurationError) as refusal:
        async with open_cell_directory(config.state_directory):
            pass

    assert await found("state directory", config) == (FAIL, str(refusal.value))
    assert f"chmod 700 {config.state_directory}" in str(refusal.value)


async def test_a_check_of_the_store_that_is_cut_leaves_nothing_behind(
    config: CellConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = MemoryVectorStore()
    store = intercept(vectors, "store", [FaultPlan({"store.create": [Fault.LOST]})])

    @asynccontextmanager
    async def open_vector_store(*_: object) -> AsyncIterator[VectorStore]:
        yield store

    monkeypatch.setattr(checks, "open_vector_store", open_vector_store)

    assert await found("vector store", config) == (FAIL, "The store does not answer.")
    assert await vectors.collections() == []
    assert (await found("vector store", config))[0] is OK


async def test_what_another_check_of_the_store_left_behind_is_in_nobodys_way(
    config: CellConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, names = MemoryVectorStore(), Recorder()
    store = intercept(vectors, "store", [names])

    @asynccontextmanager
    async def open_vector_store(*_: object) -> AsyncIterator[VectorStore]:
        yield store

    monkeypatch.setattr(checks, "open_vector_store", open_vector_store)
    for _ in range(2):
        assert (await found("vector store", config))[0] is OK

    first, second = (call.args[0] for call in names.of("store.create"))
    assert first != second


async def test_a_directory_that_cannot_be_made_fails(config: CellConfig, tmp_path: Path) -> None:
    config = config.model_copy(update={"cache_directory": tmp_path / "file" / "cache"})
    (tmp_path / "file").touch()

    assert await found("cache directory", config) == (
        FAIL, f"{tmp_path}/file cannot be written; choose another directory, or allow it.",
    )  # fmt: skip


@pytest.mark.parametrize(("free", "expected"), [(1 << 40, OK), (1 << 30, WARN), (1 << 20, FAIL)])
async def test_little_space_is_told(
    config: CellConfig, monkeypatch: pytest.MonkeyPatch, free: int, expected: Verdict
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 50, 0, free))

    assert (await found("cache directory", config))[0] is expected


async def test_a_grammar_that_does_not_load_fails(config: CellConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "probe", lambda: {"rust": "The grammar rust cannot be loaded: it is gone."})

    assert await found("grammars", config) == (
        FAIL, "The grammar rust cannot be loaded: it is gone. Install semindex again. Missing: rust.",
    )  # fmt: skip


async def test_too_few_watches_are_told_with_the_command_that_allows_more(
    config: CellConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "a/b", "c", "node_modules", "node_modules/d"):
        (config.allowed_roots[0] / name).mkdir()
    limits: dict[str, int | None] = {"max_user_watches": 3, "max_user_instances": 128}
    monkeypatch.setattr(checks, "_inotify_limit", limits.get)

    verdict, message = await found("watching", config)
    assert (verdict, message.endswith("Raise it: sysctl fs.inotify.max_user_watches=16")) == (WARN, True)
    assert message.startswith("4 directories")

    limits["max_user_watches"] = 4
    assert (await found("watching", config))[0] is OK
    limits.clear()
    assert (await found("watching", config))[0] is WARN


async def test_a_port_that_is_taken_fails_unless_the_cell_itself_has_it(config: CellConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = config.model_copy(update={"listen": ListenConfig(port=port)})
        verdict, message = await found("listening", config)
        assert (verdict, f"Port {port} cannot be listened on" in message) == (FAIL, True)

        async with open_cell_directory(config.state_directory) as directory:
            await directory.announce(Phase.READY, "http://127.0.0.1:7790")
            expected = f"The cell is running: process {os.getpid()} (ready, http://127.0.0.1:7790)."
            assert await found("listening", config) == (OK, expected)


async def test_a_socket_is_tried_and_removed(config: CellConfig, tmp_path: Path) -> None:
    path = tmp_path / "cell.socket"
    config = config.model_copy(update={"listen": ListenConfig(socket=path)})

    assert (await found("listening", config))[0] is OK
    assert not path.exists()
    path.write_text("something else")
    assert await found("listening", config) == (FAIL, f"{path} is not a socket; choose another path for listen.socket.")


async def hang(_chosen: Configured) -> tuple[Verdict, str]:
    await trio.sleep_forever()


def break_(_chosen: Configured) -> tuple[Verdict, str]:
    raise FileNotFoundError(2, "No such file or directory", "/nowhere")


@pytest.mark.parametrize(("check", "message"), [
    (hang, "There was no answer within 0 seconds."),
    (break_, "[Errno 2] No such file or directory: '/nowhere'"),
])  # fmt: skip
async def test_a_check_that_hangs_or_breaks_is_a_finding(
    config: CellConfig, monkeypatch: pytest.MonkeyPatch, check: checks.Check, message: str
) -> None:
    monkeypatch.setattr(checks, "CHECKS", {"check": check})
    monkeypatch.setattr(checks, "PATIENCE", 0.05)

    [finding] = await examine(Configured(config, has_file=False, roots=()))

    assert (finding.verdict, finding.message) == (FAIL, message)
