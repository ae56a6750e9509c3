"""Ports seen through a proxy: something is done around each call of one, for example telling observers how it ended.

One proxy serves all ports, since each of their calls is an ``async`` method; attributes pass through.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

import trio
from attrs import frozen

Port = TypeVar("Port")
Method = Callable[..., Awaitable[Any]]


def around(port: Port, wrapper: Callable[[str, Method], Method]) -> Port:
    """Return the port with each method replaced by what ``wrapper`` makes of name and method, an ``async`` function."""
    return cast("Port", _Proxy(port, wrapper))


class _Proxy:
    def __init__(self, port: object, wrapper: Callable[[str, Method], Method]) -> None:
        self._port = port
        self._wrapper = wrapper

    def __getattr__(self, name: str) -> object:
        attribute = getattr(self._port, name)
        if not iscoroutinefunction(attribute):
            return attribute
        wrapped = wraps(attribute)(self._wrapper(name, attribute))
        setattr(self, name, wrapped)  # found at once from now on
        return wrapped


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
    """Return the port with all of its calls told to the observers, each once it is over."""

    def tell(call: Call) -> None:
        for observe in observers:
            observe(call)

    def telling(name: str, method: Method) -> Method:
        async def call(*arguments: Any, **options: Any) -> Any:
            began = trio.current_time()
            try:
                result = await method(*arguments, **options)
            except Exception as error:
                tell(Call(name, arguments, trio.current_time() - began, error))
                raise
            tell(Call(name, arguments, trio.current_time() - began, None))
            return result

        return call

    return around(port, telling)
