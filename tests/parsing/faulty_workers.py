"""Makes chunker processes fail on purpose: named ``sitecustomize``, it is run by each as it starts.

What happens depends on the name of the file to chunk.
"""

import itertools
import os
import signal
import time
from pathlib import Path

from semindex.model.chunks import ChunkedFile, FileProblem, UnchangedFile
from semindex.model.profiles import ChunkingProfile
from semindex.parsing import chunker, grammars
from semindex.parsing.grammars import Grammar, GrammarUnavailable

chunk_file = chunker.chunk_file


def fail(
    root: str, path: str, profile: ChunkingProfile, known_hash: str | None = None, *, parse: bool = True
) -> ChunkedFile | UnchangedFile | FileProblem:
    if parse or path == "crash_always.py":
        _misbehave(root, path.removesuffix(".py"))
    return chunk_file(root, path, profile, known_hash, parse=parse)


def _misbehave(root: str, fault: str) -> None:
    if fault in {"crash_always", "crash_in_parser"}:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "crash_once" and not Path(root, "crashed").exists():
        Path(root, "crashed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "raise":
        raise RuntimeError("a bug")
    elif fault == "spin":
        sum(itertools.repeat(0))
    elif fault == "sleep":
        _sleep(Path(root, "sleeping"))
    elif fault == "print":
        os.write(1, b"noise of a native library\n" * 100)


def _sleep(fifo: Path) -> None:
    if fifo.exists():
        fifo.write_bytes(b"asleep")  # waits for a reader
    time.sleep(3600)


def load(name: str) -> Grammar:
    raise GrammarUnavailable(f"The grammar {name} cannot be loaded: it is not there.")


chunker.chunk_file = fail
if os.environ.get("SEMINDEX_TEST_NO_GRAMMARS"):
    vars(chunker)["load"] = vars(grammars)["load"] = load
