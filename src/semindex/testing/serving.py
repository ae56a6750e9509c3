"""A cell as its users run it: a real ``semindex serve`` process, in a home of its own that nothing else reaches."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, field

TIMEOUT = 60
"""Seconds for a cell to listen, and to end in order."""


@define
class ServedCell:
    """One cell over its lives; as a context manager it is started, and killed if it still runs at the end."""

    home: Path
    """Becomes its HOME; the log of all its lives lies there."""
    arguments: Sequence[str] = ()
    """Of ``semindex serve``."""
    variables: dict[str, str] = field(factory=dict)
    """Of the environment, for the cell and for its clients."""
    program: str = "semindex"
    """The module that is run as the command."""
    url: str = ""
    """Where it listens; set by each start."""
    _process: "subprocess.Popen[str] | None" = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the cell, in which nothing of ours has a say in what it does."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SEMANTIC_INDEX_", "XDG_", "GIT_"))
        }
        return kept | {"HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "TERM": "dumb"} | self.variables

    @property
    def client_environment(self) -> dict[str, str]:
        """Return the environment of a client; without tokens in it, a cell is found by the file that it leaves."""
        is_configured = any(name.startswith("SEMANTIC_INDEX_CONTROL_TOKEN") for name in self.variables)
        return self.environment | ({"SEMANTIC_INDEX_URL": self.url} if is_configured else {})

    @property
    def pid(self) -> int:
        """Return the id of the running process."""
        return self.process.pid

    @property
    def process(self) -> "subprocess.Popen[str]":
        """Return the running process."""
        assert self._process is not None, "it has not been started"
        return self._process

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> None:
        """Start a life, and return once it listens."""
        self.home.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.program, "serve", *self.arguments],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        is_readable, _, _ = select.select([self._process.stdout], [], [], TIMEOUT)
        greeting = self._process.stdout.readline() if is_readable else ""
        if " listens on " not in greeting:
            self.kill()
            raise RuntimeError(f"The cell has not started: {greeting}{self.log.read_text()}")
        self.url = greeting.partition(" listens on ")[2].rstrip("\n")

    @property
    def log(self) -> Path:
        """Return the file that holds what it wrote to standard error."""
        return self.home / "serve.log"

    def stop(self) -> int:
        """End it in order, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at once."""
        self.signal(signal.SIGKILL)
        self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and wait for nothing."""
        self.process.send_signal(number)

    def let_go(self) -> None:
        """End its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        """Wait until it has ended, and return its exit code; it is killed when that takes too long."""
        process = self.process
        self._process = None
        try:
            return process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()
