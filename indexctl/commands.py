"""What each command does: its calls, and what is to be shown of their answers."""

import argparse
import os
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from indexctl import waiting
from indexctl.client import Client, Json, route
from indexctl.errors import Misused

PAGE = 1000
"""Files of one request."""


@frozen
class Result:
    """What a command has found out or done."""

    view: str
    """Name of the function in :mod:`indexctl.views` that shows it to people."""
    value: Any
    """The JSON that is printed for programs."""


def register(client: Client, arguments: argparse.Namespace) -> Result:
    """Register a workspace, and wait until it is indexed if that is wanted."""
    body: Json = {"path": _absolute(arguments.path)}
    if arguments.baseline is not None:
        body["baselinePath"] = _absolute(arguments.baseline)
    body |= {name: True for name in ("force", "adopt") if getattr(arguments, name)}
    status = client.call("PUT", route("registrations", arguments.id), body=body, needs=("id", "state"))
    return Result("registration", waiting.until_indexed(client, arguments.id) if arguments.wait else status)


def status(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell how a registration stands."""
    found = client.get(route("registrations", arguments.id), needs=("id", "state"))
    return Result("registration", waiting.until_indexed(client, arguments.id) if arguments.wait else found)


def list_(client: Client, _: argparse.Namespace) -> Result:
    """Tell of all registrations."""
    return Result("registrations", client.get(route("registrations"), needs=("registrations",))["registrations"])


def release(client: Client, arguments: argparse.Namespace) -> Result:
    """Release a registration; that is done when the answer comes."""
    query = {name: "true" for name in ("purge", "force") if getattr(arguments, name)}
    path = route("registrations", arguments.id)
    return Result("receipt", client.call("DELETE", path, query, needs=("released",), timeout=client.remaining()))


def reindex(client: Client, arguments: argparse.Namespace) -> Result:
    """Build an index anew while it is in use."""
    return _operate(client, arguments, "reindex")


def purge(client: Client, arguments: argparse.Namespace) -> Result:
    """Delete an index; its registration stays."""
    return _operate(client, arguments, "purge")


def _operate(client: Client, arguments: argparse.Namespace, kind: str) -> Result:
    query = {"force": "true"} if arguments.force else None
    begun = client.call(
        "POST", route("registrations", arguments.id, kind), query, needs=("id", "registrationId", "state")
    )
    return Result("operation", waiting.until_ended(client, begun) if arguments.wait else begun)


def search(client: Client, arguments: argparse.Namespace) -> Result:
    """Ask a question."""
    body: Json = {"registrationId": arguments.id, "query": arguments.query, "maxResults": arguments.max_results}
    if arguments.path is not None:
        body["path"] = arguments.path
    return Result("search", client.call("POST", route("search"), body=body, needs=("results", "state")))


def service_status(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell how the service stands."""
    if arguments.wait:
        return Result("service", waiting.until_ready(client))
    return Result("service", client.get(route("status"), needs=("phase", "registrations")))


def watch(client: Client, arguments: argparse.Namespace) -> None:
    """Show all registrations, and every change of theirs."""
    from indexctl import watching

    watching.watch(client, as_json=arguments.json)


def files(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell of each file of a workspace whether it is indexed, and why not."""
    return Result("files", list(_all_files(client, arguments)))


def _all_files(client: Client, arguments: argparse.Namespace) -> Iterator[Json]:
    query = {"limit": str(PAGE)} | ({} if arguments.state is None else {"state": arguments.state})
    path = route("registrations", arguments.id, "files")
    page = client.get(path, query, needs=("files",))["files"]
    while page:
        yield from page
        page = client.get(path, query | {"after": page[-1]["path"]}, needs=("files",))["files"]


def explain(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell why a path is or is not searchable."""
    path = route("registrations", arguments.id, "explain")
    return Result("explanation", client.get(path, {"path": arguments.path}, needs=("searchable", "reason")))


def create_token(client: Client, arguments: argparse.Namespace) -> Result:
    """Make a search token."""
    path = route("registrations", arguments.id, "tokens")
    return Result("new_token", client.call("POST", path, body={"label": arguments.label}, needs=("id", "token")))


def list_tokens(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell which search tokens there are; not the tokens themselves, which nobody keeps."""
    return Result("tokens", client.get(route("registrations", arguments.id, "tokens"), needs=("tokens",))["tokens"])


def revoke_token(client: Client, arguments: argparse.Namespace) -> Result:
    """Make a search token worthless."""
    path = route("registrations", arguments.id, "tokens", arguments.token_id)
    return Result("revocation", client.call("DELETE", path, needs=("revoked",)))


def orphans(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell what nothing owns any more, and delete what was told if that is wanted."""
    found = client.get(route("orphans"), needs=("orphans",))["orphans"]
    if arguments.purge is None:
        return Result("orphans", found)
    names = arguments.purge or [orphan["name"] for orphan in found]
    if not names:
        return Result("orphans", [])
    gone = client.call("POST", route("orphans", "purge"), body={"names": names}, needs=("orphans",))["orphans"]
    return Result("purged", gone)


def _absolute(path: str) -> str:
    """Return a path as the service is to see it, whose working directory is another."""
    if not path or os.path.isabs(path):
        return path
    try:
        # Not only joined: ".." after a link leads to where the link points.
        return os.path.realpath(path)
    except OSError as error:
        raise Misused(f"The path {path} cannot be made absolute: {error.strerror}; give an absolute one.") from error
