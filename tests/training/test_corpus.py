from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from semindex.embedders.tokenizer import BUCKETS, Tokenizer
from training.corpus import TEMPLATES, Bag, Bags, Corpus, batches, header
from training.pairs import Pair

PIECES = ["parse", "header", "line", "file", "open", "where", "is"]
TEXTS = ["parse parse header", "", "open file file file file", "line"]


def texts_of(bag: Bag) -> list[Counter[str]]:
    """Turn a bag back into words, a word counting as its weight squared (the damping used here is one half)."""
    bounds = [*bag.offsets, len(bag.rows)]
    return [
        Counter(
            {
                PIECES[row - BUCKETS]: round(float(weight) ** 2)
                for row, weight in zip(bag.rows[start:end], bag.weights[start:end], strict=True)
            }
        )
        for start, end in pairwise(bounds)
    ]


@pytest.fixture
def bags() -> Bags:
    return Bags.of(TEXTS, Tokenizer(PIECES), 0.5)


@pytest.mark.parametrize("index", [[0, 1, 2, 3], [2, 0], [1], [3, 3, 1, 2], []])
def test_texts_are_taken_whole_and_in_the_order_asked_for(bags: Bags, index: list[int]) -> None:
    taken = bags.take(np.array(index, np.int64), 1.0, np.random.default_rng(0))

    assert texts_of(taken) == [Counter(TEXTS[number].split()) for number in index]


def test_each_text_keeps_tokens_with_its_own_probability(bags: Bags) -> None:
    taken = bags.take(np.array([0, 2, 0]), np.array([0.0, 1.0, 0.0]), np.random.default_rng(0))

    assert texts_of(taken) == [Counter(), Counter(TEXTS[2].split()), Counter()]


def test_the_kept_share_is_about_the_probability() -> None:
    bags = Bags.of(["parse header line file open"] * 400, Tokenizer(PIECES), 0.5)

    taken = bags.take(np.arange(400), 0.7, np.random.default_rng(0))

    assert 0.65 < len(taken.rows) / 2000 < 0.75


def test_pairs_become_bags_of_queries_symbols_paths_and_code() -> None:
    pairs = [
        Pair("python", "b", "src/line.py", "parseHeader", "parse header", "open file"),
        Pair("python", "a", "file.py", "open", "open line", "line"),
    ]
    corpus = Corpus.of(pairs, Tokenizer(PIECES), 0.5)
    index, random = np.arange(2), np.random.default_rng(0)

    assert len(corpus.query) == len(corpus.code) == 2
    assert len(corpus.templates) == len(TEMPLATES)
    assert corpus.package.tolist() == [1, 0]
    assert [
        texts_of(part)[0] for part in (*corpus.whole(index, random)[0], corpus.symbol.take(index, 1.0, random))
    ] == [
        Counter(["parse", "header"]),
        Counter(["parse", "header"]),
    ]
    counts = corpus.counts(BUCKETS + len(PIECES))
    assert counts[BUCKETS + PIECES.index("line")] == 2
    assert counts[BUCKETS + PIECES.index("where")] == 0


def test_a_query_is_asked_by_its_words_or_by_its_symbol_never_by_both() -> None:
    pairs = [Pair("python", "a", "a.py", "open", "parse header", "line") for _ in range(500)]
    corpus = Corpus.of(pairs, Tokenizer(PIECES), 0.5)

    query, symbol, _ = corpus.augmented_queries(np.arange(500), np.random.default_rng(0))
    words, names = texts_of(query), texts_of(symbol)

    assert all(not (asked and name) for asked, name in zip(words, names, strict=True))
    assert 30 < sum(map(bool, names)) < 90


def test_batches_hold_every_pair_once_and_half_of_them_are_of_one_package() -> None:
    package = np.repeat(np.arange(8), 200)
    index = np.arange(1600)

    found = list(batches(index, package, 100, np.random.default_rng(0)))

    assert sorted(np.concatenate(found)) == index.tolist()
    packages = [len(set(package[batch])) for batch in found]
    assert sum(count <= 2 for count in packages) == 8
    assert sum(count == 8 for count in packages) == 8


def test_batches_too_small_for_contrast_are_left_out() -> None:
    found = list(batches(np.arange(328), np.zeros(328, np.int64), 100, np.random.default_rng(0)))

    assert [len(batch) for batch in found] == [100, 100]


def test_a_header_is_the_end_of_the_path_and_the_symbol() -> None:
    assert header("demo/src/http/parser.py", "Parser.feed") == "src http parser Parser.feed"
    assert header("parser.py", "feed") == "parser feed"
