"""What an index should hold, worked out from the files alone, and how what is stored differs from it.

The measure of every crash, fault and cancellation: whatever happened, in the end ledger and collection must be those of
an index that was built from nothing.
"""

from collections.abc import Collection

import numpy as np
from attrs import evolve

from semindex.embedders.hashing import HashingEmbedder
from semindex.model.chunks import ChunkedFile
from semindex.model.ids import collection_name, point_id
from semindex.model.points import Hit, chunk_payload
from semindex.model.profiles import Role
from semindex.model.status import FileRecord, FileState
from semindex.ports import Vectors
from semindex.testing.bench import Bench
from semindex.testing.chunker import MemoryChunkerPool

EVERYTHING = 10**9


async def differences(
    bench: Bench, root: str, *, baseline: str | None = None, failed: Collection[str] = ()
) -> list[str]:
    """Return one sentence for each way in which ledger or collection are not as if they had been built from nothing.

    ``failed`` are the files that cannot be indexed: they must be recorded as failed, and have no points.
    """
    files = await _chunked(bench, root)
    inherited = {path for path, file in files.items() if baseline and file.file_hash == _hash(bench, baseline, path)}
    own = {path: file for path, file in files.items() if path not in inherited and path not in failed}
    found = _in_ledger(bench.ledgers.get(root, {}), files, own, inherited)
    return [*found, *await _in_collection(bench, root, own)]


async def stored(bench: Bench, root: str) -> list[Hit]:
    """Return every point of a workspace's collection."""
    name = collection_name(root)
    if await bench.store.describe(name) is None:
        return []
    anything = np.eye(1, bench.embedder.profile.dimension, dtype=np.float32)[0]
    return await bench.store.search(name, anything, limit=EVERYTHING, min_score=-2.0)


async def _chunked(bench: Bench, root: str) -> dict[str, ChunkedFile]:
    paths = list((await bench.trees[root].scan()).files)
    results = await MemoryChunkerPool(bench.trees).chunk(root, paths, bench.chunking, {})
    return {result.path: result for result in results if isinstance(result, ChunkedFile)}


def _hash(bench: Bench, root: str, path: str) -> str | None:
    """Return the hash of the content that a baseline serves for a path."""
    record = bench.ledgers[root].get(path)
    return record.file_hash if record is not None and record.state is FileState.INDEXED else None


def _in_ledger(
    records: dict[str, FileRecord],
    files: dict[str, ChunkedFile],
    own: dict[str, ChunkedFile],
    inherited: Collection[str],
) -> list[str]:
    found = [f"{path} is in the ledger only" for path in records.keys() - files.keys()]
    for path in files:
        record = records.get(path)
        if record is None:
            found.append(f"{path} is not in the ledger")
        elif path in own or path in inherited:
            expected = (FileState.INDEXED, files[path].file_hash, len(own[path].chunks) if path in own else 0, False)
            actual = (record.state, record.file_hash, record.chunks, record.dirty)
            found += [f"{path} is recorded as {actual}, not {expected}"] if actual != expected else []
            found += [f"{path} is inherited by mistake"] if record.inherited is not (path in inherited) else []
        elif record.state is not FileState.FAILED or not record.reason:
            found.append(f"{path} is not recorded as failed")
    return found


async def _in_collection(bench: Bench, root: str, own: dict[str, ChunkedFile]) -> list[str]:
    expected = {
        Hit.from_payload(0.0, chunk_payload(path, file.file_hash, chunk)): chunk.text.strip()
        for path, file in own.items()
        for chunk in file.chunks
    }
    points = [evolve(hit, score=0.0) for hit in await stored(bench, root)]
    found = [f"{hit.file_path}:{hit.start_line} is not stored" for hit in expected if hit and hit not in points]
    found += [f"{hit.file_path}:{hit.start_line} is stored by mistake" for hit in points if hit not in expected]
    if len(points) != len(set(points)):
        found.append("points are stored twice")
    return found or await _vectors(bench, root, {hit: text for hit, text in expected.items() if hit})


async def _vectors(bench: Bench, root: str, texts: dict[Hit, str]) -> list[str]:
    """Compare each stored vector with that of its text."""
    if not texts:
        return []
    ids = [point_id(hit.segment_hash) for hit in texts]
    vectors: dict[str, Vectors] = await bench.store.fetch_vectors(collection_name(root), ids)
    embedder = HashingEmbedder(bench.embedder.profile.dimension, batch_size=len(texts))
    expected = await embedder.embed(list(texts.values()), Role.DOCUMENT)
    return [
        f"{hit.file_path}:{hit.start_line} has the vector of another text"
        for hit, id_, vector in zip(texts, ids, expected, strict=True)
        if id_ not in vectors or not np.allclose(vectors[id_], vector, atol=1e-5)
    ]
