"""Pairs of a query and the declaration that answers it: made from a package's sources, chosen, written and read."""

import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import attrs
from attrs import frozen

from training.declarations import declarations
from training.languages import LANGUAGE_OF_SUFFIX
from training.packages import Request
from training.queries import query_of

PAIRS_PER_PACKAGE = 1500
PAIRS_PER_LANGUAGE = 60_000
REPEATS_PER_QUERY = 3
_SHORTEST_CODE = 40
_EVALUATED = re.compile(r"(^|/)(requests|flask|click|httpx|trio|werkzeug|jinja2|lodash|ramda|express|commander|axios)/")
"""Copies of evaluated packages inside others."""
_GENERATED = re.compile(r"Code generated|@generated|GENERATED")


@frozen
class Pair:
    """A declaration and the query that it answers."""

    language: str
    package: str
    path: str
    """Within the package."""
    symbol: str
    query: str
    """First sentence of the documentation; "" if that gives none, which happens in held-out packages only."""
    code: str
    """The declaration without its documentation."""


def pairs_of(request: Request, sources: Mapping[str, bytes]) -> Iterator[Pair]:
    """Yield the pairs of a package, or all its declarations if it is held out, each symbol and query once."""
    seen: set[tuple[str, str]] = set()
    for path, content in sources.items():
        source = content.decode(errors="replace").replace("\r\n", "\n")
        if _machine_made(source) or (not request.heldout and _EVALUATED.search(path)):
            continue
        language = LANGUAGE_OF_SUFFIX[PurePosixPath(path).suffix]
        for found in declarations(source, language):
            query = query_of(found.doc, found.symbol)
            useful = len(found.code) >= _SHORTEST_CODE and (query or request.heldout)
            if useful and (found.symbol, query) not in seen:
                seen.add((found.symbol, query))
                yield Pair(language, request.key, path, found.symbol, query, found.code)


def _machine_made(source: str) -> bool:
    return bool(_GENERATED.search(source[:600])) or len(source) > 80 * (source.count("\n") + 20)


def select(packages: Mapping[Request, list[Pair]]) -> dict[Request, list[Pair]]:
    """Drop repeated code and over-frequent queries, and cut the largest packages until each language fits.

    The same packages give the same choice, in whatever order they come; small packages choose first.
    """
    found = sorted(packages, key=lambda request: (len(packages[request]), request.name, request.ecosystem))
    share = _shares(packages.values())
    codes: set[str] = set()
    queries: Counter[str] = Counter()
    chosen: dict[Request, list[Pair]] = {}
    shuffler = random.Random(0)
    for request in found:
        kept: list[Pair] = []
        taken: Counter[str] = Counter()
        for pair in shuffler.sample(packages[request], len(packages[request])):
            code, query = _normalised(pair.code), _normalised(pair.query)
            full = taken[pair.language] >= share[pair.language]
            if full or code in codes or queries[query] >= REPEATS_PER_QUERY:
                continue
            codes.add(code)
            queries[query] += 1
            taken[pair.language] += 1
            kept.append(pair)
        chosen[request] = kept
    return chosen


def _shares(packages: Iterable[list[Pair]]) -> dict[str, int]:
    """Return per language the largest number of pairs per package at which all of them together stay in bounds."""
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for pairs in packages:
        for language, count in Counter(pair.language for pair in pairs).items():
            sizes[language].append(count)
    return {language: _fair_share(counts, PAIRS_PER_LANGUAGE) for language, counts in sizes.items()}


def _fair_share(sizes: list[int], limit: int) -> int:
    cap = PAIRS_PER_PACKAGE
    while cap > 1 and sum(min(size, cap) for size in sizes) > limit:
        cap -= 1
    return cap


def _normalised(text: str) -> str:
    """Return the words in lower case, joined by single spaces."""
    return re.sub(r"\W+", " ", text.lower()).strip()


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write one JSON object a line, gzipped."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as stream:
        stream.writelines(json.dumps(attrs.asdict(pair)) + "\n" for pair in pairs)


def read_pairs(path: Path) -> list[Pair]:
    """Read what :func:`write_pairs` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [Pair(**json.loads(line)) for line in stream]
