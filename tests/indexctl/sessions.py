"""Shell sessions of documents, run for real: the commands of all ``console`` blocks, in one shell, and what they print.

Output is compared as people see it on a terminal, after what differs from run to run is masked.
"""

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

TIMEOUT = 120
"""Seconds for a whole session."""
_END = "\x1e"
"""Ends the output of a command; no program prints it."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MASKS = (
    (re.compile(r"\x1b\[[\d;]*m"), ""),  # colours
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b[\w-]{43}\b"), "TOKEN"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b\d\.\d\d\b"), "SCORE"),
    (re.compile(r"\b[\d,]+ [KM]iB\b"), "SIZE"),
    (re.compile(r" +$", re.MULTILINE), ""),
)


@frozen
class Command:
    """A line of a session."""

    text: str
    output: str
    """What the document says it prints; after a line ``…`` anything may follow."""


def commands_of(document: Path) -> list[Command]:
    """Return the commands of a document, in order; a line that ends in a backslash goes on in the next one."""
    session = "".join(_BLOCK.findall(document.read_text(encoding="utf-8")))
    parts = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    return [Command(*_split(part)) for part in parts]


def _split(part: str) -> tuple[str, str]:
    lines = part.splitlines()
    last = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
    return "\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :]).strip("\n")


def agrees(command: Command, printed: str) -> bool:
    """Say whether a command has printed what the document says."""
    expected, actual = masked(command.output), masked(printed)
    if expected.endswith("…"):
        return actual.startswith(expected.removesuffix("…"))
    return actual == expected


def masked(text: str) -> str:
    """Return text without what differs from run to run."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.strip("\n")


def run(commands: list[Command], home: Path) -> Iterator[tuple[Command, str]]:
    """Run a session in a shell whose standard output is a terminal, and yield what each command printed.

    Of what goes to standard error only refusals count: progress, which is a bar on a terminal, passes.
    """
    script = ["code=0"]
    for number, command in enumerate(commands):
        errors = home / f"errors-{number}"
        script += [f"exec 2>'{errors}'; (exit $code)", command.text, "code=$?; printf '\\036'"]
    output = _on_terminal("\n".join(script), home)
    for number, (command, printed) in enumerate(zip(commands, output.split(_END), strict=False)):
        refusals = re.findall(r"^indexctl: .*\n", (home / f"errors-{number}").read_text(), re.MULTILINE)
        yield command, printed.replace("\r\n", "\n") + "".join(refusals)


def _on_terminal(script: str, home: Path) -> str:
    ours, theirs = pty.openpty()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SEMANTIC_INDEX_", "XDG_", "GIT_"))
    }
    binaries = Path(sys.executable).parent
    environment = kept | {
        "HOME": str(home), "PATH": f"{binaries}:{kept['PATH']}", "TERM": "xterm", "COLUMNS": "200",
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        start_new_session=True,
    ) as shell:
        os.close(theirs)
        guard = threading.Timer(TIMEOUT, lambda: os.killpg(shell.pid, 9))
        guard.start()
        pieces: list[bytes] = []
        try:
            while piece := os.read(ours, 65536):
                pieces.append(piece)
        except OSError:  # how Linux says that the other side is closed
            pass
        finally:
            guard.cancel()
            os.close(ours)
    return b"".join(pieces).decode()
