"""The lexical baseline: BM25 over identifier words with a light stemmer."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from semindex.embedders.tokenizer import words

K1, B = 1.2, 0.75
_STOP_WORDS = frozenset(
    (
        *("a", "an", "the", "of", "to", "in", "on", "for", "is", "are", "be", "or", "and", "with", "by", "from", "as"),
        *("it", "this", "that", "if", "then", "not", "which", "where", "how", "what", "who", "do", "does", "when"),
    )
)


class BM25:
    """An index of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts."""
        bags = [Counter(stems(text)) for text in texts]
        lengths = np.array([bag.total() for bag in bags], np.float32)
        damping = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        uses = Counter(word for bag in bags for word in bag)
        self._size = len(texts)
        self._weights: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, bag in enumerate(bags):
            for word, count in bag.items():
                rarity = math.log(1 + (self._size - uses[word] + 0.5) / (uses[word] + 0.5))
                self._weights[word].append((number, rarity * count * (K1 + 1) / (count + float(damping[number]))))

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every text, shape [texts]."""
        scores = np.zeros(self._size, np.float32)
        for word in set(stems(query)):
            for number, weight in self._weights.get(word, ()):
                scores[number] += weight
        return scores


def stems(text: str) -> list[str]:
    """Return the words that count, without their commonest endings."""
    return [
        re.sub(r"(?<=\w{3})(?:ing|ed|es|s)$", "", word)
        for word in words(text)
        if word not in _STOP_WORDS and len(word) > 1
    ]
