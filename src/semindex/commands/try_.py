"""``semindex try``: index a directory and answer one question about it, with no configuration and no server.

A cell is kept per directory below the cache directory, so that a second run only takes in what changed.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semindex.model.errors import ScanFailed
from semindex.model.limits import MAX_RESULTS
from semindex.model.status import State
from semindex.terminal import excerpt, printable

if TYPE_CHECKING:
    from semindex.engine.workspace import Workspace
    from semindex.model.answers import SearchResponse
    from semindex.model.points import Hit
    from semindex.model.status import WorkspaceStatus
    from semindex.progress import IndexProgress

REGISTRATION = "try"
"""Id of the one registration of such a cell."""
PATIENCE = 10.0
"""Seconds without any progress after which trouble that a service would sit out is told."""
REFRESH = 0.1
"""Seconds between two looks at the progress."""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "try",
        help="index a directory and answer one question about it",
        description="Index a directory, with a progress bar, and print the best matches for a question in plain words. "
        "The index is kept below the cache directory, so that the next run only takes in what changed.",
    )
    parser.add_argument("path", metavar="PATH", help="the directory, usually a repository")
    parser.add_argument("query", metavar="QUERY", help="what to look for, in plain words")
    parser.add_argument(
        "-n", "--max-results", type=_count, default=5, help=f"matches to print, 1 to {MAX_RESULTS} (default: 5)"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run has indexed")
    parser.add_argument("--force", action="store_true", help="index even the home directory or the whole machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MAX_RESULTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_RESULTS}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import trio

    from semindex.files.roots import resolve_workspace_root

    root = resolve_workspace_root(os.path.abspath(arguments.path), force=arguments.force)
    return trio.run(_try, root, arguments)


async def _try(root: str, arguments: argparse.Namespace) -> int:
    """Answer, unless a signal comes first; then everything is ended in order and nothing is left running."""
    import trio

    code = 128 + signal.SIGINT
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                nonlocal code
                code = 128 + await anext(signals)
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)  # whoever is impatient ends it with a second one
                sys.stderr.write("\nInterrupted. Run the same again to go on.\n")
                nursery.cancel_scope.cancel(reason="interrupted")

            nursery.start_soon(watch)
            code = await _answer(root, arguments)
            nursery.cancel_scope.cancel(reason="done")
    return code


async def _answer(root: str, arguments: argparse.Namespace) -> int:
    from semindex.commands.startup import quieten_collector
    from semindex.config import CellConfig, cache_home
    from semindex.model.ids import collection_name
    from semindex.service import open_cell, restore
    from semindex.state.cell_directory import open_cell_directory

    quieten_collector()
    home = cache_home() / "try" / collection_name(root)
    if arguments.fresh:
        shutil.rmtree(home, ignore_errors=True)
    config = CellConfig(state_directory=home / "state", cache_directory=home / "cache", allowed_roots=(Path(root),))
    async with (
        open_cell_directory(config.state_directory, config.shutdown.handover) as directory,
        open_cell(config, directory) as cell,
    ):
        await restore(cell)
        await cell.leases.register(REGISTRATION, root, force=arguments.force)
        lease = cell.leases.registry.lease(REGISTRATION)
        assert lease.workspace is not None, "a primary checkout always has one"
        status = await _follow(lease.workspace)
        if status.state is State.ERROR:
            raise ScanFailed(status.message)
        answer = await cell.searches.search(REGISTRATION, arguments.query, max_results=arguments.max_results)
        status = lease.workspace.status()
    if arguments.json:
        sys.stdout.write(json.dumps(_as_json(root, arguments.query, status, answer), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_as_text(root, arguments.query, status, answer))
    return 0


async def _follow(workspace: "Workspace") -> "WorkspaceStatus":
    """Show progress until the index is complete or cannot be completed now; return the status of then."""
    import trio

    from semindex.progress import IndexProgress

    processed, progressed = -1, trio.current_time()
    with IndexProgress() as progress:
        while (status := workspace.status()).state not in (State.INDEXED, State.ERROR):
            _show(progress, status)
            if status.last_error is None or status.processed != processed:
                processed, progressed = status.processed, trio.current_time()
            elif trio.current_time() - progressed > PATIENCE:
                raise ScanFailed(status.last_error)
            with trio.move_on_after(PATIENCE):
                await workspace.changes.beyond(workspace.changes.value)
            await trio.sleep(REFRESH)
        _show(progress, status)
    return status


def _show(progress: "IndexProgress", status: "WorkspaceStatus") -> None:
    progress.show(status.processed, status.total, "Indexing" if status.total else "Looking for files")


def _as_json(root: str, query: str, status: "WorkspaceStatus", answer: "SearchResponse") -> dict[str, Any]:
    return {
        "path": root,
        "query": query,
        "state": status.state,
        "files": {
            "discovered": status.files.discovered,
            "indexed": status.files.indexed,
            "skipped": status.files.skipped,
            "failed": status.files.failed,
        },
        "chunks": status.chunks,
        "fresh": answer.fresh,
        "results": [
            {
                "filePath": hit.file_path,
                "startLine": hit.start_line,
                "endLine": hit.end_line,
                "score": round(hit.score, 4),
                "codeChunk": hit.code_chunk,
            }
            for hit in answer.results
        ],
    }


def _as_text(root: str, query: str, status: "WorkspaceStatus", answer: "SearchResponse") -> str:
    lines = [f"{status.files.indexed:,} files, {status.chunks:,} chunks in {root}", f"Question: {query}", ""]
    for hit in answer.results:
        lines += _hit_as_lines(hit)
    if not status.chunks:
        lines += [_nothing_indexed(root), ""]
    elif not answer.results:
        lines += ["Nothing here is close enough to the question. Try other words, or fewer.", ""]
    for path, reason in status.failed_files:
        lines.append(f"Not indexed: {path}: {reason}")
    lines += ["For agents and editors, keep it running and up to date:", f"  semindex serve --root {shlex.quote(root)}"]
    return "".join(f"{printable(line)}\n" for line in lines)


def _nothing_indexed(root: str) -> str:
    inner = sorted(entry.name for entry in os.scandir(root) if os.path.exists(os.path.join(entry.path, ".git")))
    if not inner:
        return "No file here is one to be indexed: there is no source code, or all of it is ignored."
    return f"Nothing here but repositories of their own, each indexed by itself: name one of {', '.join(inner)}."


def _hit_as_lines(hit: "Hit") -> list[str]:
    return [f"{hit.file_path}:{hit.start_line}-{hit.end_line}  {hit.score:.2f}", *excerpt(hit.code_chunk), ""]
