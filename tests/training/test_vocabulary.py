import os
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

from semindex.embedders.tokenizer import BUCKETS, Tokenizer
from training import vocabulary
from training.vocabulary import learn

LETTERS = 72
"""Pieces that every vocabulary begins with: letters and digits, beginning and continuing a word."""


def texts(packages: int) -> list[tuple[str, str, str]]:
    return [
        (f"package{number % packages}", "parse the header", f"def parse_header(line): walked talked value{number}")
        for number in range(12)
    ]


def test_letters_come_first_then_words_by_weight_then_merged_pieces() -> None:
    pieces = learn(texts(3), LETTERS + 40)

    words = pieces[LETTERS : pieces.index("value") + 1]
    assert pieces[:LETTERS] == [
        mark + letter for mark in ("", "#") for letter in "abcdefghijklmnopqrstuvwxyz0123456789"
    ]
    assert words == ["header", "parse", "the", "def", "line", "talked", "value"]
    assert len(set(pieces)) == len(pieces)


def test_a_word_of_too_few_packages_gets_pieces_instead_of_a_row() -> None:
    assert learn(texts(3), LETTERS + 40)[LETTERS] == "header"
    assert learn(texts(2), LETTERS + 40)[LETTERS] == "#ad"


def test_the_most_frequent_pair_is_merged_first() -> None:
    corpus = [("p", "", "lower lower lower lowest lowest lowest newer newer newer")]

    assert learn(corpus, LETTERS + 3)[LETTERS:] == ["#we", "#owe", "lowe"]


def test_the_size_is_never_passed_and_words_take_four_fifths() -> None:
    many = [(f"package{n % 5}", "", " ".join(f"{a}{b}{a}" for a in "bcdfghklmn" for b in "aeiou")) for n in range(5)]

    pieces = learn(many, 120)

    assert len(pieces) == 120
    assert sum(len(piece) == 3 and not piece.startswith("#") for piece in pieces[LETTERS:96]) == 24


def test_order_of_texts_and_hash_seed_make_no_difference() -> None:
    corpus = texts(2)
    shuffled = random.Random(1).sample(corpus, len(corpus))
    program = f"from training.vocabulary import learn; print(learn({corpus!r}, 300))"

    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert outputs == {f"{learn(shuffled, 300)}\n"}


def test_merging_counts_like_a_recount_would() -> None:
    """The merger keeps its counts up to date by differences; this recounts everything after each merge."""
    generator = random.Random(3)
    counts = {"".join(generator.choices("ab", k=generator.randint(2, 9))): generator.randint(3, 9) for _ in range(30)}

    expected = []
    spelled = {word: [word[0], *("#" + letter for letter in word[1:])] for word in counts}
    while True:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, symbols in spelled.items():
            for pair in pairwise(symbols):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        expected.append(best[0] + best[1][1:])
        for word, symbols in spelled.items():
            merged: list[str] = []
            for symbol in symbols:
                if merged and (merged[-1], symbol) == best:
                    merged[-1] += symbol[1:]
                else:
                    merged.append(symbol)
            spelled[word] = merged

    assert list(vocabulary._Merger(counts).pieces()) == expected


def test_a_learned_vocabulary_is_one_that_the_tokenizer_reads() -> None:
    pieces = learn(texts(3), LETTERS + 40)
    tokenizer = Tokenizer(pieces)

    assert tokenizer.rows("parseHeader") == [BUCKETS + pieces.index("parse"), BUCKETS + pieces.index("header")]
    assert all(row >= BUCKETS for row in tokenizer.rows("unheard of words 123"))
