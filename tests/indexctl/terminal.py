"""A client on a terminal: a real pseudo-terminal, and all that was painted on it."""

import codecs
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from semindex.testing.serving import ServedCell

PROGRAM = (sys.executable, "-c", "import sys; from indexctl.cli import main; sys.exit(main())")
TIMEOUT = 60


@define
class Painted:
    """A client, and its terminal."""

    process: "subprocess.Popen[bytes]"
    descriptor: int
    output: str = ""
    _decoder: codecs.IncrementalDecoder = field(factory=codecs.getincrementaldecoder("utf-8"))

    def until(self, text: str) -> None:
        """Read until a text has been painted."""
        while text not in self.output:
            assert self._read(), f"the client has ended; painted: {self.output!r}"

    def end(self) -> int:
        """Read until the client has ended, and return its exit code."""
        deadline = time.monotonic() + TIMEOUT
        while self._read():
            assert time.monotonic() < deadline, f"the client goes on for {TIMEOUT} seconds after it was to end"
        return self.process.wait(TIMEOUT)

    def send(self, number: signal.Signals) -> None:
        """Send the client a signal."""
        self.process.send_signal(number)

    def _read(self) -> bool:
        readable, _, _ = select.select([self.descriptor], [], [], TIMEOUT)
        assert readable, f"nothing was painted for {TIMEOUT} seconds after {self.output!r}"
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.output += self._decoder.decode(data)
        return bool(data)


@contextmanager
def on_terminal(cell: ServedCell, *arguments: str, program: Sequence[str] = PROGRAM) -> Iterator[Painted]:
    """Run a client on a terminal of 100 columns; it is killed if it still runs at the end."""
    ours, theirs = pty.openpty()
    environment = cell.client_environment | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen(
        [*program, *arguments], env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Painted(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
