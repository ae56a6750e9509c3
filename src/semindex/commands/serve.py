"""``semindex serve``: run a cell until it is told to end, by a signal or by the end of its standard input."""

import argparse
import hashlib
import json
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semindex import __version__
from semindex.model.errors import ConfigurationError, PathRefused

if TYPE_CHECKING:
    import trio

    from semindex.cell.cell import Cell
    from semindex.config import CellConfig
    from semindex.http.listener import Endpoint
    from semindex.secrets import Tokens
    from semindex.state.cell_directory import CellDirectory

logger = logging.getLogger(__name__)

MCP_TOKEN_VARIABLE = "SEMANTIC_INDEX_MCP_TOKEN"
HARD_END_MARGIN = 1.0
"""Seconds beyond its graces after which an end that is not over is over all the same."""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve",
        help="keep directories indexed, and answer searches over HTTP and MCP",
        description="Run a cell until SIGTERM or SIGINT. Without a configuration file, name at least one directory: it is "
        "registered, and state and tokens are kept below the XDG directories.",
    )
    add_configuration_arguments(parser)
    parser.add_argument("--log-format", choices=("json", "text"), help="default: text on a terminal, else json")
    parser.add_argument(
        "--exit-on-stdin-eof", action="store_true", help="end in order when standard input ends, as by SIGTERM"
    )
    parser.set_defaults(run=run)


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose and override a cell's configuration."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration (default: $SEMANTIC_INDEX_CONFIG_FILE, else none)"
    )
    parser.add_argument(
        "--root", action="append", default=[], type=Path, metavar="DIR", help="a directory to allow and to register"
    )
    parser.add_argument("--port", type=_port, metavar="N", help="port on 127.0.0.1, 0 for any (default: 7790)")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="a Unix socket to listen on, instead of a port")


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import trio

    from semindex.observe import log

    log.configure(arguments.log_format or ("text" if sys.stderr.isatty() else "json"))
    config, is_configured = configuration(arguments)
    roots = [Path(os.path.abspath(root)) for root in arguments.root]
    trio.run(_serve, config, roots, is_configured, arguments.exit_on_stdin_eof)
    return 0


def configuration(arguments: argparse.Namespace) -> tuple["CellConfig", bool]:
    """Return the configuration that the arguments choose, and whether a file is behind it. Raises ConfigurationError."""
    from semindex.config import config_file, load_config, zero_configuration

    roots = tuple(Path(os.path.abspath(root)) for root in arguments.root)
    file = arguments.config or config_file()
    if file is None:
        if not roots:
            raise ConfigurationError(
                "Nothing says what to index: name a directory with --root, or a configuration file with --config."
            )
        config = zero_configuration(roots)
        _require_roots(config)
    else:
        config = load_config(file)
        config = config.model_copy(update={"allowed_roots": (*config.allowed_roots, *roots)})
    changes: dict[str, Any] = {}
    if arguments.port is not None:
        changes |= {"port": arguments.port, "socket": None}
    if arguments.socket is not None:
        changes |= {"socket": Path(os.path.abspath(arguments.socket))}
    return config.model_copy(update={"listen": config.listen.model_copy(update=changes)}), file is not None


def _require_roots(config: "CellConfig") -> None:
    """Refuse a missing root at the first start; later it may be a disk that is not there just now."""
    if not config.state_directory.exists():
        for root in config.allowed_roots:
            if not root.is_dir():
                raise ConfigurationError(f"There is no directory {root}; correct --root.")


async def _serve(config: "CellConfig", roots: Sequence[Path], is_configured: bool, has_life_line: bool) -> None:
    import trio

    ending, opened = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:

        async def end() -> None:
            await ending.wait()
            if not opened.is_set():
                nursery.cancel_scope.cancel(reason="told to end while opening")
            await trio.sleep(graces(config) + HARD_END_MARGIN)
            logger.critical("the end took too long and is cut; the next start repairs what that has left")
            os._exit(1)

        nursery.start_soon(_watch_signals, ending)
        if has_life_line:
            nursery.start_soon(_watch_life_line, ending)
        nursery.start_soon(end)
        await _run_cell(config, roots, is_configured, ending, opened)
        nursery.cancel_scope.cancel(reason="the cell has ended")


def graces(config: "CellConfig") -> float:
    """Return the seconds that an orderly end may take for calls and for accepted work together."""
    return (config.shutdown.request_grace_ms + config.shutdown.drain_grace_ms) / 1000


async def _run_cell(
    config: "CellConfig", roots: Sequence[Path], is_configured: bool, ending: "trio.Event", opened: "trio.Event"
) -> None:
    import trio

    from semindex.http.listener import bound
    from semindex.http.serving import open_doors
    from semindex.service import open_cell
    from semindex.state.cell_directory import Phase

    async with open_cell(config) as (cell, directory):
        tokens, token_files = _tokens(config, is_configured)
        with bound(config.listen) as endpoint:
            async with open_doors(cell, tokens, endpoint, grace=config.shutdown.request_grace_ms / 1000):
                opened.set()
                await directory.announce(Phase.STARTING, endpoint.url)
                with _announced(config, endpoint, token_files):
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(_restore, cell, directory, endpoint, roots)
                        await ending.wait()
                        nursery.cancel_scope.cancel(reason="the cell is ending")
                cell.begin_stopping()
                await directory.announce(Phase.STOPPING, endpoint.url)
            logger.info("no more calls; accepted work is brought to its end")
    logger.info("ended")


async def _restore(cell: "Cell", directory: "CellDirectory", endpoint: "Endpoint", roots: Sequence[Path]) -> None:
    """Open what is registered, and register the roots that are not."""
    from semindex.service import restore
    from semindex.state.cell_directory import Phase

    await restore(cell)
    await _register(cell, roots)
    await directory.announce(Phase.READY, endpoint.url)
    logger.info("ready on %s with %d registrations", endpoint.url, len(cell.leases.statuses()))


async def _register(cell: "Cell", roots: Sequence[Path]) -> None:
    """Register each root that no registration is for, primary checkouts before their worktrees.

    A root that is missing now, and is registered, comes back by itself. Raises ConfigurationError for any other.
    """
    known = {status.registration.path: status.registration.id for status in cell.leases.statuses()}
    places = []
    for root in roots:
        try:
            places.append(await cell.leases.places.directory(str(root)))
        except PathRefused as error:
            if str(root) not in known:
                raise ConfigurationError(f"{error} It was named by --root.") from error
            logger.warning("%s", error)
    for place in sorted(places, key=lambda place: place.primary is not None):
        if place.path not in known:
            known[place.path] = registration_id(place.path, known.values())
            await cell.leases.register(known[place.path], place.path)


def registration_id(path: str, taken: Collection[str]) -> str:
    """Return the id under which a root is registered: its name, and a digest of its path if that is taken."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path)).strip("-")[:100] or "root"
    return name if name not in taken else f"{name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"


def _tokens(config: "CellConfig", is_configured: bool) -> "tuple[Tokens, tuple[Path, Path] | None]":
    """Return the cell's tokens, and the files that hold them if it made them itself."""
    from semindex.secrets import configured_tokens, names_tokens, own_tokens, token_files

    if is_configured or names_tokens(os.environ):
        return configured_tokens(os.environ), None
    return own_tokens(config.state_directory), token_files(config.state_directory)


@contextmanager
def _announced(config: "CellConfig", endpoint: "Endpoint", token_files: tuple[Path, Path] | None) -> Iterator[None]:
    """Tell people where the cell is, and clients of a cell without configuration as long as it takes requests."""
    from semindex import discovery

    sys.stdout.write(greeting(endpoint.url, token_files))
    sys.stdout.flush()
    if token_files is None:
        yield
        return
    discovery.announce(config.state_directory, discovery.Discovery(endpoint.url, os.getpid(), *token_files))
    try:
        yield
    finally:
        discovery.withdraw(config.state_directory)


def greeting(url: str, token_files: tuple[Path, Path] | None) -> str:
    """Return what is printed once the cell listens: where, which files hold its tokens, and an entry for MCP clients."""
    lines = [f"semindex {__version__} listens on {url}"]
    token = f"Bearer ${{{MCP_TOKEN_VARIABLE}}}"
    if token_files is not None:
        lines += [f"control token: {token_files[0]}", f"MCP token: {token_files[1]}"]
        token = f"!cat {shlex.quote(str(token_files[1]))}"
    if url.startswith("http"):
        entry = {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": token}}
        lines += ["MCP client entry:", json.dumps({"mcpServers": {"semindex": entry}}, indent=2)]
    return "\n".join(lines) + "\n"


async def _watch_signals(ending: "trio.Event") -> None:
    """Turn the first SIGTERM or SIGINT into an orderly end; a second one then ends the process at once, by its default."""
    import trio

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        number = await anext(signals)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    logger.info("ending in order (%s); a second signal ends at once", signal.Signals(number).name)
    ending.set()
    await trio.sleep_forever()


async def _watch_life_line(ending: "trio.Event") -> None:
    """Wait for the end of standard input, whatever it says until then."""
    import trio

    while True:
        # A file, which cannot be waited for, never blocks.
        with suppress(PermissionError):
            await trio.lowlevel.wait_readable(sys.stdin)
        if not os.read(sys.stdin.fileno(), 65536):
            break
    logger.info("ending in order: standard input has ended")
    ending.set()
