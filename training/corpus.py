"""The tokenised training pairs, and the random views of them that training sees. Numpy only."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from semindex.embedders.tokenizer import Tokenizer
from training.pairs import Pair

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]

CODE_LIMIT: Final = 1150
"""Characters of code that are read: the upper bound of a chunk."""
TEMPLATES: Final = (
    *("where is", "where are", "where does it", "where do we", "where the", "where in the code is", "the place where"),
    *("find where", "how does it", "how do I", "how is", "how are", "how to", "how does the", "explain how"),
    *("what happens when", "what", "when", "which function", "which method", "which class", "which code", "what code"),
    *("code that", "code for", "function to", "function that", "find the code that", "find", "show me", "look up"),
    *("is there something to", "logic that", "implementation of"),
)
"""What people put before a description when they ask for code."""
_SMALLEST_BATCH = 64
"""In-batch contrast says little with fewer pairs."""


@frozen
class Bag:
    """The tokens of some texts, end to end: what an embedding bag takes."""

    rows: Rows
    weights: Floats
    offsets: Rows
    """Where each text begins."""


@frozen
class Bags:
    """Token rows and their damped counts for many texts, stored end to end."""

    rows: Rows
    weights: Floats
    offsets: Rows
    """Where each text begins, and at last where the last one ends."""

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: Tokenizer, damping: float) -> "Bags":
        """Tokenise texts."""
        rows: list[int] = []
        counts: list[int] = []
        offsets = [0]
        for text in texts:
            bag = Counter(tokenizer.rows(text))
            rows.extend(bag)
            counts.extend(bag.values())
            offsets.append(len(rows))
        return cls(np.array(rows, np.int64), np.array(counts, np.float32) ** damping, np.array(offsets))

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.offsets) - 1

    def places(self, index: Rows) -> tuple[Rows, Rows]:
        """Return where the tokens of some texts are stored, and which of those texts each belongs to."""
        lengths = self.offsets[index + 1] - self.offsets[index]
        owner = np.repeat(np.arange(len(index)), lengths)
        return np.arange(len(owner)) + np.repeat(self.offsets[index] - np.cumsum(lengths) + lengths, lengths), owner

    def take(self, index: Rows, keep: NDArray[np.float64] | float, random: np.random.Generator) -> Bag:
        """Return the tokens of some texts; each token stays with its text's probability ``keep``."""
        flat, owner = self.places(index)
        stays = random.random(len(flat)) < np.broadcast_to(keep, len(index))[owner]
        flat, owner = flat[stays], owner[stays]
        return Bag(self.rows[flat], self.weights[flat], np.searchsorted(owner, np.arange(len(index))))


@frozen
class Corpus:
    """The tokenised pairs."""

    query: Bags
    symbol: Bags
    header: Bags
    code: Bags
    templates: Bags
    package: Rows
    """Number of each pair's package."""

    @classmethod
    def of(cls, pairs: Sequence[Pair], tokenizer: Tokenizer, damping: float) -> "Corpus":
        """Tokenise queries, symbols, paths with symbols, and code."""
        numbers = {name: number for number, name in enumerate(sorted({pair.package for pair in pairs}))}

        def bags(texts: Sequence[str]) -> Bags:
            return Bags.of(texts, tokenizer, damping)

        return cls(
            query=bags([pair.query for pair in pairs]),
            symbol=bags([pair.symbol for pair in pairs]),
            header=bags([header(pair.path, pair.symbol) for pair in pairs]),
            code=bags([pair.code[:CODE_LIMIT] for pair in pairs]),
            templates=bags(TEMPLATES),
            package=np.array([numbers[pair.package] for pair in pairs]),
        )

    def counts(self, size: int) -> Rows:
        """Return in how many queries and codes each of ``size`` rows occurs."""
        return np.bincount(np.concatenate([self.query.rows, self.code.rows]), minlength=size)

    def whole(self, index: Rows, random: np.random.Generator) -> tuple[list[Bag], list[Bag]]:
        """Return queries and code of some pairs as they are."""
        return [self.query.take(index, 1.0, random)], [self.code.take(index, 1.0, random)]

    def augmented_queries(self, index: Rows, random: np.random.Generator) -> list[Bag]:
        """Return queries as people type them: words dropped, a question put in front, or only the symbol's words.

        The parts are to be added up text by text.
        """
        by_name = random.random(len(index)) < 0.12
        keep = np.where(random.random(len(index)) < 0.5, random.choice([0.85, 0.7, 0.55], len(index)), 1.0)
        asked = random.integers(len(self.templates), size=len(index))
        return [
            self.query.take(index, np.where(by_name, 0.0, keep), random),
            self.symbol.take(index, np.where(by_name, 1.0, 0.0), random),
            self.templates.take(asked, np.where(random.random(len(index)) < 0.4, 1.0, 0.0), random),
        ]

    def augmented_code(self, index: Rows, random: np.random.Generator) -> list[Bag]:
        """Return code with one token in ten dropped; four in ten come with their path and symbol."""
        headed = np.where(random.random(len(index)) < 0.4, 1.0, 0.0)
        return [self.code.take(index, 0.9, random), self.header.take(index, headed, random)]


def header(path: str, symbol: str) -> str:
    """Return the last folders of a path, its file name and the symbol, without the suffix."""
    return " ".join(re.sub(r"\.\w+$", "", path).split("/")[-3:]) + " " + symbol


def batches(index: Rows, package: Rows, size: int, random: np.random.Generator) -> Iterator[Rows]:
    """Yield batches in random order: half of the pairs are mixed, the others lie side by side with their package's."""
    mixed, grouped = np.array_split(random.permutation(index), 2)
    grouped = grouped[np.argsort(package[grouped] + random.random(len(grouped)) * 0.5, kind="stable")]
    every = [part[start : start + size] for part in (mixed, grouped) for start in range(0, len(part), size)]
    for number in random.permutation(len(every)):
        if len(every[number]) > _SMALLEST_BATCH:
            yield every[number]
