"""Names and ids against what the reference engine computes (tests/fixtures/parity/misc.json)."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.model import ids

MISC: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "parity" / "misc.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", MISC["collectionNames"]["cases"], ids=lambda case: case["workspace"])
def test_collection_names_are_the_references(case: dict[str, str]) -> None:
    assert ids.collection_name(case["workspace"]) == case["collection"]


@pytest.mark.parametrize("case", MISC["cacheFiles"]["cases"], ids=lambda case: case["workspace"])
def test_cache_file_names_are_the_references(case: dict[str, str]) -> None:
    assert ids.reference_cache_file(case["workspace"]) == case["file"]


@pytest.mark.parametrize("case", MISC["pointIds"]["cases"], ids=lambda case: case["segmentHash"][:8])
def test_point_ids_are_the_references(case: dict[str, str]) -> None:
    assert ids.point_id(case["segmentHash"]) == case["pointId"]
    assert ids.point_id(case["segmentHash"]) == str(
        uuid.uuid5(uuid.UUID(MISC["pointIds"]["namespace"]), case["segmentHash"])
    )


def test_the_metadata_point_is_the_references() -> None:
    assert MISC["pointIds"]["metadataPoint"] == ids.METADATA_POINT_ID


def test_hashes_are_those_of_the_text_as_utf_8() -> None:
    assert ids.file_hash("\ufeffäö\U0001f600\n") == hashlib.sha256("\ufeffäö\U0001f600\n".encode()).hexdigest()
    assert ids.segment_hash("/a.py", 3, 4, 50, "ab") == hashlib.sha256(b"/a.py-3-4-50-ab").hexdigest()
    assert ids.piece_hash("/a.py", 3, 1000, 50, "ab") == hashlib.sha256(b"/a.py-3-3-1000-50-ab").hexdigest()


def test_a_lone_surrogate_counts_as_the_replacement_character_and_a_pair_as_one_character() -> None:
    assert ids.well_formed("a\ud83d") == "a\ufffd"
    assert ids.well_formed("\ude00b") == "\ufffdb"
    assert ids.well_formed("\ud83d\ude00") == "\U0001f600"
    assert ids.sha256_hex("\ud83d") == ids.sha256_hex("\ufffd")


@given(st.text(st.characters(exclude_categories=()) | st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)))
def test_well_formed_text_can_always_be_encoded_and_stays_as_it_is(text: str) -> None:
    formed = ids.well_formed(text)
    formed.encode()
    assert ids.well_formed(formed) == formed
