from hypothesis import given
from hypothesis import strategies as st

from semindex.core.utf16 import encode, from_units, to_units

texts = st.text(st.characters(codec="utf-8") | st.sampled_from("a\ue000\uffff\U00010000\U0001f600\U0010ffff"))


@given(texts)
def test_lengths_and_cuts_are_those_of_utf_16(text: str) -> None:
    units = to_units(text)
    assert len(units) == len(text.encode("utf-16-le")) // 2
    assert encode(units) == text.encode("utf-16-le")


@given(texts)
def test_the_text_comes_back(text: str) -> None:
    assert from_units(to_units(text)) == text


@given(texts, st.integers(0, 50))
def test_a_cut_leaves_at_most_half_a_character_on_either_side(text: str, cut: int) -> None:
    units = to_units(text)
    assert from_units(from_units(units[:cut]) + from_units(units[cut:])) == text


def test_a_text_without_large_characters_is_its_own_unit_text() -> None:
    for text in ("ascii", "\u00e4\uffff"):
        assert to_units(text) is text
        assert from_units(text) is text
