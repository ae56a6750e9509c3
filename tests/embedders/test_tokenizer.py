import re
import unicodedata
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semindex.embedders import tokenizer
from semindex.embedders.tokenizer import BUCKETS, Tokenizer, words

PIECES = ["parse", "header", "par", "#se", "#r", "http", "s", "#s", "e"]
REFERENCE_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
"""The definition with which the shipped vocabulary was learned; the module's own patterns are faster, not different."""


def row(piece: str) -> int:
    return BUCKETS + PIECES.index(piece)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parseHTTPHeader", ["parse", "http", "header"]),
        ("parse_header-line.X", ["parse", "header", "line", "x"]),
        ("utf8 x86_64", ["utf", "8", "x", "86", "64"]),
        ("HTTP", ["http"]),
        ("ABc", ["a", "bc"]),
        ("Éclair naïve ﬁle", ["eclair", "naive", "file"]),
        ("ΣΑΣ 日本語", ["σας", "日本語"]),
        ("१२ ½", ["१२", "1", "2"]),
        ("_ -> ();", []),
        ("", []),
    ],
)
def test_words_are_cut_at_case_changes_underscores_digits_and_punctuation(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text("aBC9_ é\u0301ж") | st.text(st.characters()))
@example("HTTPServerÉcole ABж AB1aB AB_ AB.")
@example("\ud800a\udfffB")
def test_the_fast_patterns_cut_like_the_definition(text: str) -> None:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))

    assert words(text) == [word.lower()[:64] for word in REFERENCE_WORD.findall(plain)]


def test_a_word_becomes_its_longest_known_pieces() -> None:
    tokenizer = Tokenizer(PIECES)

    assert tokenizer.rows("parse Header") == [row("parse"), row("header")]
    assert tokenizer.rows("parser") == [row("parse"), row("#r")]
    assert tokenizer.rows("parrse") == [row("par"), row("#r"), row("#se")]


def test_a_piece_that_begins_a_word_is_not_one_that_continues_it() -> None:
    assert Tokenizer(PIECES).rows("ss") == [row("s"), row("#s")]


@given(st.text(st.characters()))
def test_unknown_characters_share_all_buckets_but_the_one_of_texts_without_words(text: str) -> None:
    rows = Tokenizer([]).rows(text)

    assert len(rows) == sum(map(len, words(text)))
    assert all(0 < row < BUCKETS for row in rows)


def test_a_character_has_the_same_bucket_in_every_process() -> None:
    assert Tokenizer([]).rows("日") == [1 + zlib.crc32("日".encode()) % 255]


def test_only_the_first_64_characters_of_a_word_are_read() -> None:
    tokenizer = Tokenizer(["a", "#a"])

    assert len(tokenizer.rows("a" * 1000)) == 64


def test_a_text_longer_than_a_window_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "parse header " * 30
    whole = words(text)

    monkeypatch.setattr(tokenizer, "_WINDOW", 13)

    assert words(text) == whole


def test_the_memo_is_bounded_and_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "_MEMO_ENTRIES", 10)
    found = Tokenizer(PIECES)
    texts = ["".join(letters) for letters in zip("abcdefgh" * 20, "parsehttpe" * 16, strict=True)]

    for text in [*texts, "b" * 1000, *texts]:
        assert found.rows(text) == Tokenizer(PIECES).rows(text)
        assert len(found._memo) <= 10
        assert "b" * 1000 not in found._memo
