"""Which configuration a command works with: the arguments that choose it, and what they make of it."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from semindex.model.errors import ConfigurationError

if TYPE_CHECKING:
    from semindex.config import CellConfig
    from semindex.secrets import Tokens


@frozen
class Configured:
    """A configuration, and where it comes from."""

    config: "CellConfig"
    has_file: bool
    roots: tuple[Path, ...]
    """Absolute paths of the directories that were named as arguments."""

    def tokens(self) -> "Tokens | None":
        """Return the tokens that the environment names; None if the cell keeps its own. Raises ConfigurationError."""
        from semindex.secrets import configured_tokens, names_tokens

        return configured_tokens(os.environ) if self.has_file or names_tokens(os.environ) else None


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose and override a cell's configuration."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration (default: $SEMANTIC_INDEX_CONFIG_FILE, else none)"
    )
    parser.add_argument(
        "--root", action="append", default=[], type=Path, metavar="DIR", help="a directory to allow and to register"
    )
    listen = parser.add_mutually_exclusive_group()
    listen.add_argument("--port", type=_port, metavar="N", help="port on 127.0.0.1, 0 for any (default: 7790)")
    listen.add_argument("--socket", type=Path, metavar="PATH", help="a Unix socket to listen on, instead of a port")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 65535")
    return int(text)


def configured(arguments: argparse.Namespace, *, needs_roots: bool = True) -> Configured:
    """Return the configuration that the arguments choose. Raises ConfigurationError."""
    from semindex.config import config_file, load_config, zero_configuration

    roots = tuple(Path(os.path.abspath(root)) for root in arguments.root)
    file = arguments.config or config_file()
    if file is not None:
        config = load_config(file)
        config = config.model_copy(update={"allowed_roots": (*config.allowed_roots, *roots)})
    elif roots or not needs_roots:
        config = zero_configuration(roots)
    else:
        raise ConfigurationError(
            "Nothing says what to index: name a directory with --root, or a configuration file with --config."
        )
    listen: dict[str, Any] = {}
    if arguments.port is not None:
        listen = {"port": arguments.port, "socket": None}
    elif arguments.socket is not None:
        listen = {"socket": Path(os.path.abspath(arguments.socket))}
    config = config.model_copy(update={"listen": config.listen.model_copy(update=listen)})
    return Configured(config, file is not None, roots)
