"""Why a path is or is not searchable, in each state that it can be in."""

import trio
import trio.testing

from semindex.model.answers import Explanation
from semindex.model.status import FileState
from semindex.testing.bench import Bench, Process, words
from semindex.testing.intercept import Gate

ROOT = "/primary"


async def explained(process: Process, path: str) -> Explanation:
    return await process.workspaces[ROOT].explain(path)


async def test_a_file_is_explained_before_while_and_after_it_is_indexed(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = Bench(), Gate("embedder.embed")
    tree = bench.tree(ROOT, a=words("apple"))
    gate.shut()
    with trio.fail_after(60):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await gate.reached()
            waiting = await explained(process, "a.py")
            assert (waiting.searchable, waiting.reason) == (
                False, "It is a file for the index, and waits to be indexed.",
            )  # fmt: skip

            gate.open()
            await workspace.settled()
            indexed = await explained(process, "a.py")
            assert (indexed.searchable, indexed.reason) == (True, "It is a file for the index.")
            assert indexed.chunks

            tree.write("short.py", "LIMIT = 5\n")
            await workspace.sweep()
            await workspace.settled()
            short = await explained(process, "short.py")
            assert short.record is not None
            assert (short.record.state, short.searchable) == (FileState.INDEXED, False)
            assert short.reason == "It is a file for the index, but has no chunk: one takes 50 characters."
