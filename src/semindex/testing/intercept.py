"""Standing between the engine and a port: every fault, count, pause and kill of the tests goes through here."""

from collections.abc import Awaitable, Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

import trio
from attrs import define, field, frozen

from semindex.observe.calls import Method, around

P = TypeVar("P")


@frozen
class Call:
    """One call of a port."""

    port: str
    """For example ``store``."""
    name: str
    """For example ``upsert``."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.port}.{self.name}"

    def is_named(self, name: str, about: str = "") -> bool:
        """Say whether the call is one of this name, such as ``store.upsert``, whose arguments mention ``about``."""
        return str(self) == name and about in f"{self.args} {self.kwargs}"


class Proceed(Protocol):
    """Makes the call, or with an argument that call in its place."""

    def __call__(self, call: Call | None = None) -> Awaitable[Any]:
        """Return what is to be awaited."""


class Around(Protocol):
    """What is done instead of a call."""

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Return what the caller shall get, or raise it."""


def intercept(port: P, name: str, arounds: Iterable[Around]) -> P:
    """Return the port with every call led through all of ``arounds``, the first one outermost."""
    for each in reversed(list(arounds)):
        port = around(port, partial(_through, each, name))
    return port


def _through(each: Around, port: str, name: str, method: Method) -> Method:
    async def through(*args: Any, **kwargs: Any) -> Any:
        made = Call(port, name, args, kwargs)

        def proceed(call: Call | None = None) -> Awaitable[Any]:
            call = made if call is None else call
            return method(*call.args, **call.kwargs)

        return await each(made, proceed)

    return through


@define
class Recorder:
    """An :class:`Around` that notes the calls in the order in which they began."""

    calls: list[Call] = field(factory=list)

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Note the call and make it."""
        self.calls.append(call)
        return await proceed()

    def of(self, name: str) -> list[Call]:
        """Return the calls of this name, written like ``store.upsert``."""
        return [call for call in self.calls if call.is_named(name)]


class Gate:
    """An :class:`Around` that holds up the calls of one name while it is shut, so that a test can force a race."""

    def __init__(self, name: str, *, about: str = "", after: bool = False) -> None:
        """Hold calls named like ``store.upsert`` whose arguments mention ``about``.

        They are held before they do anything or, with ``after``, when they have done it.
        """
        self._name = name
        self._about = about
        self._after = after
        self._open = trio.Event()
        self._open.set()
        self._arrivals = trio.lowlevel.ParkingLot()
        self._held = 0

    def shut(self) -> None:
        """Hold every call from now on."""
        self._open = trio.Event()

    def open(self) -> None:
        """Let the held ones go on, and hold no more."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until a call is being held."""
        while not self._held:
            await self._arrivals.park()

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Make the call when the gate is open."""
        if not call.is_named(self._name, self._about):
            return await proceed()
        if self._after:
            result = await proceed()
            await self._pass()
            return result
        await self._pass()
        return await proceed()

    async def _pass(self) -> None:
        self._held += 1
        self._arrivals.unpark_all()
        try:
            await self._open.wait()
        finally:
            self._held -= 1


@define
class Failing:
    """An :class:`Around` that makes the next ``times`` calls of one name fail, if their arguments mention ``about``."""

    name: str
    error: Exception
    times: int = 0
    about: str = ""

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Make the call, or raise the error at its next checkpoint."""
        if not self.times or not call.is_named(self.name, self.about):
            return await proceed()
        self.times -= 1
        await trio.lowlevel.checkpoint()
        raise self.error
