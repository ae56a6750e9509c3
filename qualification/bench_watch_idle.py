"""Measures what watching costs while nothing happens: ``python -m qualification.bench_watch_idle [--workspaces N]``.

Watches trees made for it, each followed as after a sweep and waited on as by an engine. Prints the share of a core that
idling takes, threads and descriptors in use, what following all directories anew takes, and for how long the loop was
held meanwhile. Exits with status 1 where idling takes too much or a thread of Trio's default limiter is held.
"""

import argparse
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter, process_time

import psutil
import trio
from attrs import frozen

from semindex.files.watching.source import open_event_source
from semindex.ports import Watch
from semindex.testing.stalls import watched_stalls

MOST_IDLE = 0.01
"""Share of one core that fifty idle workspaces may take."""


@frozen
class Cost:
    """What watching was seen to cost."""

    idle: float
    """Share of one core."""
    follow_seconds: float
    """Wall time of following every directory of every tree once more, one tree after the other."""
    longest_stall: float
    """CPU seconds for which following held the loop or the interpreter's lock."""
    threads: int
    """Alive while idle, the main one included."""
    default_tokens: int
    """Threads of Trio's default limiter that were held while idle."""
    descriptors: int
    """Opened for watching."""
    watched: int
    """Trees that are watched, not polled."""


def make_tree(root: Path, directories: int) -> list[str]:
    """Make a tree of so many directories with a file in each; return them as a scan tells them."""
    names = ["", *(f"package{number % 10}/module{number}" for number in range(directories - 11))]
    names += [f"package{number}" for number in range(10)]
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "file.py").write_text("x = 1\n")
    return names


async def measure(home: Path, workspaces: int, directories: int, seconds: float) -> Cost:
    """Watch trees below a directory for a while."""
    trees = {
        str(home / f"tree{number}"): make_tree(home / f"tree{number}", directories) for number in range(workspaces)
    }
    before = psutil.Process().num_fds()
    async with open_event_source() as source, AsyncExitStack() as watches, trio.open_nursery() as nursery:
        opened: list[tuple[Watch, list[str]]] = []
        for root, names in trees.items():
            watch = await watches.enter_async_context(source.watch(root))
            await watch.follow(names)
            nursery.start_soon(_listen, watch)
            opened.append((watch, names))
        async with watched_stalls() as stalls:
            began = perf_counter()
            for watch, names in opened:
                await watch.follow(names)
            follow_seconds = perf_counter() - began
        began, used = perf_counter(), process_time()
        await trio.sleep(seconds)
        cost = Cost(
            (process_time() - used) / (perf_counter() - began),
            follow_seconds,
            max(stalls.loop, stalls.others),
            threading.active_count(),
            trio.to_thread.current_default_thread_limiter().borrowed_tokens,
            psutil.Process().num_fds() - before,
            source.watched,
        )
        nursery.cancel_scope.cancel(reason="measured")
    return cost


async def _listen(watch: Watch) -> None:
    while True:
        await watch.changes()


def main(arguments: Sequence[str]) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=50)
    parser.add_argument("--directories", type=int, default=200, help="of each workspace (default: 200)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long nothing happens (default: 30)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="semindex-bench-") as home:
        cost = trio.run(measure, Path(home).resolve(), options.workspaces, options.directories, options.seconds)
    print(f"{cost.watched} of {options.workspaces} trees of {options.directories} directories watched")
    print(f"idle: {cost.idle:.2%} of a core, {cost.threads} threads, {cost.descriptors} descriptors more than before")
    print(f"Trio's default limiter: {cost.default_tokens} tokens held")
    print(
        f"following all anew: {cost.follow_seconds * 1000:.0f} ms, loop held {cost.longest_stall * 1000:.1f} ms at most"
    )
    return 1 if cost.idle >= MOST_IDLE or cost.default_tokens else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
