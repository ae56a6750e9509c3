from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semindex.stores.filters import (
    DEEP_PATHS,
    INDEXED_KEYS,
    deep_paths,
    delete_filters,
    lies_below,
    score_threshold,
    search_filter,
)

names = st.sampled_from(["a", "b", "a.py"])
paths = st.lists(names, min_size=1, max_size=8).map("/".join)


def matches(condition: Mapping[str, Any], path: str) -> bool:
    """What the engine says of a chunk of the file at ``path``; an evaluator of the REST filters that we use."""
    if "key" in condition:
        fields = {f"pathSegments.{index}": [name] for index, name in enumerate(path.split("/"))}
        values = (fields | {"filePath": [path], DEEP_PATHS: deep_paths(path)}).get(condition["key"], [])
        wanted = condition["match"].get("any") or [condition["match"]["value"]]
        return not set(values).isdisjoint(wanted)
    assert set(condition) <= {"must", "should", "must_not"}
    assert any(condition.values()), "an empty filter matches every point"
    return (
        all(matches(part, path) for part in condition.get("must", ()))
        and not any(matches(part, path) for part in condition.get("must_not", ()))
        and ("should" not in condition or any(matches(part, path) for part in condition["should"]))
    )


def keys(condition: Mapping[str, Any]) -> Iterator[str]:
    if "key" in condition:
        yield condition["key"]
    for clause in ("must", "should", "must_not"):
        for part in condition.get(clause, ()):
            yield from keys(part)


@given(st.lists(paths, max_size=120), st.lists(paths))
def test_delete_filters_match_exactly_the_files(gone: Sequence[str], stored: Sequence[str]) -> None:
    filters = list(delete_filters(gone))

    for path in [*stored, *gone]:
        assert any(matches(condition, path) for condition in filters) == (path in gone)
    assert all(len(condition["should"]) <= 50 for condition in filters)


@given(st.lists(names, max_size=8), st.sets(paths), st.lists(paths))
def test_a_search_filter_matches_what_lies_below_and_is_not_excluded(
    segments: Sequence[str], exclude: set[str], stored: Sequence[str]
) -> None:
    deep, shallow = search_filter(segments, exclude, deep=True), search_filter(segments, exclude)

    for path in [*stored, *exclude, "/".join(segments), "/".join([*segments, "b"])]:
        wanted = path not in exclude and lies_below(path, segments)
        assert matches(deep, path) == wanted
        assert (matches(shallow, path) and lies_below(path, segments)) == wanted


@given(st.lists(names, max_size=8), st.lists(paths), st.lists(paths, min_size=1))
def test_filters_for_a_strict_server_use_indexed_keys_only(
    segments: Sequence[str], exclude: Sequence[str], gone: Sequence[str]
) -> None:
    search = search_filter(segments, exclude)

    assert {key for condition in [search, *delete_filters(gone)] for key in keys(condition)} <= set(INDEXED_KEYS)


@given(st.floats(-1, 1, width=32))
def test_the_threshold_is_the_next_number_below_the_least_score(least: float) -> None:
    threshold = score_threshold(least)

    assert threshold < least
    assert np.nextafter(np.float32(threshold), np.float32(2)) == np.float32(least)
