"""When the store is flushed: not while somebody edits and searches, yet before long."""

import trio
import trio.testing

from semindex.engine.durability import LONGEST_UNFLUSHED, QUIET_BEFORE_FLUSH
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Recorder

ROOT = "/workspace"
PATIENCE = 3600.0


async def test_edits_are_searched_without_a_flush_in_between(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree(ROOT, first=words("first"))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            await process.start(ROOT)
            await process.workspaces[ROOT].settled()
            for word in ("apple", "banana", "cherry"):
                await trio.sleep(QUIET_BEFORE_FLUSH / 2)
                bench.trees[ROOT].write("file.py", words(word))
                assert (await process.found(ROOT, word)).paths == ("file.py",)
            assert recorder.of("store.flush") == []

            await trio.sleep(2 * QUIET_BEFORE_FLUSH)
            assert len(recorder.of("store.flush")) == 1


async def test_edits_without_end_are_flushed_all_the_same(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree(ROOT, first=words("first"))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            await process.start(ROOT)
            await process.workspaces[ROOT].settled()
            for number in range(int(3 * LONGEST_UNFLUSHED)):
                await trio.sleep(1)
                bench.trees[ROOT].write("file.py", words(f"word{number}"))
                await process.workspaces[ROOT].sweep()

            assert len(recorder.of("store.flush")) in (2, 3)
