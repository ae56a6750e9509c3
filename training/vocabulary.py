"""The vocabulary: whole words by frequency, and pieces merged from the words that did not earn a row of their own."""

import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

from semindex.embedders.tokenizer import words

QUERY_FACTOR: Final = 4
"""How much more an occurrence in a query counts than one in code."""
SPREAD: Final = 3
"""Packages that must use a word before it gets a row of its own."""
WORD_SHARE: Final = 0.8
"""Part of the vocabulary that whole words and single letters take."""
_LETTERS = [mark + letter for mark in ("", "#") for letter in string.ascii_lowercase + string.digits]
_LONGEST_RARE_WORD = 30

_Pair = tuple[str, str]


def learn(texts: Iterable[tuple[str, str, str]], size: int) -> list[str]:
    """Return at most ``size`` pieces from (package, query, code) texts: letters, words by frequency, merged pieces.

    A piece that continues a word begins with ``#``. The same texts give the same pieces, in whatever order they come.
    """
    counts, packages = _count(texts)
    frequent = [
        word
        for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if packages[word] >= SPREAD and len(word) > 1 and word.isascii()
    ]
    whole = frequent[: max(int(size * WORD_SHARE) - len(_LETTERS), 0)]
    vocabulary = dict.fromkeys([*_LETTERS, *whole])
    rare = {
        word: count
        for word, count in counts.items()
        if word not in vocabulary and count > 2 and word.isascii() and 1 < len(word) < _LONGEST_RARE_WORD
    }
    for piece in _Merger(rare).pieces():
        if len(vocabulary) >= size:
            break
        vocabulary[piece] = None
    return list(vocabulary)


def _count(texts: Iterable[tuple[str, str, str]]) -> tuple[Counter[str], dict[str, int]]:
    """Return the weighted occurrences of each word, and the number of packages that use it (counted up to SPREAD)."""
    counts: Counter[str] = Counter()
    packages: defaultdict[str, set[str]] = defaultdict(set)
    for package, query, code in texts:
        seen = Counter(words(code))
        for word in words(query):
            seen[word] += QUERY_FACTOR
        for word, count in seen.items():
            counts[word] += count
            if len(packages[word]) < SPREAD:
                packages[word].add(package)
    return counts, {word: len(users) for word, users in packages.items()}


class _Merger:
    """Byte-pair encoding: words spelled in symbols, whose most frequent adjacent pair is merged again and again."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Spell each word in letters; its count says how often it occurs."""
        self._counts = counts
        self._spelled = {word: [word[0], *("#" + letter for letter in word[1:])] for word in counts}
        self._frequency: Counter[_Pair] = Counter()
        self._users: defaultdict[_Pair, set[str]] = defaultdict(set)
        for word in counts:
            self._enter(word)
        self._heap = [(-frequency, pair) for pair, frequency in self._frequency.items()]
        heapify(self._heap)

    def pieces(self) -> Iterator[str]:
        """Yield merged symbols, most frequent pair first; ties go to the smaller pair."""
        while self._heap:
            negative, pair = heappop(self._heap)
            if self._frequency[pair] == -negative:  # else an older count of this pair
                yield pair[0] + pair[1][1:]
                self._merge(pair)

    def _merge(self, pair: _Pair) -> None:
        changed: set[_Pair] = set()
        for word in self._users.pop(pair):
            changed |= self._withdraw(word)
            self._spelled[word] = _joined(self._spelled[word], pair)
            changed |= self._enter(word)
        for other in changed:
            if self._frequency[other] > 0:
                heappush(self._heap, (-self._frequency[other], other))

    def _enter(self, word: str) -> set[_Pair]:
        pairs = list(pairwise(self._spelled[word]))
        for pair in pairs:
            self._frequency[pair] += self._counts[word]
            self._users[pair].add(word)
        return set(pairs)

    def _withdraw(self, word: str) -> set[_Pair]:
        pairs = list(pairwise(self._spelled[word]))
        for pair in pairs:
            self._frequency[pair] -= self._counts[word]
        return set(pairs)


def _joined(symbols: list[str], pair: _Pair) -> list[str]:
    result: list[str] = []
    for symbol in symbols:
        if result and (result[-1], symbol) == pair:
            result[-1] += symbol[1:]
        else:
            result.append(symbol)
    return result
