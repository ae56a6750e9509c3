"""What the evaluation asks: queries on held-out packages, and which functions answer them."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from training.pairs import Pair

SHORTEST_CHUNK, LONGEST_CHUNK = 50, 1150
"""Characters, as in the index."""
QUESTIONS = "questions"
"""Stands for the language of the plain questions."""
_FEWEST_QUERIES = 20
_SHORTEST_QUERY = 6
_TYPE = re.compile(
    r"(?:[\w@()'\"]+\s+)*?(?:class|interface|@interface|module|trait|enum|struct|union|namespace|record|type)\b"
    r"(?![ \t]*[(=:.])",
)


@frozen
class Task:
    """One package: its functions, and which of them each query wants."""

    language: str
    package: str
    functions: list[Pair]
    queries: list[str]
    wanted: list[set[int]]
    """Per query the indexes of the functions that answer it."""


def tasks(pairs: Iterable[Pair]) -> list[Task]:
    """Make a task of each package with 20 queries: first documentation sentences of six words or more, each unique."""
    groups: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if _is_function(pair):
            groups[pair.language, pair.package].append(pair)
    found = []
    for (language, package), functions in sorted(groups.items()):
        repeats = Counter(pair.query for pair in functions)
        asked = [
            number
            for number, pair in enumerate(functions)
            if len(pair.query.split()) >= _SHORTEST_QUERY and repeats[pair.query] == 1
        ]
        if len(asked) >= _FEWEST_QUERIES:
            queries = [functions[number].query for number in asked]
            found.append(Task(language, package, functions, queries, [{number} for number in asked]))
    return found


def question_tasks(path: Path, pairs: Iterable[Pair]) -> list[Task]:
    """Read plain questions, each with a pattern for the symbols that answer it; packages without pairs are left out."""
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if _is_function(pair):
            groups[pair.package].append(pair)
    questions: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for entry in json.loads(path.read_text()):
        questions[entry["package"]].append((entry["question"], entry["symbols"]))
    return [
        Task(
            QUESTIONS,
            package,
            groups[package],
            [question for question, _ in asked],
            [
                {number for number, pair in enumerate(groups[package]) if re.search(symbols, pair.symbol)}
                for _, symbols in asked
            ],
        )
        for package, asked in questions.items()
        if package in groups
    ]


def _is_function(pair: Pair) -> bool:
    """Leave types out, since they contain their methods."""
    return not _TYPE.match(pair.code)


def chunks(code: str) -> list[str]:
    """Cut code at line ends into texts of at most 1150 characters; a remainder below 50 is dropped."""
    parts: list[str] = []
    current = ""
    for line in code.splitlines(keepends=True):
        for start in range(0, len(line), LONGEST_CHUNK):
            piece = line[start : start + LONGEST_CHUNK]
            if len(current) + len(piece) > LONGEST_CHUNK:
                parts.append(current)
                current = ""
            current += piece
    parts.append(current)
    return [part.strip() for part in parts if len(part.strip()) >= SHORTEST_CHUNK] or [code.strip()]


def described(pair: Pair) -> str:
    """Return the path and symbol as words, to be put before a chunk."""
    return re.sub(r"[_./:-]+", " ", re.sub(r"\.\w+$", "", pair.path) + " " + pair.symbol)
