"""The rows with which training begins."""

import numpy as np
import torch

from training.corpus import Corpus, Floats, Rows

DIMENSION = 256
_SPARE = 16
"""Directions beyond those wanted, which make the subspace iteration exact enough."""


def random_rows(size: int, random: np.random.Generator) -> Floats:
    """Return directions without any meaning, shape [size, DIMENSION]."""
    return random.normal(size=(size, DIMENSION)).astype(np.float32)


def latent_rows(corpus: Corpus, index: Rows, size: int, random: np.random.Generator) -> Floats:
    """Return a latent semantic analysis of some pairs: tokens that occur in the same pairs get similar rows.

    These are the left singular vectors, times the square root of the singular values, of the matrix of tokens
    by pairs with tf-idf entries and columns of length 1, found by randomised subspace iteration.
    Tokens that no pair has get random rows. Shape [size, DIMENSION].
    """
    parts = [(bags, *bags.places(index)) for bags in (corpus.query, corpus.header, corpus.code)]
    rows = np.concatenate([bags.rows[flat] for bags, flat, _ in parts])
    pairs = np.concatenate([owner for _, _, owner in parts])
    values = np.concatenate([bags.weights[flat] for bags, flat, _ in parts])
    values *= np.maximum(np.log(len(index) / (1 + np.bincount(rows, minlength=size)))[rows], 0.1)
    values /= np.sqrt(np.bincount(pairs, values**2, minlength=len(index)))[pairs]
    shape = (size, len(index))
    matrix = torch.sparse_coo_tensor(np.stack([rows, pairs]), values, shape, dtype=torch.float32, check_invariants=True)
    matrix = matrix.coalesce()
    by_token, by_pair = matrix.to_sparse_csr(), matrix.t().coalesce().to_sparse_csr()
    basis = by_token @ torch.from_numpy(random.normal(size=(len(index), DIMENSION + _SPARE)).astype(np.float32))
    for _ in range(2):
        basis = by_token @ torch.linalg.qr(by_pair @ torch.linalg.qr(basis)[0])[0]
    left, singular, _ = torch.linalg.svd(basis, full_matrices=False)
    found = np.array((left * singular.sqrt())[:, :DIMENSION], np.float32)
    unused = np.linalg.norm(found, axis=1) < 1e-6
    found[unused] = random_rows(int(unused.sum()), random)
    return found


def damped(rows: Floats, corpus: Corpus) -> Floats:
    """Scale rows to length 1, then shorten those of frequent tokens (smooth inverse frequency)."""
    counts = corpus.counts(len(rows))
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
    return np.asarray(unit * (1e-3 / (1e-3 + counts / counts.sum()))[:, None], np.float32)
