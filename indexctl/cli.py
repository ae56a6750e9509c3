"""The ``indexctl`` command: from the command line to an exit code.

What is slow to import, for terminals, is imported only where it is needed: a script waits for none of it.
"""

import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from indexctl.arguments import parse
from indexctl.client import Client
from indexctl.errors import CommandError, ExitCode
from indexctl.locating import locate
from indexctl.output import print_result
from semindex.terminal import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (of this process, if none is given) and return its exit code."""
    if sys.stdout is None:  # closed by whoever started this process
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            return main(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _unwound_by_sigterm():
            _run(sys.argv[1:] if arguments is None else arguments)
    except CommandError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return ExitCode.READER_GONE
    except OSError as error:
        # Those of the network have become CommandErrors.
        _drop_output()
        _complain(f"The output cannot be written: {error.strerror}.")
        return ExitCode.FAILED
    return ExitCode.DONE


def _run(arguments: Sequence[str]) -> None:
    try:
        chosen = parse(arguments)
        result = chosen.run(Client(locate, chosen.timeout), chosen)
        if result is not None:
            print_result(result, as_json=chosen.json)
    finally:
        # Here, where it may fail: help, too, has written something before it ends the process.
        sys.stdout.flush()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"indexctl: {printable(sentence)}\n")


def _drop_output() -> None:
    """Forget what is not written yet: the interpreter, flushing at its end, would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Let SIGTERM, too, leave the terminal as it was."""

    def end(*_: object) -> None:
        sys.exit(ExitCode.TERMINATED)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
