"""Ports under observation: each call of one is told to observers once it is over, with its duration and its error.

One proxy serves all ports, since each of their calls is an ``async`` method; attributes pass through.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

import trio
from attrs import frozen

Port = TypeVar("Port")


@frozen
class Call:
    """A call that is over. One that was cancelled is nobody's fault, and not told."""

    name: str
    """Of the port's method."""
    arguments: tuple[Any, ...]
    seconds: float
    error: Exception | None


Observer = Callable[[Call], None]


def observed(port: Port, *observers: Observer) -> Port:
    """Return the port with all of its calls told to the observers."""
    return cast("Port", _Proxy(port, observers))


class _Proxy:
    def __init__(self, port: object, observers: Sequence[Observer]) -> None:
        self._port = port
        self._observers = observers

    def __getattr__(self, name: str) -> object:
        attribute = getattr(self._port, name)
        if not iscoroutinefunction(attribute):
            return attribute

        @wraps(attribute)
        async def call(*arguments: Any, **options: Any) -> Any:
            began = trio.current_time()
            try:
                result = await attribute(*arguments, **options)
            except Exception as error:
                self._tell(Call(name, arguments, trio.current_time() - began, error))
                raise
            self._tell(Call(name, arguments, trio.current_time() - began, None))
            return result

        setattr(self, name, call)  # found at once from now on
        return call

    def _tell(self, call: Call) -> None:
        for observe in self._observers:
            observe(call)
