"""The cell's one budget for embedding: a priority queue in front of batching, above all workspaces.

A text that is wanted has one ticket, shared by all who want it: it is looked up in the embedding cache and, where that
has nothing, queued and sent. Queries have a sender of their own; edits go before back-fill, which keeps a tenth of the
batches. Whoever is cancelled withdraws: texts not yet sent are dropped unless others wait for them, those on their way
go on and end in the cache. A batch that the embedder rejects is split until the single text at fault is known.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import islice

import numpy as np
import trio
from attrs import define, field, frozen

from semindex.engine.pacing import paced
from semindex.engine.priority import Priority
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable, SemindexError
from semindex.model.ids import well_formed
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Embedder, EmbeddingCache, Vectors
from semindex.shielding import grace_period

logger = logging.getLogger(__name__)

BACKFILL_SHARE = 10
"""Every tenth document batch takes back-fill first, so that steady edits cannot starve a first build."""

QUERY_SENDERS = 2
"""So that one query that is being tried again does not hold up all others."""
CACHE_GRACE = 2.0
"""Seconds for which a cancelled sender may still keep vectors that have arrived, since they may have cost money."""
CACHE_PATIENCE = 30.0
"""Seconds after which a cache that does not take vectors holds up their batch no longer."""


@frozen
class Embedded:
    """What became of a list of texts, by their index."""

    vectors: dict[int, Vectors]
    """Shape [dimension] each."""
    errors: dict[int, SemindexError]
    """EmbedderRejected for a text at fault, EmbedderUnavailable for one that could not be asked."""
    sent: int
    """Vectors for which this call's texts were sent to the embedder; the others came from the cache or another call."""


class _Stage(Enum):
    LOOKED_UP = auto()
    QUEUED = auto()
    SENT = auto()


@define(eq=False)
class _Ticket:
    """One text that is wanted, and the calls that wait for it."""

    key: tuple[Role, bytes]
    """Role and digest of the text."""
    text: str
    """With the role's prefix, as it is sent."""
    priority: Priority
    maker: "_Call"
    calls: list["_Call"] = field(factory=list)
    stage: _Stage = _Stage.LOOKED_UP


@define(eq=False)
class _Call:
    """One caller waiting for some tickets."""

    waiting: dict[_Ticket, list[int]] = field(factory=dict)
    """Ticket → indexes of the call's texts that are this text."""
    vectors: dict[int, Vectors] = field(factory=dict)
    errors: dict[int, SemindexError] = field(factory=dict)
    sent: int = 0
    is_complete: bool = False
    """All of the call's texts have been looked at: nothing more will be waited for."""
    done: trio.Event = field(factory=trio.Event)

    def deliver(self, ticket: _Ticket, result: Vectors | SemindexError) -> None:
        indexes = self.waiting.pop(ticket)
        if isinstance(result, SemindexError):
            self.errors.update(dict.fromkeys(indexes, result))
        else:
            self.vectors.update(dict.fromkeys(indexes, result))
            self.sent += ticket.maker is self and ticket.stage is _Stage.SENT
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
            for _ in range(QUERY_SENDERS):
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

    async def remember(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, shape [len(texts), dimension], of chunks made elsewhere in this space; none of blank texts."""
        kept = [(number, text) for number, text in enumerate(map(str.strip, texts)) if text]
        rows = vectors[[number for number, _ in kept]]
        await self._cache.put(self.profile.space(Role.DOCUMENT), [_digest(text) for _, text in kept], rows)

    async def knows_any(self, texts: Sequence[str]) -> bool:
        """Say whether the vector of any of these chunks is in the cache."""
        return bool(await self._cache.get(self.profile.space(Role.DOCUMENT), [_digest(text.strip()) for text in texts]))

    async def _embed(self, texts: Sequence[str], role: Role, priority: Priority) -> Embedded:
        call, made = _Call(), list[_Ticket]()
        try:
            async for index, text in paced(enumerate(texts)):
                ticket = self._ticket(well_formed(text), role, priority, call)
                if ticket not in call.waiting:
                    ticket.calls.append(call)
                    made += [ticket] if ticket.maker is call else []
                call.waiting.setdefault(ticket, []).append(index)
            await self._look_up(made, role)
            call.is_complete = True
            await call.settled()
        finally:
            self._withdraw(call)
        return Embedded(call.vectors, call.errors, call.sent)

    def _ticket(self, text: str, role: Role, priority: Priority, call: _Call) -> _Ticket:
        """Return the ticket of a text, which becomes as urgent as this call is."""
        key = (role, _digest(text))
        ticket = self._tickets.get(key)
        if ticket is None:
            ticket = self._tickets[key] = _Ticket(key, self.profile.prefix(role) + text, priority, call)
        elif priority < ticket.priority:
            self._dequeue(ticket)
            ticket.priority = priority
            if ticket.stage is _Stage.QUEUED:
                self._queue(ticket)
        return ticket

    async def _look_up(self, tickets: Sequence[_Ticket], role: Role) -> None:
        """Resolve the tickets that the cache knows, and queue the others."""
        found: Mapping[bytes, Vectors] = {}
        try:
            found = await self._cache.get(self.profile.space(role), [ticket.key[1] for ticket in tickets])
        except Exception:
            logger.exception("the embedding cache could not be read")
        async for ticket in paced(tickets):
            if (vector := found.get(ticket.key[1])) is not None:
                self._resolve([ticket], [vector])
            else:
                self._queue(ticket)

    def _queue(self, ticket: _Ticket) -> None:
        ticket.stage = _Stage.QUEUED
        self._lanes[ticket.priority][ticket] = None
        self._arrivals.unpark_all()

    def _dequeue(self, ticket: _Ticket) -> None:
        if ticket.stage is _Stage.QUEUED:
            del self._lanes[ticket.priority][ticket]

    def _withdraw(self, call: _Call) -> None:
        """Give up what a call still waits for."""
        for ticket in call.waiting:
            ticket.calls.remove(call)
            if not ticket.calls and ticket.stage is not _Stage.SENT:
                self._dequeue(ticket)
                del self._tickets[ticket.key]
            elif ticket.maker is call and ticket.stage is _Stage.LOOKED_UP:
                self._queue(ticket)

    async def _send(self, role: Role) -> None:
        while True:
            batch = self._next_batch(role)
            if not batch:
                await self._arrivals.park()
                continue
            try:
                await self._embed_batch(batch, role)
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
            self._dequeue(ticket)
            ticket.stage = _Stage.SENT
        self._batches += bool(batch) and role is Role.DOCUMENT
        return batch

    async def _embed_batch(self, batch: list[_Ticket], role: Role) -> None:
        try:
            vectors = await self._embedder.embed([ticket.text for ticket in batch], role)
            self._check(vectors, len(batch))
        except SemindexError as error:
            trouble = error
        except Exception:
            logger.exception("the embedder failed in a way that its adapter does not know")
            trouble = EmbedderRejected("The embedder failed in an unexpected way; see the log.")
        else:
            await self._keep(batch, vectors, role)
            self._resolve(batch, list(vectors))
            return
        if isinstance(trouble, EmbedderRejected) and len(batch) > 1:
            middle = len(batch) // 2
            await self._embed_batch(batch[:middle], role)
            await self._embed_batch(batch[middle:], role)
        else:
            self._resolve(batch, [trouble] * len(batch))

    async def _keep(self, batch: Sequence[_Ticket], vectors: Vectors, role: Role) -> None:
        """Put vectors into the cache; a slow disk is waited for, one that hangs costs no more than a bound."""
        async with grace_period(CACHE_GRACE, "keeping vectors in the embedding cache"):
            with trio.move_on_after(CACHE_PATIENCE) as scope:
                try:
                    await self._cache.put(self.profile.space(role), [ticket.key[1] for ticket in batch], vectors)
                except Exception:
                    logger.exception("the embedding cache could not be written")
            if scope.cancelled_caught:
                logger.warning("the embedding cache did not take vectors within %g seconds", CACHE_PATIENCE)

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


def _digest(text: str) -> bytes:
    """Return the key of a text in the cache."""
    return hashlib.sha256(well_formed(text).encode()).digest()
