import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.core.reference_cache import parse_reference_cache, render_reference_cache

MISC = json.loads((Path(__file__).parent.parent / "fixtures" / "parity" / "misc.json").read_text(encoding="utf-8"))
CONTENT = MISC["cacheFiles"]["content"]
WORKSPACE = "/home/user/project"


def test_it_is_written_as_the_reference_writes_it() -> None:
    recorded = {path.removeprefix(WORKSPACE + "/"): digest for path, digest in CONTENT["recorded in this order"]}
    assert render_reference_cache(recorded, WORKSPACE) == CONTENT["file text"]
    assert parse_reference_cache(CONTENT["file text"], WORKSPACE) == recorded == {"b.ts": "2", "a.ts": "1"}


def test_entries_of_other_places_and_of_other_kinds_are_left_out() -> None:
    content = json.dumps(
        {"/home/user/project2/a": "1", "relative": "2", "/home/user/project/a": 3, f"{WORKSPACE}/b": "4"}
    )
    assert parse_reference_cache(content, WORKSPACE) == {"b": "4"}


@pytest.mark.parametrize("content", ["", "[]", '{"a": ', "null"])
def test_what_is_no_cache_file_is_an_error(content: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_reference_cache(content, WORKSPACE)


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text("0123456789abcdef")),
    st.sampled_from(["/", "/a", "/ü/b"]),
)
def test_what_is_written_is_read_again(hashes: dict[str, str], workspace: str) -> None:
    assert parse_reference_cache(render_reference_cache(hashes, workspace), workspace) == hashes
