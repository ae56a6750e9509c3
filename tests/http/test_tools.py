"""The schemas of the two tools, as clients see them."""

from typing import Any

import pytest
from pydantic import ValidationError

from semindex.http import tools, wire

SEARCH_INPUT = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2000,
            "description": "What to look for, in plain words",
        },
        "path": {
            "type": "string",
            "maxLength": 1024,
            "default": "",
            "description": "Directory or file, relative to the workspace",
        },
        "maxResults": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20},
        "fresh": {
            "type": "boolean",
            "default": True,
            "description": "Take in first what changed on disk before the call, for at most two seconds",
        },
        "overlap": {
            "type": "string",
            "enum": ["fold", "keep"],
            "description": "keep: also return hits that lie inside a better one",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
"""Written out: agents know it, so a change has to be on purpose."""


def test_the_tools_take_what_clients_know() -> None:
    schemas = {tool.name: tool.input_schema for tool in tools.TOOLS}

    assert schemas == {
        "semantic_search": SEARCH_INPUT,
        "index_status": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    }


@pytest.mark.parametrize(
    "arguments",
    [{"query": ""}, {"query": "q" * 2001}, {"query": "q", "path": "p" * 1025}, {"query": "q", "maxResults": 51}],
)
def test_what_the_schema_refuses_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        wire.SearchFields.model_validate(arguments)


@pytest.mark.parametrize(("overlap", "keeps"), [({}, None), ({"overlap": "fold"}, False), ({"overlap": "keep"}, True)])
def test_overlaps_are_kept_or_folded_as_asked_and_else_as_the_profile_says(
    overlap: dict[str, str], keeps: bool | None
) -> None:
    assert wire.SearchFields.model_validate({"query": "q", **overlap}).keep_overlaps is keeps
