"""Why one path of a workspace is, or is not, searchable."""

from semindex.engine.index import Index
from semindex.model.answers import Explanation
from semindex.model.chunks import ChunkedFile
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import FileState
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
    reason = verdict.reason if record is None or record.reason is None else record.reason
    rule = verdict.rule
    return Explanation(
        path,
        verdict.eligible and is_indexed,
        reason,
        None if rule is None else rule.pattern,
        None if rule is None else f"{rule.source}:{rule.line}",
        record,
        chunks,
    )
