"""The process of a cell: from the lock over open doors to an orderly end, and who may ask for that.

What is told to people and programs lies here too: the greeting, the discovery file, the phases in the lock file.
"""

import hashlib
import json
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from semindex import __version__, discovery, secrets
from semindex.commands.configured import Configured
from semindex.commands.startup import quieten_collector
from semindex.model.errors import ConfigurationError, PathRefused
from semindex.state.cell_directory import CellDirectory, Phase, open_cell_directory

if TYPE_CHECKING:
    from semindex.cell.cell import Cell

logger = logging.getLogger(__name__)

HARD_END_MARGIN = 1.0
"""Seconds beyond its graces after which an end that is not over is cut."""


class CellProcess:
    """One life of a cell."""

    def __init__(self, chosen: Configured, *, has_life_line: bool) -> None:
        """With a life line, the end of standard input ends the cell. Raises ConfigurationError for unusable tokens."""
        self._config = chosen.config
        self._chosen = chosen
        self._given_tokens = chosen.tokens()
        self._has_life_line = has_life_line
        self._ending = trio.Event()
        self._is_open = False

    async def run(self) -> None:
        """Serve until told to end. Raises ConfigurationError, CellLocked and what opening a cell raises, in a group."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_signals)
            if self._has_life_line:
                nursery.start_soon(self._watch_life_line)
            nursery.start_soon(self._bound_the_end, nursery.cancel_scope)
            await self._live()
            nursery.cancel_scope.cancel(reason="the cell has ended")

    async def _live(self) -> None:
        config = self._config
        async with open_cell_directory(config.state_directory, config.shutdown.handover) as directory:
            # Slow to import, and so only once it is known that this process may use the directory.
            from semindex.http.listener import bound
            from semindex.http.serving import open_doors
            from semindex.service import open_cell

            quieten_collector()
            async with open_cell(config, directory) as cell:
                tokens, token_files = self._tokens()
                with bound(config.listen) as endpoint:
                    async with open_doors(cell, tokens, endpoint, config):
                        self._is_open = True
                        with self._announced(endpoint.url, token_files):
                            await self._serve(cell, directory, endpoint.url)
                        cell.begin_stopping()
                        await directory.announce(Phase.STOPPING, endpoint.url)
                logger.info("no more calls; accepted work is brought to its end")
        logger.info("ended")

    async def _serve(self, cell: "Cell", directory: CellDirectory, url: str) -> None:
        """Restore what is registered while the doors are open, and wait until told to end."""
        from semindex.service import restore

        await directory.announce(Phase.STARTING, url)
        async with trio.open_nursery() as nursery:

            async def make_ready() -> None:
                await restore(cell)
                await register_roots(cell, self._chosen.roots)
                await directory.announce(Phase.READY, url)
                logger.info("ready on %s", url)

            nursery.start_soon(make_ready)
            await self._ending.wait()
            nursery.cancel_scope.cancel(reason="the cell is ending")

    # Who may end it

    async def _watch_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            number = await anext(signals)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)  # a second one ends the process at once, whatever its loop is doing
        logger.info("ending in order because of %s; another signal ends at once", signal.Signals(number).name)
        self._ending.set()

    async def _watch_life_line(self) -> None:
        descriptor = sys.stdin.fileno()
        while True:
            with suppress(PermissionError):  # a file cannot be waited for, and never blocks
                await trio.lowlevel.wait_readable(descriptor)
            if not os.read(descriptor, 65536):
                break
        logger.info("ending in order because standard input has ended")
        self._ending.set()

    async def _bound_the_end(self, everything: trio.CancelScope) -> None:
        """Cut an end that takes too long: what a kill leaves behind is repaired by the next start."""
        await self._ending.wait()
        if not self._is_open:
            everything.cancel(reason="told to end before the doors were open")
        await trio.sleep(self._config.shutdown.graces + HARD_END_MARGIN)
        logger.critical("the end took longer than its graces and is cut")
        os._exit(1)

    # What is told

    def _tokens(self) -> tuple[secrets.Tokens, tuple[Path, Path] | None]:
        """Return the tokens, and the files that hold them if they are the cell's own."""
        if self._given_tokens is not None:
            return self._given_tokens, None
        directory = self._config.state_directory
        return secrets.own_tokens(directory), secrets.token_files(directory)

    @contextmanager
    def _announced(self, url: str, token_files: tuple[Path, Path] | None) -> Iterator[None]:
        """Let clients find a cell with tokens of its own for as long as it takes requests; print the greeting."""
        directory = self._config.state_directory
        if token_files is not None:
            # First, so that whoever has read the greeting finds the cell.
            discovery.announce(directory, discovery.Discovery(url, os.getpid(), *token_files))
        try:
            sys.stdout.write(greeting(url, token_files))
            sys.stdout.flush()
            yield
        finally:
            if token_files is not None:
                discovery.withdraw(directory)


def greeting(url: str, token_files: tuple[Path, Path] | None) -> str:
    """Return what is printed once a cell listens: where, which files hold its tokens, and an entry for MCP clients."""
    lines = [f"semindex {__version__} listens on {url}"]
    variable = secrets.MCP_TOKEN
    if token_files is not None:
        control, mcp = token_files
        lines += [f"control token: {control}", f"MCP token: {mcp}"]
        lines += ["before an MCP client is started:", f'  export {variable}="$(cat {shlex.quote(str(mcp))})"']
    if url.startswith("http:"):
        # The entry is as good as public: it ends in repositories, so that the token stays in the client's environment.
        headers = {"Authorization": f"Bearer ${{{variable}}}"}
        entry = {"type": "http", "url": f"{url}/mcp", "headers": headers}
        lines += ["entry for MCP clients:", json.dumps({"mcpServers": {"semindex": entry}}, indent=2)]
    return "\n".join(lines) + "\n"


async def register_roots(cell: "Cell", roots: Collection[Path]) -> None:
    """Register each root that no registration is for, primary checkouts before their worktrees.

    A root that is missing now, but registered, comes back by itself. Raises ConfigurationError for any other.
    """
    known = {status.registration.path: status.registration.id for status in cell.leases.statuses()}
    places = []
    for root in roots:
        try:
            places.append(await cell.leases.places.registrable(str(root), force=False))
        except PathRefused as error:
            if str(root) not in known:
                raise ConfigurationError(f"--root: {error}") from error
            logger.warning("%s", error)
    for place in sorted(places, key=lambda place: place.primary is not None):
        if place.path not in known:
            known[place.path] = registration_id(place.path, known.values())
            await cell.leases.register(known[place.path], place.path)


def registration_id(path: str, taken: Collection[str]) -> str:
    """Return the id under which a root is registered: its name, with a digest of its path if that is taken."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path)).strip("-")[:100] or "root"
    return name if name not in taken else f"{name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"
