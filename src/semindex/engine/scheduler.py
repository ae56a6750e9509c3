"""The cell's one budget for embedding: a priority queue in front of batching, above all workspaces.

A text is looked up in the embedding cache, joined with the same text where that is already on its way, or queued. Queries
have a sender of their own; edits go before back-fill, which keeps a tenth of the batches. Whoever is cancelled withdraws
its texts: those not yet sent are dropped unless others wait for them, those on their way go on and end in the cache.
A batch that the embedder rejects is split until the single text at fault is known.
"""

import hashlib
import logging
from collections.abc import Sequence
from itertools import islice

import numpy as np
import trio
from attrs import define, field, frozen

from semindex.engine.pacing import paced
from semindex.engine.workqueue import Priority
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable, SemindexError
from semindex.model.ids import well_formed
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Embedder, EmbeddingCache, Vectors

logger = logging.getLogger(__name__)

BACKFILL_SHARE = 10
"""Every tenth document batch takes back-fill first, so that steady edits cannot starve a first build."""

CACHE_GRACE = 2.0
"""Seconds for which a cancelled sender may still keep vectors that have arrived, since they may have cost money."""


@frozen
class Embedded:
    """What became of a list of texts, by their index."""

    vectors: dict[int, Vectors]
    """Shape [dimension] each."""
    errors: dict[int, SemindexError]
    """EmbedderRejected for a text at fault, EmbedderUnavailable for one that could not be asked."""
    sent: int
    """Texts that were sent to the embedder for this call; the others came from the cache or from another call."""


@define(eq=False)
class _Ticket:
    """One text on its way, and the calls that wait for it."""

    key: tuple[Role, bytes]
    """Role and digest of the text."""
    text: str
    """With the role's prefix, as it is sent."""
    priority: Priority
    calls: list["_Call"] = field(factory=list)
    is_sent: bool = False


@define(eq=False)
class _Call:
    """One caller waiting for some tickets."""

    waiting: dict[_Ticket, list[int]] = field(factory=dict)
    """Ticket → indexes of the call's texts that are this text."""
    vectors: dict[int, Vectors] = field(factory=dict)
    errors: dict[int, SemindexError] = field(factory=dict)
    is_complete: bool = False
    """All of the call's texts have been looked at: nothing more will be waited for."""
    done: trio.Event = field(factory=trio.Event)

    def deliver(self, ticket: _Ticket, result: Vectors | SemindexError) -> None:
        for index in self.waiting.pop(ticket):
            if isinstance(result, SemindexError):
                self.errors[index] = result
            else:
                self.vectors[index] = result
        if self.is_complete and not self.waiting:
            self.done.set()

    async def settled(self) -> None:
        """Wait for every ticket."""
        if self.waiting:
            await self.done.wait()


class EmbeddingScheduler:
    """Embeds texts for everybody in the cell; :meth:`run` does the sending."""

    def __init__(self, embedder: Embedder, cache: EmbeddingCache, *, concurrency: int = 4) -> None:
        self._embedder = embedder
        self._cache = cache
        self._concurrency = concurrency
        self._lanes: dict[Priority, dict[_Ticket, None]] = {priority: {} for priority in Priority}
        self._tickets: dict[tuple[Role, bytes], _Ticket] = {}
        self._arrivals = trio.lowlevel.ParkingLot()
        self._batches = 0

    @property
    def profile(self) -> EmbeddingProfile:
        """Return the embedding space of the cell."""
        return self._embedder.profile

    @property
    def queued(self) -> int:
        """Return the number of texts that are waiting or on their way."""
        return len(self._tickets)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send batches until cancelled."""
        async with trio.open_nursery() as senders:
            senders.start_soon(self._send, Role.QUERY)
            for _ in range(self._concurrency):
                senders.start_soon(self._send, Role.DOCUMENT)
            task_status.started()

    async def embed_query(self, text: str) -> Vectors:
        """Return the vector of a search query, shape [dimension]. Raises what the embedder raised."""
        outcome = await self._embed([text], Role.QUERY, Priority.QUERY)
        if outcome.errors:
            raise outcome.errors[0]
        return outcome.vectors[0]

    async def embed_documents(self, texts: Sequence[str], priority: Priority) -> Embedded:
        """Embed the texts of chunks; errors are told text by text."""
        return await self._embed(texts, Role.DOCUMENT, priority)

    async def _embed(self, texts: Sequence[str], role: Role, priority: Priority) -> Embedded:
        prefix = self.profile.prefix(role)
        wanted: dict[bytes, list[int]] = {}
        async for index, text in paced(enumerate(texts)):
            wanted.setdefault(hashlib.sha256(well_formed(text).encode()).digest(), []).append(index)
        cached = await self._cache.get(self.profile.space(role), list(wanted))
        call, sent = _Call(), 0
        try:
            async for digest, indexes in paced(wanted.items()):
                if (vector := cached.get(digest)) is not None:
                    call.vectors.update(dict.fromkeys(indexes, vector))
                    continue
                ticket, is_new = self._join(role, digest, prefix + well_formed(texts[indexes[0]]), priority)
                ticket.calls.append(call)
                call.waiting[ticket] = indexes
                sent += is_new
            call.is_complete = True
            await call.settled()
        finally:
            self._withdraw(call)
        return Embedded(call.vectors, call.errors, sent)

    def _join(self, role: Role, digest: bytes, text: str, priority: Priority) -> tuple[_Ticket, bool]:
        key = (role, digest)
        ticket = self._tickets.get(key)
        is_new = ticket is None
        if ticket is None:
            ticket = self._tickets[key] = _Ticket(key, text, priority)
        elif ticket.is_sent or ticket.priority <= priority:
            return ticket, is_new
        else:
            del self._lanes[ticket.priority][ticket]
            ticket.priority = priority
        self._lanes[priority][ticket] = None
        self._arrivals.unpark_all()
        return ticket, is_new

    def _withdraw(self, call: _Call) -> None:
        for ticket in call.waiting:
            ticket.calls.remove(call)
            if not ticket.calls and not ticket.is_sent:
                del self._lanes[ticket.priority][ticket]
                del self._tickets[ticket.key]

    async def _send(self, role: Role) -> None:
        while True:
            batch = self._next_batch(role)
            if not batch:
                await self._arrivals.park()
                continue
            try:
                await self._embed_batch(batch, role)
            except Exception:
                logger.exception("the embedder failed in a way that its adapter does not know")
            finally:
                self._abandon(batch)

    def _next_batch(self, role: Role) -> list[_Ticket]:
        if role is Role.QUERY:
            lanes = [self._lanes[Priority.QUERY]]
        else:
            lanes = [self._lanes[Priority.EDIT], self._lanes[Priority.BACKFILL]]
            if self._batches % BACKFILL_SHARE == BACKFILL_SHARE - 1:
                lanes.reverse()
        batch: list[_Ticket] = []
        for lane in lanes:
            batch += islice(lane, self._embedder.batch_size - len(batch))
        for ticket in batch:
            del self._lanes[ticket.priority][ticket]
            ticket.is_sent = True
        self._batches += bool(batch) and role is Role.DOCUMENT
        return batch

    async def _embed_batch(self, batch: list[_Ticket], role: Role) -> None:
        try:
            vectors = await self._embedder.embed([ticket.text for ticket in batch], role)
            self._check(vectors, len(batch))
        except EmbedderRejected as error:
            if len(batch) == 1:
                self._resolve(batch, [error])
                return
            middle = len(batch) // 2
            await self._embed_batch(batch[:middle], role)
            await self._embed_batch(batch[middle:], role)
        except SemindexError as error:
            self._resolve(batch, [error] * len(batch))
        else:
            with trio.move_on_after(CACHE_GRACE, shield=True):
                await self._cache.put(self.profile.space(role), [ticket.key[1] for ticket in batch], vectors)
            self._resolve(batch, list(vectors))

    def _check(self, vectors: Vectors, count: int) -> None:
        expected = (count, self.profile.dimension)
        if vectors.shape != expected:
            raise EmbedderRejected(f"The embedder answered with vectors of shape {vectors.shape}, expected {expected}.")
        if not np.isfinite(vectors).all():
            raise EmbedderRejected("The embedder answered with a vector that is not finite.")

    def _resolve(self, batch: Sequence[_Ticket], results: Sequence[Vectors | SemindexError]) -> None:
        for ticket, result in zip(batch, results, strict=True):
            del self._tickets[ticket.key]
            for call in ticket.calls:
                call.deliver(ticket, result)
            ticket.calls.clear()

    def _abandon(self, batch: Sequence[_Ticket]) -> None:
        """Tell those who still wait for a batch whose sender was cancelled or crashed."""
        left = [ticket for ticket in batch if self._tickets.get(ticket.key) is ticket]
        self._resolve(left, [EmbedderUnavailable("The embedding was abandoned; try again.")] * len(left))
