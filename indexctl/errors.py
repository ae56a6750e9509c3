"""How a command can end: its exit codes, and the errors behind them, each with one sentence for people."""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a script is told (docs/indexctl.md, For scripts)."""

    DONE = 0
    FAILED = 1
    MISUSED = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


class CommandError(Exception):
    """The command did not do what it was asked to do."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED


class Misused(CommandError):
    """An argument or a variable is wrong: a retry changes nothing."""

    exit_code = ExitCode.MISUSED


class NotFound(CommandError):
    """There is no such registration, operation or token."""

    exit_code = ExitCode.NOT_FOUND


class Conflict(CommandError):
    """It contradicts what is registered."""

    exit_code = ExitCode.CONFLICT


class Unavailable(CommandError):
    """No service, or none that can do it now: worth a retry."""

    exit_code = ExitCode.UNAVAILABLE


class TimedOut(CommandError):
    """What was waited for did not happen within ``--timeout``."""

    exit_code = ExitCode.UNAVAILABLE
