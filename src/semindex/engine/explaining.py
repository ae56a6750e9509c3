"""Why one path of a workspace is, or is not, searchable."""

from semindex.core.collector import MIN_UNITS
from semindex.core.eligibility import Verdict
from semindex.engine.index import Index
from semindex.model.answers import Explanation
from semindex.model.chunks import ChunkedFile
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import FileRecord, FileState
from semindex.ports import ChunkerPool, SourceTree


async def explain(
    root: str, path: str, tree: SourceTree, index: Index, pool: ChunkerPool, profile: ChunkingProfile
) -> Explanation:
    """Explain a relative path: the rule that decided, what the ledger knows, and the chunks that the file has now."""
    verdict = await tree.explain(path)
    record = index.table.get(path)
    chunks: tuple[tuple[int, int], ...] = ()
    if verdict.eligible:
        (result,) = await pool.chunk(root, [path], profile, {})
        if isinstance(result, ChunkedFile):
            chunks = tuple((chunk.start_line, chunk.end_line) for chunk in result.chunks)
    is_indexed = record is not None and record.state is FileState.INDEXED
    rule = verdict.rule
    return Explanation(
        path,
        verdict.eligible and is_indexed and bool(chunks),
        _reason(verdict, record, is_outstanding=path in index.queue, has_chunks=bool(chunks)),
        None if rule is None else rule.pattern,
        None if rule is None else f"{rule.source}:{rule.line}",
        record,
        chunks,
    )


def _reason(verdict: Verdict, record: FileRecord | None, *, is_outstanding: bool, has_chunks: bool) -> str:
    if not verdict.eligible or (record is not None and record.reason is not None):
        return verdict.reason if record is None or record.reason is None else record.reason
    if record is None or record.state is FileState.PENDING or is_outstanding:
        return "It is a file for the index, and waits to be indexed."
    if not has_chunks:
        return f"It is a file for the index, but has no chunk: one takes {MIN_UNITS} characters."
    return verdict.reason
