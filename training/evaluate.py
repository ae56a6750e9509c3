"""Command: code search on packages that training never saw, against BM25, with the scores of right and wrong hits.

python -m training.evaluate MODEL.npz WORK/heldout.jsonl.gz

A query is the first sentence of a function's documentation (six words or more, unique); its candidates are all
functions of the same package, documentation removed. Each function is cut into chunks of 50 to 1150 characters
as an index does; a function's score is that of its best chunk. Then the same for the plain questions.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from semindex.embedders.static_table import StaticTable
from semindex.model.profiles import Role
from semindex.ports import Vectors
from training.bm25 import BM25
from training.pairs import read_pairs
from training.tasks import Task, chunks, described, question_tasks, tasks

QUESTIONS = Path(__file__).with_name("questions.json")
Scores = NDArray[np.float32]
"""Shape [queries, functions]."""
_SLICE = 1000


def dense_scores(table: StaticTable, task: Task, *, prefix: bool) -> Scores:
    """Return the best chunk's cosine per query and function."""
    texts: list[str] = []
    starts: list[int] = []
    for pair in task.functions:
        starts.append(len(texts))
        head = described(pair) + "\n" if prefix else ""
        texts += [head + chunk for chunk in chunks(pair.code)]
    cosines = _embed(table, task.queries, Role.QUERY) @ _embed(table, texts, Role.DOCUMENT).T
    return np.asarray(np.maximum.reduceat(cosines, starts, axis=1), np.float32)


def _embed(table: StaticTable, texts: Sequence[str], role: Role) -> Vectors:
    slices = [texts[start : start + _SLICE] for start in range(0, len(texts), _SLICE)]
    return np.concatenate([table.embed(part, role) for part in slices])


def lexical_scores(task: Task, *, prefix: bool) -> Scores:
    """Return BM25 per query and function."""
    index = BM25([(described(pair) + "\n" if prefix else "") + pair.code for pair in task.functions])
    return np.stack([index.scores(query) for query in task.queries])


def fused(dense: Scores, lexical: Scores, weight: float) -> Scores:
    """Add lexical to dense scores, both as z-scores over the query's candidates."""
    left, right = ((s - s.mean(1, keepdims=True)) / (s.std(1, keepdims=True) + 1e-9) for s in (dense, lexical))
    return np.asarray(left + weight * right, np.float32)


def ranks(scores: Scores, wanted: Sequence[set[int]]) -> NDArray[np.int64]:
    """Return the rank of each query's best wanted function, from 1; ties count against it."""
    found = []
    for row, answers in zip(scores, wanted, strict=True):
        right = np.zeros(len(row), bool)
        right[list(answers)] = True
        found.append(1 + int((row[~right] >= row[right].max()).sum()))
    return np.array(found)


def summary(found: NDArray[np.int64]) -> str:
    """Return the mean reciprocal rank at 10, then recall at 1, 5 and 10."""
    mean = np.where(found <= 10, 1 / found, 0).mean()
    return f"{mean:.3f} | " + " ".join(f"{(found <= first).mean():.3f}" for first in (1, 5, 10))


def report(table: StaticTable, group: Sequence[Task]) -> None:
    """Print one line per method for the tasks of one language."""
    functions, queries = sum(len(task.functions) for task in group), sum(len(task.queries) for task in group)
    print(f"{group[0].language}: {len(group)} packages, {functions} functions, {queries} queries")
    found: defaultdict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for task in group:
        for prefix, text in ((False, "chunk alone"), (True, "with path and symbol")):
            dense, lexical = dense_scores(table, task, prefix=prefix), lexical_scores(task, prefix=prefix)
            methods = {"BM25": lexical, "static": dense}
            methods |= {f"static + {weight} BM25": fused(dense, lexical, weight) for weight in (0.15, 0.3)}
            for name, scores in methods.items():
                found[f"{name}, {text}"].append(ranks(scores, task.wanted))
    for name, every in found.items():
        print(f"  {name:40s} {summary(np.concatenate(every))}", flush=True)


def score_report(table: StaticTable, group: Sequence[Task]) -> None:
    """Print the cosines of right and wrong hits, and what a threshold keeps."""
    right: list[float] = []
    shown: list[float] = []
    wrong: list[Scores] = []
    for task in group:
        for row, answers in zip(dense_scores(table, task, prefix=False), task.wanted, strict=True):
            best, others = float(row[list(answers)].max()), np.delete(row, list(answers))
            right.append(best)
            wrong.append(others)
            if (others >= best).sum() < 10:
                shown.append(best)
    rows = {
        "right function": np.array(right),
        "right, in the first ten": np.array(shown),
        "best wrong function": np.array([others.max() for others in wrong]),
        "any wrong function": np.concatenate(wrong),
        "best of another package": _strangers(table, group),
    }
    print("cosine                    p1     p5    p10    p25    p50    p75    p95    p99")
    for name, values in rows.items():
        print(
            f"  {name:24s}", " ".join(f"{value:.3f}" for value in np.percentile(values, [1, 5, 10, 25, 50, 75, 95, 99]))
        )
    print("threshold  right kept  of those in the first ten  hits a query  queries of another package with a hit")
    for limit in np.arange(0.1, 0.56, 0.05):
        kept, kept_shown, stray = (
            np.mean(rows[name] >= limit)
            for name in ("right function", "right, in the first ten", "best of another package")
        )
        hits = np.mean([(others >= limit).sum() for others in wrong]) + kept
        print(f"  {limit:.2f}     {kept:.3f}         {kept_shown:.3f}               {hits:8.1f}        {stray:.3f}")


def _strangers(table: StaticTable, group: Sequence[Task]) -> Scores:
    """Return the best score of each package's queries in the next package, where nothing answers them."""
    best = []
    for asked, searched in zip(group, [*group[1:], group[0]], strict=True):
        foreign = Task(searched.language, searched.package, searched.functions, asked.queries, [])
        best.append(dense_scores(table, foreign, prefix=False).max(axis=1))
    return np.concatenate(best)


def main() -> None:
    """Report by language, then the questions, then the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("heldout", type=Path)
    options = parser.parse_args()
    table = StaticTable.parse(options.model.read_bytes())
    pairs = read_pairs(options.heldout)
    every = tasks(pairs)
    print("MRR@10 | recall at 1, 5, 10; candidates: the functions of the query's own package")
    asked = [*every, *question_tasks(QUESTIONS, pairs)]
    for language in dict.fromkeys(task.language for task in asked):
        report(table, [task for task in asked if task.language == language])
    if every:
        score_report(table, every)


if __name__ == "__main__":
    main()
