"""What a documentation comment says in its first sentence, as someone who searches would put it."""

import re

_BOILERPLATE = re.compile(
    r"copyright|licen[sc]e|eslint|prettier|todo\b|fixme|@ts-|nolint|inheritdoc|auto-?generated|do not edit|"
    r"clang-format|^(deprecated|see |internal\b|noop|no-op)",
    re.IGNORECASE,
)
_WORDS = range(3, 41)


def query_of(doc: str, symbol: str) -> str:
    """Return the first sentence of a documentation comment, "" if it would not serve as a query."""
    query = _without_symbol(first_sentence(doc), symbol)
    usable = len(query.split()) in _WORDS and query.isascii() and not _BOILERPLATE.search(query)
    return query if usable else ""


def first_sentence(doc: str) -> str:
    """Return the first sentence of a documentation comment as plain words, without mark-up and tags."""
    text = re.sub(r"^[ \t]*(?:/\*+!?|\*+/|\*+(?!/)|//[/!]*<?|#+)[ \t]?", "", doc, flags=re.MULTILINE)
    text = re.sub(r"\*+/", "", text)
    text = re.sub(r"^\s*[@\\]brief\s+|^\s*@(?:desc|description)\s+", "", text)
    text = re.split(r"^\s*(?:[@\\]\w|:\w+ \w+:)", text, maxsplit=1, flags=re.MULTILINE)[0]
    text = re.split(r"\n\s*\n|<p>", text.strip(), maxsplit=1)[0]
    text = re.sub(r"\{@\w+\s+([^}]*)\}|:[\w:]+:`~?([^`]*)`", lambda m: m[1] or m[2] or "", text)
    text = re.sub(r"\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])?", r"\1", text)
    text = re.sub(r"</?\w[^>\n]*>|[`*]{1,3}|@[cp] ", "", text)
    text = re.sub(r"\s+", " ", text).strip()
    sentence = re.match(r"(.+?[.!?])(?:\s|$)", text)
    return (sentence[1] if sentence else text).strip()


def _without_symbol(query: str, symbol: str) -> str:
    """Drop a leading repetition of the name ("Open opens a file" in Go), which no one who searches would type."""
    words = query.split(" ")
    return " ".join(words[1:]) if len(words) > 3 and words[0].lower() == symbol.lower() else query
