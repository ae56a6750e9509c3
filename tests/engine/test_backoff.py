"""Pauses between tries."""

import pytest

from semindex.engine.backoff import Backoff


@pytest.mark.parametrize(
    ("first", "longest", "expected"),
    [(0.5, 3, [0.5, 1, 2, 3, 3]), (1, 4, [1, 2, 4, 4, 4]), (5, 2, [2, 2, 2, 2, 2])],
    ids=["capped", "power of two", "first above longest"],
)
def test_pauses_double_up_to_the_longest_until_something_works(
    first: float, longest: float, expected: list[float]
) -> None:
    backoff = Backoff(first, longest)
    for _ in range(2):
        assert [backoff.next() for _ in expected] == expected
        backoff.reset()
