"""Order, merging and folding of hits: what makes one answer out of what the stores returned."""

from collections.abc import Iterable, Sequence

from semindex.model.points import Hit


def rank_key(hit: Hit) -> tuple[float, str, int, int]:
    """Return the sort key of a hit: best score first; ties by path and lines, so that the same answer has one order."""
    return (-hit.score, hit.file_path, hit.start_line, hit.end_line)


def merge(sources: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Return all hits in rank order; of hits that show the same text at the same place, an earlier source's stays."""
    merged: dict[tuple[str, int, int, str], Hit] = {}
    for hits in sources:
        for hit in hits:
            merged.setdefault((hit.file_path, hit.start_line, hit.end_line, hit.code_chunk), hit)
    return sorted(merged.values(), key=rank_key)


def is_folded(hit: Hit, better: Iterable[Hit]) -> bool:
    """Say whether a hit lies wholly inside one of the better hits of the same file."""
    return any(
        other.file_path == hit.file_path and other.start_line <= hit.start_line and hit.end_line <= other.end_line
        for other in better
    )


def certain(sources: Iterable[tuple[Sequence[Hit], bool]]) -> float:
    """Return the score above which a merge of these (hits, exhausted) lists is complete.

    A list that was cut by its limit says nothing of lower scores than its last one, nor of other hits of that score.
    """
    return max((hits[-1].score for hits, exhausted in sources if hits and not exhausted), default=float("-inf"))
