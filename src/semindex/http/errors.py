"""Which status each error has on the wire. Messages are shown as they are: none of ours holds a secret or a text."""

import logging
import uuid
from collections.abc import Iterable, Mapping

from semindex.http import wire
from semindex.model import errors

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.SemindexError], int] = {
    errors.OutsideRoots: 403,
    errors.UnknownRegistration: 404,
    errors.UnknownOperation: 404,
    errors.UnknownToken: 404,
    errors.UnregisteredRoot: 404,
    errors.Conflict: 409,
    errors.InvalidInput: 422,
    errors.TooManyRegistrations: 429,
    errors.TooManyFiles: 422,
    errors.Starting: 503,
    errors.Stopping: 503,
    errors.NotReady: 503,
    errors.StoreUnavailable: 503,
    errors.EmbedderUnavailable: 503,
    errors.WorkspaceUnavailable: 503,
    errors.StateUnwritable: 503,
}
"""By class; a subclass that is not named has its parent's."""


class RequestError(Exception):
    """A request that is refused before any call is made."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        detail: wire.Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = wire.error(message, code, detail)
        self.headers = headers or {}


class Unauthorized(RequestError):
    """A request without a credential that opens this door."""

    def __init__(self) -> None:
        message = "A valid token is required: Authorization: Bearer <token>."
        super().__init__(401, "unauthorized", message, headers={"www-authenticate": "Bearer"})


class MethodNotAllowed(RequestError):
    """A route that exists, but not with this method."""

    def __init__(self, allowed: Iterable[str]) -> None:
        methods = ", ".join(sorted(allowed))
        message = f"This route exists, but only with {methods}."
        super().__init__(405, "method_not_allowed", message, headers={"allow": methods})


def status_of(error: errors.SemindexError) -> int:
    """Return the status of an error: its own class's, else that of the nearest parent, else 500."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def refusal_of(group: BaseExceptionGroup[Exception], what: str) -> RequestError:
    """Return what a client is told of the errors that ended its request; what nobody expected is logged, and not told.

    ``what`` names the request in the log, without anything that the client may have wanted to keep to itself.
    """
    request_id = uuid.uuid4().hex[:12]
    error = expected(group, f"request {request_id}")
    if error is None:
        return RequestError(500, "internal", f"An unexpected error; the log has it under {request_id}.")
    if isinstance(error, RequestError):
        return error
    logger.info("request %s: %s: %s: %s", request_id, what, error.code, error)
    return RequestError(status_of(error), error.code, str(error))


def expected(group: BaseExceptionGroup[Exception], what: str) -> RequestError | errors.SemindexError | None:
    """Return the first error raised on purpose; all that nobody expected are logged, also where they came with it."""
    first: RequestError | errors.SemindexError | None = None
    for error in errors.leaves(group):
        if not isinstance(error, RequestError | errors.SemindexError):
            logger.error("%s failed", what, exc_info=error)
        elif first is None:
            first = error
    return first
