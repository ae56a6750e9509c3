"""``semindex serve``: run a cell until it is told to end."""

import argparse
import sys
from typing import Any

from semindex.commands.configured import Configured, add_configuration_arguments, configured
from semindex.model.errors import ConfigurationError, PathRefused


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


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    chosen = configured(arguments)
    _require_roots(chosen)

    import trio

    from semindex.commands.process import CellProcess
    from semindex.observe import log

    log.configure(arguments.log_format or ("text" if sys.stderr.isatty() else "json"))
    trio.run(CellProcess(chosen, has_life_line=arguments.exit_on_stdin_eof).run)
    return 0


def _require_roots(chosen: Configured) -> None:
    """Refuse roots that cannot be indexed; a missing one only at the first start, since it may come back later."""
    from semindex.files.roots import resolve_workspace_root

    for root in chosen.roots:
        if root.exists() or not chosen.config.state_directory.exists():
            try:
                resolve_workspace_root(str(root))
            except PathRefused as error:
                raise ConfigurationError(f"--root: {error}") from error
