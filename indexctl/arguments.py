"""The command line of ``indexctl``: commands, flags, and the help about them."""

import argparse
import math
import re
from collections.abc import Callable, Sequence
from typing import Final

from indexctl import commands
from indexctl.client import Client
from indexctl.commands import Result
from semindex import __version__
from semindex.model.limits import DEFAULT_RESULTS, MAX_RESULTS
from semindex.model.status import FileState

Run = Callable[[Client, argparse.Namespace], Result | None]

DEFAULT_TIMEOUT: Final = 600.0
"""Seconds that a command may take."""
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

_ENVIRONMENT = """\
environment:
  SEMANTIC_INDEX_URL                 the service: http://127.0.0.1:7790 or unix:/path
  SEMANTIC_INDEX_CONTROL_TOKEN       its control token, or
  SEMANTIC_INDEX_CONTROL_TOKEN_FILE  the file that holds it
Without these, the cell that "semindex serve --root DIR" runs is found by itself.

Output is for people on a terminal, JSON elsewhere; --json gives compact JSON.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 unavailable or timed out.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the chosen command as ``run``, and its flags. Help, version and wrong usage end the process."""
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    return _parser().parse_args(arguments or ["--help"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="indexctl",
        description="Register, watch and search workspaces of a running semindex service.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"indexctl {__version__}")
    add = _Adder(parser.add_subparsers(metavar="COMMAND", required=True))

    one = add("register", commands.register, "register a workspace, so that it is indexed and kept so")
    _add_id(one)
    one.add_argument("--path", required=True, metavar="DIR", help="the workspace, usually a repository or a worktree")
    one.add_argument("--baseline", metavar="DIR", help="the primary checkout of a worktree (default: as git knows it)")
    one.add_argument("--force", action="store_true", help="allow even the home directory or the whole machine")
    one.add_argument("--adopt", action="store_true", help="take over an index that another cell or Kilo Code has made")
    _add_wait(one, "wait until it is indexed")

    one = add("status", commands.status, "show how a registration stands")
    _add_id(one)
    _add_wait(one, "wait until it is indexed")

    add("list", commands.list_, "show all registrations")

    one = add("release", commands.release, "end a registration; the index of a worktree goes with its last one")
    _add_id(one)
    one.add_argument("--purge", action="store_true", help="delete the index, too")
    one.add_argument("--force", action="store_true", help="release the worktrees that build on it first")

    one = add("reindex", commands.reindex, "build an index anew, while searches go on")
    _add_id(one)
    one.add_argument("--force", action="store_true", help="even if worktrees build on it")
    _add_wait(one, "wait until that is done")

    one = add("purge", commands.purge, "delete an index; its registration stays, idle until it is reindexed")
    _add_id(one)
    one.add_argument("--force", action="store_true", help="even if worktrees build on it")
    _add_wait(one, "wait until that is done")

    one = add("search", commands.search, "find code by what it does, asked in plain words")
    _add_id(one)
    one.add_argument("--query", required=True, metavar="TEXT", help="the question")
    one.add_argument("--path", metavar="PATH", help="only this file or directory, relative to the workspace")
    one.add_argument(
        "--max-results",
        type=_results,
        default=DEFAULT_RESULTS,
        metavar="N",
        help=f"matches to show, 1 to {MAX_RESULTS} (default: {DEFAULT_RESULTS})",
    )

    one = add("service-status", commands.service_status, "show how the service stands")
    _add_wait(one, "wait until there is one, and it is ready")

    one = add("watch", commands.watch, "show all registrations and follow their changes, until Ctrl-C")
    one.set_defaults(timeout=math.inf)

    one = add("files", commands.files, "show the files of a workspace, and why some are not indexed")
    _add_id(one)
    one.add_argument("--state", choices=[state.value for state in FileState], help="only files in this state")

    one = add("explain", commands.explain, "show why a path is or is not searchable")
    _add_id(one)
    one.add_argument("--path", required=True, metavar="PATH", help="relative to the workspace")

    _add_token_commands(add)

    one = add(
        "orphans", commands.orphans, "show what is stored and nothing owns any more; the service collects it in time"
    )
    one.add_argument(
        "--purge",
        nargs="*",
        metavar="NAME",
        help="delete it now, or only what is named; also a collection that another cell has made, if it is named",
    )
    return parser


class _Adder:
    """Adds commands, each with the flags that all of them have."""

    def __init__(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        self._subparsers = subparsers

    def __call__(self, name: str, run: Run, summary: str) -> argparse.ArgumentParser:
        parser = self._subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
        )
        parser.add_argument("--json", action="store_true", help="print compact JSON")
        parser.add_argument(
            "--timeout",
            type=_duration,
            default=DEFAULT_TIMEOUT,
            metavar="TIME",
            help="what the command may take, as 500ms, 30s, 10m or 1h (default: 10m; watch: no limit)",
        )
        parser.set_defaults(run=run)
        return parser

    def group(self, name: str, summary: str) -> "_Adder":
        """Add a command that has commands of its own."""
        parser = self._subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
        )
        return _Adder(parser.add_subparsers(metavar="COMMAND", required=True))


def _add_token_commands(add: _Adder) -> None:
    token = add.group("token", "search tokens, by which an agent may search one registration and nothing else")
    one = token("create", commands.create_token, "make a token; it is shown once")
    _add_id(one)
    one.add_argument("--label", default="", metavar="TEXT", help="what it is for, as a reminder")
    _add_id(token("list", commands.list_tokens, "show which tokens there are"))
    one = token("revoke", commands.revoke_token, "make a token worthless")
    _add_id(one)
    one.add_argument("--token-id", required=True, type=_name, metavar="ID", help="the token's id, as list shows it")


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--id", required=True, type=_name, metavar="ID", help="the registration's id")


def _add_wait(parser: argparse.ArgumentParser, summary: str) -> None:
    parser.add_argument("--wait", action="store_true", help=f"{summary}, --timeout at most")


def _name(text: str) -> str:
    if not text or "/" in text:
        raise argparse.ArgumentTypeError("an id is not empty, and has no slash")
    return text


def _duration(text: str) -> float:
    if not (match := re.fullmatch(r"([0-9]{1,6})(ms|s|m|h)", text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write it as 500ms, 30s, 10m or 1h")
    return int(match[1]) * _MILLISECONDS[match[2]] / 1000


def _results(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and 1 <= int(text) <= MAX_RESULTS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_RESULTS}")
    return int(text)
