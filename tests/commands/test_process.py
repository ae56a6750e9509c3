"""Parts of a cell's process that need no process: the bound of its end, its greeting, the names of its roots."""

import json
import os
from pathlib import Path

import pytest
import trio
import trio.testing

from semindex.commands.configured import Configured
from semindex.commands.process import HARD_END_MARGIN, CellProcess, greeting, registration_id
from semindex.config import CellConfig, ShutdownConfig


class Exited(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CellProcess:
    """A process that has not begun, with graces of 3 and 4 seconds; ending at once raises Exited."""

    def exit_(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", exit_)
    shutdown = ShutdownConfig(request_grace_ms=3000, drain_grace_ms=4000)
    config = CellConfig(state_directory=tmp_path, cache_directory=tmp_path, shutdown=shutdown)
    return CellProcess(Configured(config, has_file=False, roots=()), has_life_line=False)


async def test_an_end_that_takes_longer_than_its_graces_is_cut(
    process: CellProcess, autojump_clock: trio.testing.MockClock
) -> None:
    process._is_open = True
    with pytest.RaisesGroup(pytest.RaisesExc(Exited, match="1")):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process._bound_the_end, nursery.cancel_scope)
            await trio.sleep(100)
            began = trio.current_time()
            process._ending.set()
            await trio.sleep(3 + 4 + HARD_END_MARGIN - 0.001)
            await trio.sleep_forever()

    assert trio.current_time() - began == pytest.approx(3 + 4 + HARD_END_MARGIN)


async def test_an_end_before_the_doors_are_open_waits_for_nothing(process: CellProcess) -> None:
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process._bound_the_end, nursery.cancel_scope)
            process._ending.set()
            await trio.sleep_forever()


def test_the_greeting_of_a_configured_cell_leaves_the_token_to_the_clients_environment() -> None:
    text = greeting("http://127.0.0.1:7790", None)

    entry = json.loads(text[text.index("{") :])["mcpServers"]["semindex"]
    assert entry["headers"] == {"Authorization": "Bearer ${SEMANTIC_INDEX_MCP_TOKEN}"}
    assert "{" not in greeting("unix:/run/cell.socket", None)


@pytest.mark.parametrize(("path", "taken", "expected"), [
    ("/src/my project", [], "my-project"),
    ("/src/naïve.js", [], "na-ve.js"),
    ("/", [], "root"),
    ("/src/日本", [], "root"),
    (f"/src/{'x' * 300}", [], "x" * 100),
    ("/src/shop", ["shop"], "shop-3cb8c763"),
    ("/other/shop", ["shop"], "shop-0de42ee8"),
])  # fmt: skip
def test_a_root_has_a_readable_name_of_its_own(path: str, taken: list[str], expected: str) -> None:
    assert registration_id(path, taken) == expected
