from hypothesis import given
from hypothesis import strategies as st

from training.overlap import THRESHOLD, NearDuplicates, without_overlap
from training.pairs import Pair

TEXTS = st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1).map(" ".join), max_size=8)


@given(TEXTS, TEXTS)
def test_exactly_the_texts_at_the_threshold_are_found(avoided: list[str], probes: list[str]) -> None:
    index = NearDuplicates(avoided)

    for probe in probes:
        left = set(probe.split())
        similar = [len(left & right) / len(left | right) for right in (set(text.split()) for text in avoided)]
        assert (probe in index) == any(similarity >= THRESHOLD for similarity in similar)


def test_case_punctuation_and_order_make_no_difference() -> None:
    index = NearDuplicates(["Return the size, in bytes.", ""])

    assert "in BYTES return_the size" in index
    assert "something else" not in index
    assert "" not in index


def test_a_pair_goes_if_its_query_or_its_code_is_held_out() -> None:
    def pair(query: str, code: str) -> Pair:
        return Pair("python", "p", "p.py", "f", query, code)

    kept = pair("count all open files", "def count(): return len(files)")
    same_query = pair("parse the header line", "def p(): other")
    same_code = pair("cut text at colons", "def parse(line): return line.split(':')")
    heldout = [pair("Parse the header line.", "def parse(line): return line.split(':')"), pair("", "x y z")]

    assert without_overlap([kept, same_query, same_code], heldout) == [kept]
