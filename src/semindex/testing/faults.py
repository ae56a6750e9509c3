"""Plans of what goes wrong: drawn by hypothesis, or written down by a test.

A plan names, for calls such as ``store.upsert``, what the first, the second … of them meets; what comes after the plan
goes well. Each fault is one that the port allows its adapter, but for the wrong count, which is a bug of one.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any

import trio
from attrs import define, field

from semindex.model import errors
from semindex.testing.intercept import Call, Proceed


class Fault(Enum):
    """What a call meets."""

    OK = auto()
    SLOW = auto()
    """It takes three seconds, then goes well."""
    LATE = auto()
    """It goes well, but its caller learns so three seconds later, and may be gone by then."""
    TRANSIENT = auto()
    """It fails, and a repetition may help."""
    LOST = auto()
    """It goes well, but its caller is told that it failed."""
    PERMANENT = auto()
    """It is refused."""
    HANG = auto()
    """It fails, but only after five minutes: so long does nobody wait who is in a hurry."""
    SHORT = auto()
    """Its answer lacks the last thing."""


SECONDS = 3.0
SLOWNESS = {Fault.SLOW: SECONDS, Fault.HANG: 300.0}
WELL_DONE = frozenset({Fault.OK, Fault.SLOW, Fault.LATE, Fault.LOST, Fault.SHORT})

TRANSIENT: Mapping[str, Callable[[], errors.SemindexError]] = {
    "cache": partial(errors.StateUnwritable, "The disk is full."),
    "embedder": partial(errors.EmbedderUnavailable, "The embedder does not answer."),
    "ledger": partial(errors.StateUnwritable, "The disk is full."),
    "pool": partial(errors.ChunkingFailed, "No worker stays alive."),
    "store": partial(errors.StoreUnavailable, "The store does not answer."),
    "tree": partial(errors.WorkspaceUnavailable, "The root is missing."),
}
PERMANENT: Mapping[str, Callable[[], errors.SemindexError]] = {
    "cache": partial(errors.StateDamaged, "The cache is damaged."),
    "embedder": partial(errors.EmbedderRejected, "The embedder refuses the text."),
    "ledger": partial(errors.StateDamaged, "The ledger is damaged."),
    "pool": partial(errors.ChunkingFailed, "No worker stays alive."),
    "store": partial(errors.StoreRejected, "The store refuses the request."),
    "tree": partial(errors.TooManyFiles, "There are too many files."),
}


@define
class FaultPlan:
    """An :class:`~semindex.testing.intercept.Around` that carries out a plan."""

    plan: Mapping[str, Sequence[Fault]]
    """By the name of the call, written like ``store.upsert``."""
    about: str = ""
    """Only calls whose arguments mention this meet their fault."""
    met: dict[str, int] = field(factory=dict)
    """How many calls of each name there were."""

    @property
    def is_over(self) -> bool:
        """Say whether everything planned has happened."""
        return all(self.met.get(name, 0) >= len(faults) for name, faults in self.plan.items())

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Let the call meet its fault."""
        faults, number = self.plan.get(str(call), ()), self.met.get(str(call), 0)
        if number >= len(faults) or not call.is_named(str(call), self.about):
            return await proceed()
        self.met[str(call)] = number + 1
        return await _meet(faults[number], call, proceed)


async def _meet(fault: Fault, call: Call, proceed: Proceed) -> Any:
    if fault in SLOWNESS:
        await trio.sleep(SLOWNESS[fault])
    result = await proceed() if fault in WELL_DONE else None
    match fault:
        case Fault.TRANSIENT | Fault.LOST | Fault.HANG:
            await trio.lowlevel.checkpoint()
            raise TRANSIENT[call.port]()
        case Fault.PERMANENT:
            await trio.lowlevel.checkpoint()
            raise PERMANENT[call.port]()
        case Fault.LATE:
            await trio.sleep(SECONDS)
        case Fault.SHORT:
            return _shortened(result)
        case _:
            pass
    return result


def _shortened(result: Any) -> Any:
    """Return an answer without its last thing; one that is no collection, or an empty one, as it is."""
    if isinstance(result, dict):
        return dict(list(result.items())[:-1])
    try:
        return result[:-1]
    except TypeError:
        return result
