"""``semindex doctor``: check what a cell needs of its machine, and say what to do about the rest."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from semindex.commands.configured import add_configuration_arguments, configured
from semindex.model.errors import ConfigurationError

if TYPE_CHECKING:
    from semindex.commands.checks import Finding


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="check everything that a cell needs",
        description="Check configuration, secrets, directories, grammars, store, embedder, watching and port, without "
        "changing anything. Exit code 1 if a check fails.",
    )
    add_configuration_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import trio

    from semindex.commands.checks import Finding, Verdict, examine

    try:
        chosen = configured(arguments, needs_roots=False)
    except ConfigurationError as error:
        findings = [Finding("configuration", Verdict.FAIL, str(error))]
    else:
        findings = trio.run(examine, chosen)
    sys.stdout.write(_as_json(findings) if arguments.json else _as_text(findings))
    return int(any(finding.verdict is Verdict.FAIL for finding in findings))


def _as_json(findings: "Sequence[Finding]") -> str:
    checks = [{"name": found.name, "verdict": found.verdict, "message": found.message} for found in findings]
    return json.dumps({"checks": checks}, ensure_ascii=False) + "\n"


def _as_text(findings: "Sequence[Finding]") -> str:
    return "".join(f"{found.verdict:<4}  {found.name:<{_WIDTH}}  {found.message}\n" for found in findings)


_WIDTH = 17
"""Columns of the longest name of a check."""
