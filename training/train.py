"""Command: train the token table, so that a query and its code end up close and other code of the batch far.

python -m training.train WORK/pairs.jsonl.gz WORK/table.npz --avoid WORK/heldout.jsonl.gz

The embedding of a text is the sum of its tokens' rows, each weighted by a learned weight (one for queries,
one for code) and by count ** damping, scaled to length 1. Half of the batches mix packages; the other half
hold the pairs of one package side by side, so that a query must be told from its own package's other code.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from attrs import frozen
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from semindex.embedders.tokenizer import BUCKETS, Tokenizer
from training import vocabulary
from training.corpus import CODE_LIMIT, Bag, Corpus, Floats, Rows, batches
from training.overlap import without_overlap
from training.pairs import Pair, read_pairs
from training.start import damped, latent_rows, random_rows

ROW_RATE, WEIGHT_RATE = 2e-3, 5e-3
"""Largest learning rates."""
WARM_UP = 50
"""Steps until the largest rate."""
HELD_BACK = 2000
"""Pairs that only measure progress."""


@frozen(eq=False)
class Table:
    """What is trained."""

    rows: Tensor
    """Shape [tokens, dimension]."""
    query: Tensor
    """Log weight of each token in a query."""
    document: Tensor
    """Log weight of each token in code."""
    log_scale: Tensor
    """Log of the factor between a cosine and a logit."""

    @classmethod
    def starting_at(cls, rows: Floats) -> "Table":
        """Begin with the given rows and equal weights."""
        initial = torch.from_numpy(rows), torch.zeros(len(rows)), torch.zeros(len(rows)), torch.tensor(3.0)
        return cls(*(tensor.requires_grad_() for tensor in initial))

    def embed(self, parts: Sequence[Bag], side: Tensor) -> Tensor:
        """Sum several bags of the same texts and scale the sums to length 1, shape [texts, dimension]."""
        return normalize(sum(self._sum(part, side) for part in parts) + 1e-9, dim=1)

    def _sum(self, bag: Bag, side: Tensor) -> Tensor:
        rows, weights, offsets = (torch.from_numpy(part) for part in (bag.rows, bag.weights, bag.offsets))
        weights = weights * torch.exp(side[rows])
        return embedding_bag(rows, self.rows, offsets, mode="sum", per_sample_weights=weights)

    def loss(self, queries: Sequence[Bag], code: Sequence[Bag]) -> Tensor:
        """Return the symmetric in-batch cross-entropy: the n-th query belongs to the n-th code."""
        scores = self.embed(queries, self.query) @ self.embed(code, self.document).T
        scores = scores * self.log_scale.exp().clamp(max=100)
        target = torch.arange(len(scores))
        return (cross_entropy(scores, target) + cross_entropy(scores.T, target)) / 2

    def mean_reciprocal_rank(self, queries: Sequence[Bag], code: Sequence[Bag]) -> float:
        """Return how well each query finds its code among the code given."""
        with torch.no_grad():
            scores = self.embed(queries, self.query) @ self.embed(code, self.document).T
            ranks = (scores > scores.diag()[:, None]).sum(1) + 1
            return float((1 / ranks).mean())


def train(corpus: Corpus, start: Floats, index: Rows, held: Rows, *, epochs: int, batch: int, seed: int) -> Table:
    """Minimise the loss over ``index`` with Adam and a linearly falling rate; print the rank of ``held`` by epoch."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    table = Table.starting_at(start)
    optimiser = torch.optim.Adam(
        [{"params": [table.rows]}, {"params": [table.query, table.document, table.log_scale]}], fused=True
    )
    steps, done, began = epochs * (len(index) // batch + 1), 0, time.monotonic()
    for epoch in range(epochs):
        losses: list[float] = []
        for part in batches(index, corpus.package, batch, random):
            rate = min(1.0, (done + 1) / WARM_UP) * max(0.02, 1 - done / steps)
            for group, largest in zip(optimiser.param_groups, (ROW_RATE, WEIGHT_RATE), strict=True):
                group["lr"] = largest * rate
            queries = corpus.augmented_queries(part, random)
            loss = table.loss(queries, corpus.augmented_code(part, random))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            done += 1
            losses.append(loss.item())
        rank = table.mean_reciprocal_rank(*corpus.whole(held, random))
        passed = time.monotonic() - began
        print(f"epoch {epoch + 1} loss {np.mean(losses):.3f} MRR of {len(held)} {rank:.3f} {passed:.0f} s", flush=True)
    return table


def write_table(path: Path, table: Table, pieces: Sequence[str], pairs: Sequence[Pair], damping: float) -> None:
    """Write the table in full precision, with all that ``quantise`` needs."""
    with torch.no_grad():
        np.savez(
            path,
            rows=table.rows.numpy(),
            query=table.query.exp().numpy(),
            document=table.document.exp().numpy(),
            damping=damping,
            vocabulary=np.frombuffer("\n".join(pieces).encode(), np.uint8),
            pairs=len(pairs),
            languages=np.frombuffer(json.dumps(Counter(pair.language for pair in pairs)).encode(), np.uint8),
        )


def main() -> None:
    """Learn the vocabulary, train, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--avoid", type=Path, required=True, help="held-out pairs, whose near-duplicates are dropped")
    parser.add_argument("--size", type=int, default=30_000, help="rows of the table, buckets included")
    parser.add_argument("--damping", type=float, default=0.5, help="exponent of a token's count")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", choices=["latent", "random"], default="latent", help="the rows to begin with")
    options = parser.parse_args()
    torch.set_num_threads(2)
    pairs = read_pairs(options.pairs)
    kept = without_overlap(pairs, read_pairs(options.avoid))
    print(len(pairs), "pairs,", len(pairs) - len(kept), "dropped as near-duplicates of the evaluation", flush=True)
    texts = ((pair.package, pair.query, f"{pair.path} {pair.symbol} {pair.code[:CODE_LIMIT]}") for pair in kept)
    pieces = vocabulary.learn(texts, options.size - BUCKETS)
    size = BUCKETS + len(pieces)
    corpus = Corpus.of(kept, Tokenizer(pieces), options.damping)
    random = np.random.default_rng(options.seed)
    held, index = np.split(random.permutation(len(kept)), [min(HELD_BACK, len(kept) // 10)])
    index.sort()
    rows = latent_rows(corpus, index, size, random) if options.start == "latent" else random_rows(size, random)
    table = train(
        corpus, damped(rows, corpus), index, held, epochs=options.epochs, batch=options.batch, seed=options.seed
    )
    write_table(options.table, table, pieces, kept, options.damping)


if __name__ == "__main__":
    main()
