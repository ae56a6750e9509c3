"""The ``indexctl`` command: arguments and exit codes.

It will drive a running semindex service. There is no service to drive yet, so it knows its version and its help.
"""

import argparse
from collections.abc import Sequence

from semindex import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (of this process, if none is given) and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="indexctl", description="The client of a running semindex service, which this version does not have yet."
    )
    parser.add_argument("--version", action="version", version=f"indexctl {__version__}")
    parser.parse_args(arguments)
    parser.print_help()
    return 0
