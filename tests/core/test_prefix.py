"""Search paths, beside the reference's own cases."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.core.prefix import parse_prefix
from semindex.model.errors import InvalidInput
from semindex.model.limits import MAX_PATH

CASES = json.loads((Path(__file__).parents[1] / "fixtures/parity/misc.json").read_text(encoding="utf-8"))[
    "pathPrefixes"
]
OTHERWISE = {
    "src\\a": "backslashes are ordinary characters",
    "/abs/dir": "absolute paths are refused",
    "../x": "escaping paths are refused",
}


@pytest.mark.parametrize(
    ("prefix", "segments"),
    [(case["prefix"], tuple(case["segments"])) for case in CASES["cases"] if case["prefix"] not in OTHERWISE],
)
def test_a_prefix_has_the_segments_that_the_reference_gives_it(prefix: str | None, segments: tuple[str, ...]) -> None:
    assert parse_prefix(prefix) == segments


def test_a_backslash_is_an_ordinary_character() -> None:
    assert parse_prefix("src\\a") == ("src\\a",)


@pytest.mark.parametrize(
    ("prefix", "word"),
    [
        ("/abs/dir", "absolute"),
        ("../x", "out of the workspace"),
        ("a/../../x", "out of the workspace"),
        ("a\0b", "character"),
        ("a\ud800", "character"),
        ("a/" * MAX_PATH, "longer"),
    ],
)
def test_a_prefix_that_can_match_nothing_is_refused_with_a_reason(prefix: str, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        parse_prefix(prefix)


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "a.b", "\\"]), max_size=8).map("/".join))
def test_a_prefix_is_refused_or_leads_to_plain_segments_below_the_root(prefix: str) -> None:
    try:
        segments = parse_prefix(prefix)
    except InvalidInput:
        return

    assert not {"", ".", ".."} & set(segments)
    assert parse_prefix("/".join(segments)) == segments
