"""Searches that a filter on indexed keys cannot express: page through the hits and keep the wanted ones."""

from collections.abc import Awaitable, Callable

FIRST_PAGE = 100

LAST_PAGE = 4_000
"""Rows of a page; pages double up to here, where decoding one takes some 3 ms."""

Page = Callable[[int, int], Awaitable[list[tuple[str, str]]]]
"""Of an offset and a limit: (id, file path) of each hit, best first."""


async def wanted_ids(page: Page, wanted: Callable[[str], bool], limit: int) -> list[str]:
    """Return the ids of the best ``limit`` hits whose file is wanted, or of all there are."""
    found: dict[str, None] = {}
    offset, size = 0, FIRST_PAGE
    while True:
        rows = await page(offset, size)
        found |= dict.fromkeys(point for point, path in rows if wanted(path))
        if len(found) >= limit or len(rows) < size:
            return list(found)[:limit]
        offset, size = offset + size, min(2 * size, LAST_PAGE)
