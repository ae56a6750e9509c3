"""How results look on a terminal. What services and repositories say is plain text there, which moves no cursor."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from indexctl.client import Json
from indexctl.commands import Result
from semindex.terminal import excerpt, printable

_COLOURS: Final = {
    "Indexed": "green",
    "indexed": "green",
    "completed": "green",
    "ready": "green",
    "Indexing": "yellow",
    "pending": "yellow",
    "running": "yellow",
    "Error": "red",
    "failed": "red",
    "degraded": "red",
}
_NOTHING_FOUND: Final = {
    "filtered_out": "Nothing below this path is close enough to the question, but something elsewhere is.",
    "withheld": "What was close has changed on disk and is being indexed; ask again in a moment.",
    "still_indexing": "Nothing yet; files are still being indexed.",
}


def show(result: Result) -> None:
    """Print a result on standard output."""
    view = _VIEWS[result.view](result.value)
    # Lines are left whole, so that a path can be copied; a table is fitted into the width.
    Console(highlight=False).print(view, soft_wrap=not isinstance(view, Table))


def plain(value: object, style: str = "") -> Text:
    """Return something that was said by others as text without any power."""
    return Text(printable(str(value)), style)


def state(value: object) -> Text:
    """Return the word for a state, in its colour."""
    return plain(value, _COLOURS.get(str(value), "dim"))


def table(*headings: str) -> Table:
    """Return an empty table without lines."""
    made = Table(*headings, box=None, pad_edge=False, header_style="dim")
    for column in made.columns:
        column.overflow = "fold"
    return made


def progress(status: Json) -> str:
    """Return how many files of a workspace are done, in a few words."""
    if status["state"] == "Indexing" and status.get("totalItems"):
        return f"{status['processedItems']:,}/{status['totalItems']:,}"
    return f"{status.get('filesIndexed', 0):,}"


def _line(*parts: Text | str) -> Text:
    return Text("  ").join(part if isinstance(part, Text) else plain(part) for part in parts)


def _registration(status: Json) -> RenderableType:
    done, chunks = progress(status), _count(status.get("totalChunks", 0), "chunk")
    numbers = f"{done} {'file' if done == '1' else 'files'}, {chunks}"
    below = f", on {status['baselinePath']}" if "baselinePath" in status else ""
    lines = [
        _line(plain(status["id"], "bold"), state(status["state"]), numbers),
        plain(f"{status.get('kind')} {status.get('path')}{below}"),
        plain(status.get("message")),
    ]
    if skipped := status.get("skippedFiles"):
        lines.append(plain(f"{_count(skipped, 'file')} skipped: indexctl files --id {status['id']} --state skipped"))
    failed = status.get("failedFiles", {})
    lines += [plain(f"failed: {each['path']}: {each['reason']}", "red") for each in failed.get("first", ())]
    return Group(*lines)


def _registrations(statuses: list[Json]) -> RenderableType:
    if not statuses:
        return Text("Nothing is registered; begin with: indexctl register --id NAME --path DIR --wait")
    rows = table("id", "kind", "state", "files", "path")
    for each in statuses:
        rows.add_row(plain(each["id"]), plain(each["kind"]), state(each["state"]), progress(each), plain(each["path"]))
    return rows


def _receipt(receipt: Json) -> RenderableType:
    stored = f"{_count(receipt.get('points', 0), 'chunk')}, {_size(receipt.get('bytes', 0))}"
    what = f"its index is deleted ({stored})" if receipt.get("purged") else "its index stays"
    before = ", ".join(receipt.get("worktrees", ()))
    more = f" Released before it: {before}." if before else ""
    return plain(f"{receipt['released']} is released; {what}.{more}")


def _operation(operation: Json) -> RenderableType:
    what = f"{operation.get('kind')} of {operation['registrationId']}"
    return _line(what, state(operation["state"]), plain(operation["id"], "dim"))


def _search(answer: Json) -> RenderableType:
    lines: list[Text] = []
    for hit in answer["results"]:
        place = f"{hit['filePath']}:{hit['startLine']}-{hit['endLine']}"
        lines += [_line(plain(place, "bold"), f"{hit['score']:.2f}"), *map(Text, excerpt(hit["codeChunk"])), Text()]
    if not lines:
        lines.append(Text(_NOTHING_FOUND.get(answer.get("reason", ""), "Nothing is close enough to the question.")))
    if not answer.get("fresh", True):
        pending = _count(answer.get("pendingCount", 0), "file")
        lines.append(plain(f"Not taken in yet: {pending}, new or changed.", "yellow"))
    if (withheld := answer.get("withheld", 0)) and answer["results"]:
        lines.append(plain(f"Left out, because of changes on disk: {_count(withheld, 'hit')}.", "yellow"))
    return Group(*lines)


def _service(status: Json) -> RenderableType:
    lines = [
        _line(state(status["phase"]), f"semindex {status.get('version')}", f"since {status.get('startedAt')}"),
        plain(status.get("message")),
    ]
    for name, health in status.get("dependencies", {}).items():
        if not health.get("reachable"):
            lines.append(plain(f"{name}: {health.get('lastError')}", "red"))
    numbers = {
        "registrations": len(status["registrations"]),
        "active workspaces": status.get("activeManagers"),
        "MCP sessions": status.get("mcpSessions"),
        "texts to embed": status.get("queueDepth"),
        "orphans": status.get("orphans"),
        "embedding cache": _size(status.get("cache", {}).get("bytes", 0)),
    }
    lines += [plain(f"{name}: {value}") for name, value in numbers.items()]
    return Group(*lines)


def _files(records: Iterable[Json]) -> RenderableType:
    lines = []
    for record in records:
        shared = "as in the primary checkout" if record.get("inherited") else None
        remark = record.get("reason") or shared or _count(record.get("chunks", 0), "chunk")
        lines.append(_line(state(record["state"]), record["path"], plain(remark, "dim")))
    return Group(*lines)


def _explanation(found: Json) -> RenderableType:
    verdict = "searchable" if found["searchable"] else "not searchable"
    lines = [_line(plain(found.get("path"), "bold"), verdict), plain(found["reason"])]
    if "rule" in found:
        lines.append(plain(f"rule: {found['rule']}  ({found.get('source')})"))
    if chunks := found.get("chunks"):
        spans = sorted((each["startLine"], each["endLine"]) for each in chunks)
        lines.append(plain("chunks: " + ", ".join(f"{first}-{last}" for first, last in spans)))
    return Group(*lines)


def _new_token(made: Json) -> RenderableType:
    return Group(plain(made["token"], "bold"), plain(f"It is shown only this once. Its id is {made['id']}."))


def _tokens(made: list[Json]) -> RenderableType:
    if not made:
        return Text("There are none.")
    rows = table("id", "created", "label")
    for each in made:
        rows.add_row(plain(each["id"]), plain(each.get("createdAt")), plain(each.get("label")))
    return rows


def _revocation(done: Json) -> RenderableType:
    return plain(f"The token {done['revoked']} is worthless from now on.")


def _orphans(found: list[Json]) -> RenderableType:
    if not found:
        return Text("There are none.")
    rows = table("kind", "points", "name")
    for each in found:
        rows.add_row(plain(each.get("kind")), plain(each.get("points")), plain(each["name"]))
    return rows


def _purged(gone: list[Json]) -> RenderableType:
    return Group(_orphans(gone), plain("Deleted."))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number /= 1024
    return f"{number:,.1f} GiB"


_VIEWS: Final[Mapping[str, Callable[[Any], RenderableType]]] = {
    "registration": _registration,
    "registrations": _registrations,
    "receipt": _receipt,
    "operation": _operation,
    "search": _search,
    "service": _service,
    "files": _files,
    "explanation": _explanation,
    "new_token": _new_token,
    "tokens": _tokens,
    "revocation": _revocation,
    "orphans": _orphans,
    "purged": _purged,
}
