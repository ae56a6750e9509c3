"""Training pairs that are equal or nearly equal to something that the evaluation uses."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import ceil

from training.pairs import Pair

THRESHOLD = 0.7
"""Jaccard similarity of word sets from which two texts count as the same."""


def without_overlap(pairs: Sequence[Pair], heldout: Sequence[Pair]) -> list[Pair]:
    """Drop pairs whose query or code is nearly the same as that of a held-out one."""
    queries = NearDuplicates(pair.query for pair in heldout)
    codes = NearDuplicates(pair.code for pair in heldout)
    return [pair for pair in pairs if pair.query not in queries and pair.code not in codes]


class NearDuplicates:
    """Exact Jaccard search by prefix filtering: two sets at or above the threshold share one of their rarest words."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Index the texts to be avoided; those without words are nobody's duplicates."""
        self._sets = sorted({_words(text) for text in texts} - {frozenset()}, key=sorted)
        self._frequency = Counter(word for entry in self._sets for word in entry)
        self._index: defaultdict[str, list[int]] = defaultdict(list)
        for number, entry in enumerate(self._sets):
            for word in self._prefix(entry):
                self._index[word].append(number)

    def __contains__(self, text: str) -> bool:
        """Tell whether an indexed text is nearly the same as this one."""
        probe = _words(text)
        candidates = {number for word in self._prefix(probe) for number in self._index.get(word, ())}
        return any(_jaccard(probe, self._sets[number]) >= THRESHOLD for number in candidates)

    def _prefix(self, entry: frozenset[str]) -> Sequence[str]:
        ordered = sorted(entry, key=lambda word: (self._frequency[word], word))
        return ordered[: len(ordered) - ceil(THRESHOLD * len(ordered)) + 1]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    if min(len(left), len(right)) < THRESHOLD * max(len(left), len(right)):
        return 0.0
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)
