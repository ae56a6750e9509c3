"""Filling the embedding cache from what a collection holds: no text whose vector is stored is embedded again."""

from semindex.engine.tools import Tools

PROBED = 8
"""Texts by which a cache that was lost is told from one that is there."""


async def remember_all(collection: str, tools: Tools) -> None:
    """Put every vector of a collection into the cache, under the text that it stands for."""
    following, is_last = None, False
    while not is_last:
        page = await tools.store.stored_texts(collection, following)
        await tools.scheduler.remember(page.texts, page.vectors)
        following, is_last = page.following, page.following is None


async def remember_if_forgotten(collection: str, tools: Tools) -> None:
    """Do so if the cache knows nothing of the collection, as one whose file is gone."""
    page = await tools.store.stored_texts(collection)
    probes = page.texts[:PROBED]
    if probes and not await tools.scheduler.knows_any(probes):
        await remember_all(collection, tools)
