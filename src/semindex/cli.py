"""The ``semindex`` command: arguments, exit codes, and what a person sees when something went wrong.

Exit codes: 0 done, 1 refused or failed with one sentence on standard error, 2 wrong usage, a configuration that cannot
be used, or a state directory that another process holds, 130 interrupted, 141 the reader of standard output went away.
Anything else is a bug and shows its traceback. Starting up is quick: no grammar, array library or database is imported
before a subcommand needs it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from semindex import __version__
from semindex.commands import chunks, doctor, serve, try_
from semindex.model.errors import CellLocked, ConfigurationError, SemindexError, first_of

COMMANDS: tuple[ModuleType, ...] = (serve, try_, doctor, chunks)

REFUSED = 1
MISUSED = 2
INTERRUPTED = 130
READER_GONE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (of this process, if none is given) and return its exit code."""
    # Worker processes start as "python -m …", which would import from whatever directory the user is in.
    os.environ["PYTHONSAFEPATH"] = "1"
    chosen = _parser().parse_args(arguments)
    code = 0
    # The starred form: these come alone, or in the groups that nurseries raise.
    try:
        code = chosen.run(chosen)
        sys.stdout.flush()
    except* SemindexError as group:
        error = first_of(group)
        sys.stderr.write(f"semindex: {error}\n")
        code = MISUSED if isinstance(error, ConfigurationError | CellLocked) else REFUSED
    except* BrokenPipeError:
        # Else the interpreter, flushing at exit, would complain about the same pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = READER_GONE
    except* KeyboardInterrupt:
        code = INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="semindex", description="A semantic index of source code, kept right while the code is edited."
    )
    parser.add_argument("--version", action="version", version=f"semindex {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser
