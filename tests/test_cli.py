"""The command line: exit codes, and the one sentence a person gets."""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from semindex import __version__, cli
from semindex.model.errors import CellLocked, ConfigurationError, NotReady


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], None]:
    """Give the command line a subcommand ``act`` that does as it is told."""

    def install(act: Callable[[], int]) -> None:
        def add_parser(subparsers: Any) -> None:
            def run(_: Namespace) -> int:
                return act()

            subparsers.add_parser("act").set_defaults(run=run)

        command = ModuleType("act")
        vars(command)["add_parser"] = add_parser
        monkeypatch.setattr(cli, "COMMANDS", (command,))

    return install


def failing(error: BaseException) -> Callable[[], int]:
    def act() -> int:
        raise error

    return act


def test_the_exit_code_is_that_of_the_subcommand(behave: Callable[[Callable[[], int]], None]) -> None:
    behave(lambda: 7)

    assert cli.main(["act"]) == 7


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in the groups of two nurseries"])
def test_an_error_raised_on_purpose_is_one_sentence_and_exit_code_1(
    behave: Callable[[Callable[[], int]], None], capsys: pytest.CaptureFixture[str], nested: bool
) -> None:
    error: Exception = NotReady("The index is not ready; try again in a minute.")
    if nested:
        error = ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
    behave(failing(error))

    assert cli.main(["act"]) == 1
    assert capsys.readouterr() == ("", "semindex: The index is not ready; try again in a minute.\n")


@pytest.mark.parametrize("error", [ConfigurationError("No."), CellLocked("No.")])
def test_a_cell_that_cannot_start_as_it_was_asked_to_is_exit_code_2(
    behave: Callable[[Callable[[], int]], None], capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    behave(failing(ExceptionGroup("nursery", [error])))

    assert cli.main(["act"]) == 2
    assert capsys.readouterr() == ("", "semindex: No.\n")


def test_an_interrupt_is_exit_code_130_even_beside_an_error(behave: Callable[[Callable[[], int]], None]) -> None:
    behave(failing(BaseExceptionGroup("nursery", [KeyboardInterrupt(), NotReady("Cut short.")])))

    assert cli.main(["act"]) == 130


def test_a_bug_keeps_its_traceback(behave: Callable[[Callable[[], int]], None]) -> None:
    behave(failing(ExceptionGroup("nursery", [ZeroDivisionError("a bug"), NotReady("Not the point.")])))

    with pytest.RaisesGroup(ZeroDivisionError):
        cli.main(["act"])


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["--no-such-option"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert "usage: semindex" in capsys.readouterr().err


def test_the_version_is_printed_by_the_module_as_by_the_script() -> None:
    done = subprocess.run([sys.executable, "-m", "semindex", "--version"], check=True, capture_output=True, text=True)

    assert done.stdout == f"semindex {__version__}\n"


def test_nothing_is_said_when_the_reader_of_the_output_went_away() -> None:
    program = """
import sys
from types import ModuleType
from semindex import cli
command = ModuleType("flood")
command.add_parser = lambda subparsers: subparsers.add_parser("flood").set_defaults(run=run)
def run(arguments):
    while True:
        sys.stdout.write("a line that no one reads\\n")
cli.COMMANDS = (command,)
sys.exit(cli.main(["flood"]))
"""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, timeout=30)
    os.close(writer)

    assert done.returncode == 141
    assert done.stderr == b""
