"""The two MCP tools: names, schemas, instructions, and answers that fit into an agent's context.

Agents and their instructions know these names: they are not changed.
"""

import json
from typing import Any, Final

import mcp_types as types
from pydantic.json_schema import GenerateJsonSchema

from semindex.http import wire
from semindex.model.status import State

MAX_ANSWER: Final = 48 * 1024
"""Bytes of an answer's text content as UTF-8."""
SNIPPET_STEPS: Final = (4000, 2000, 1000, 500, 200)
"""Characters to which snippets are cut, one step after the other, until the answer fits."""

SEARCH: Final = "semantic_search"
STATUS: Final = "index_status"

INSTRUCTIONS: Final = """\
semantic_search finds code of the current workspace by meaning: ask it in plain words where something is done, or how.
Use it first in code that you do not know; use grep for exact names and strings, and to find every occurrence.
Results are what is on disk now, your own edits included; "fresh": false names files that are still being indexed.
An error that says the index is not ready is not "nothing found": wait a moment, see index_status, or use grep meanwhile.
Narrow a search with path, a directory or file relative to the workspace; the workspace itself follows from your client.
"""


class StatusArguments(wire.Request):
    """Arguments of ``index_status``: none."""


_READS_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_STRING: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TIME: Final = {"type": "string", "format": "date-time"}
_STATE: Final = {"type": "string", "enum": [state.value for state in State]}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _input(arguments: type[wire.Request]) -> dict[str, Any]:
    """Return the schema of a tool's arguments, as its model checks them."""
    schema = arguments.model_json_schema(schema_generator=_Terse)
    return _object(schema.get("required", []), **schema["properties"])


class _Terse(GenerateJsonSchema):
    """Says nothing of no use to an agent: titles that repeat a name, and that what may be left out is then null."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


_HIT = _object(
    ["filePath", "score", "startLine", "endLine", "codeChunk"],
    filePath=_STRING,
    score=_NUMBER,
    startLine=_COUNT,
    endLine=_COUNT,
    codeChunk=_STRING,
)
_SEARCH_OUTPUT = _object(
    ["workspace", "state", "results"],
    workspace=_STRING,
    root=_STRING,
    branch=_STRING,
    state=_STATE,
    results={"type": "array", "items": _HIT},
    fresh={"type": "boolean"},
    pending={"type": "array", "items": _STRING},
    pendingCount=_COUNT,
    withheld=_COUNT,
    reason=_STRING,
    milliseconds={"type": "object", "additionalProperties": _NUMBER},
    cut=_object(["snippets", "results"], snippets=_COUNT, results=_COUNT),
)
_STATUS_OUTPUT = _object(
    ["kind", "state", "message", "processedItems", "totalItems", "percent", "updatedAt"],
    kind={"type": "string", "enum": ["primary", "worktree"]},
    state=_STATE,
    message=_STRING,
    processedItems=_COUNT,
    totalItems=_COUNT,
    percent={"type": "number", "minimum": 0, "maximum": 100},
    updatedAt=_TIME,
    lastCompletedAt=_TIME,
    lastUpdateAt=_TIME,
    filesIndexed=_COUNT,
    filesDiscovered=_COUNT,
    pendingFiles=_COUNT,
    skippedFiles=_COUNT,
    failedFiles=_object(
        ["count", "first"],
        count=_COUNT,
        first={"type": "array", "items": _object(["path", "reason"], path=_STRING, reason=_STRING)},
    ),
    totalChunks=_COUNT,
    embeddedChunks=_COUNT,
    reusedChunks=_COUNT,
    lagMs=_COUNT,
    lastError=_STRING,
)

TOOLS: Final = (
    types.Tool(
        name=SEARCH,
        title="Semantic code search",
        description="Find code in the current workspace by what it does, asked in plain words. Answers with text that is "
        "on disk now.",
        input_schema=_input(wire.SearchFields),
        output_schema=_SEARCH_OUTPUT,
        annotations=_READS_ONLY,
        execution=types.ToolExecution(task_support="forbidden"),
    ),
    types.Tool(
        name=STATUS,
        title="Semantic index status",
        description="Tell whether the index of the current workspace is ready, and how far it is.",
        input_schema=_input(StatusArguments),
        output_schema=_STATUS_OUTPUT,
        annotations=_READS_ONLY,
        execution=types.ToolExecution(task_support="forbidden"),
    ),
)


def fitted(answer: wire.Json) -> wire.Json:
    """Return a search answer whose text stays within the limit: long snippets are cut, then the last hits are dropped.

    The first hit is never dropped. What was cut is said in the field ``cut``.
    """
    number = len(answer["results"])
    ways = [(longest, number) for longest in (None, *SNIPPET_STEPS)]
    ways += [(SNIPPET_STEPS[-1], kept) for kept in range(number - 1, 0, -1)]
    fitting = (cut for longest, kept in ways if _size(cut := _cut_answer(answer, longest, kept)) <= MAX_ANSWER)
    return next(fitting, _cut_answer(answer, SNIPPET_STEPS[-1], 1))


def _cut_answer(answer: wire.Json, longest: int | None, kept: int) -> wire.Json:
    hits = answer["results"][:kept]
    if longest is None:
        return answer
    results = [hit | {"codeChunk": _cut(hit["codeChunk"], longest)} for hit in hits]
    snippets = sum(result != hit for result, hit in zip(results, hits, strict=True))
    return answer | {"results": results, "cut": {"snippets": snippets, "results": len(answer["results"]) - kept}}


def text_of(answer: wire.Json) -> str:
    """Return an answer as the compact JSON that is its text content."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _size(answer: wire.Json) -> int:
    return len(text_of(answer).encode("utf-8", "replace"))


def _cut(text: str, longest: int) -> str:
    """Return a long text with its middle left out, at line ends where there are any."""
    if len(text) <= longest:
        return text
    head, tail = text[: longest * 2 // 3], text[-(longest // 3) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") :] if "\n" in tail else tail
    return f"{head}[… {len(text) - len(head) - len(tail)} characters left out …]{tail}"
