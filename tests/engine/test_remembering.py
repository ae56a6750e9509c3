"""What an embedding cache is told when a collection is opened."""

import trio
import trio.testing

from semindex.engine.search import SearchRequest
from semindex.state.memory import MemoryEmbeddingCache
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Recorder

ROOT = "/workspace"
PATIENCE = 600.0


async def indexed_bench() -> Bench:
    """Return a bench on which a few files were indexed by an earlier process."""
    bench = Bench()
    bench.tree(ROOT, **{f"file{number}": words(f"word{number}") for number in range(20)})
    async with bench.process() as process:
        await (await process.start(ROOT)).settled()
    return bench


async def test_a_cache_that_was_lost_is_filled_from_the_collection(autojump_clock: trio.testing.MockClock) -> None:
    bench = await indexed_bench()
    sent = bench.sent()
    bench.cache = MemoryEmbeddingCache()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            for number in range(20):
                bench.trees[ROOT].rename(f"file{number}.py", f"moved{number}.py")

            assert (await process.found(ROOT, "word7")).paths == ("moved7.py",)
            assert bench.sent() == sent


async def test_a_cache_that_knows_the_collection_is_told_nothing(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = await indexed_bench(), Recorder()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            await workspace.search(SearchRequest("word7", min_score=0.2))

    assert len(recorder.of("store.stored_texts")) == 1
    assert recorder.of("cache.put") == [call for call in recorder.of("cache.put") if "query" in str(call.args[0])]
