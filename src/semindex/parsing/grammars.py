"""Grammars and selections: from a text to the nodes that may become chunks.

The only module that imports tree-sitter and its grammars. Each grammar comes from the package that cuts most like the
reference engine's (docs/parity.md); nothing is compiled or fetched at run time. Which nodes are selected is said by
the query files in ``selections/``; what they leave out of the reference's selection is nothing but repetition, and
names that are always too short for a chunk.

In a query file each pattern has one label for all that it selects; a label with a suffix (``@method.name``) is
selected too and can be named in a test, one that begins with an underscore is for tests only. The order of the labels
is the order in which equally placed nodes are taken. Tests are ``#text-is?``, ``#text-is-not?`` and
``#text-matches?`` (a search), since tree-sitter's own do not work on UTF-16.
"""

import ctypes
import importlib
import re
from functools import cache
from importlib import resources
from typing import Literal, cast

from attrs import frozen
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from semindex.core.filetypes import GRAMMARS


class GrammarUnavailable(Exception):
    """A declared grammar cannot be loaded; the message names the grammar and the reason."""


@frozen
class _Source:
    module: str
    function: str = "language"
    selections: tuple[str, ...] = ()
    """Query files that are read before the grammar's own."""


_PACK = "tree_sitter_language_pack.bindings."

_SOURCES = {
    "c": _Source("tree_sitter_c"),
    "c_sharp": _Source("tree_sitter_c_sharp"),
    "cpp": _Source("tree_sitter_cpp"),
    "css": _Source("tree_sitter_css"),
    "elisp": _Source(_PACK + "elisp"),
    "elixir": _Source(_PACK + "elixir"),
    "go": _Source("tree_sitter_go"),
    "html": _Source(_PACK + "html"),
    "java": _Source(_PACK + "java"),
    "javascript": _Source("tree_sitter_javascript"),
    "kotlin": _Source(_PACK + "kotlin"),
    "lua": _Source(_PACK + "lua"),
    "ocaml": _Source("tree_sitter_ocaml", "language_ocaml"),
    "php": _Source("tree_sitter_php", "language_php"),
    "python": _Source("tree_sitter_python"),
    "ruby": _Source(_PACK + "ruby"),
    "rust": _Source(_PACK + "rust"),
    "solidity": _Source(_PACK + "solidity"),
    "tlaplus": _Source("tree_sitter_tlaplus"),
    "toml": _Source(_PACK + "toml"),
    "tsx": _Source("tree_sitter_typescript", "language_tsx", selections=("typescript",)),
    "typescript": _Source("tree_sitter_typescript", "language_typescript"),
    "vue": _Source(_PACK + "vue"),
    "zig": _Source("tree_sitter_zig"),
}


class Grammar:
    """A language's parser with its selection; not for use by several threads at once."""

    def __init__(self, language: Language, selection: str) -> None:
        self._parser = Parser(language)
        self._query = Query(language, selection)
        count = cast("int", self._query.capture_count)  # a property, whatever the package's stub says
        labels = [self._query.capture_name(index) for index in range(count)]
        first: dict[str, int] = {}
        for index, label in enumerate(labels):
            first.setdefault(label.partition(".")[0], index)
        self._rank = {label: first[label.partition(".")[0]] for label in labels if not label.startswith("_")}

    def parse(self, data: bytes) -> Tree:
        """Parse a text in UTF-16LE."""
        return self._parser.parse(data, encoding="utf16le")

    def select(self, data: bytes) -> list[Node]:
        """Parse a text in UTF-16LE and return the selected nodes, repeats included, in the reference's order.

        That is: by their beginning, then in the order of the selection, then the longer one first.
        """
        tree = self.parse(data)
        captures = QueryCursor(self._query).captures(tree.root_node, _holds)
        ranked = [
            (node.start_byte, rank, -node.end_byte, index, node)
            for label, rank in self._rank.items()
            for index, node in enumerate(captures.get(label, ()))
        ]
        ranked.sort(key=lambda entry: entry[:4])
        return [entry[-1] for entry in ranked]


@cache
def load(name: str) -> Grammar:
    """Return a grammar, loaded once per process. Raises GrammarUnavailable."""
    source = _SOURCES[name]
    try:
        language = Language(_capsule(getattr(importlib.import_module(source.module), source.function)()))
        return Grammar(language, "\n".join(_selection(part) for part in (*source.selections, name)))
    except (ImportError, AttributeError, ValueError, OSError) as error:
        raise GrammarUnavailable(f"The grammar {name} cannot be loaded: {error}.") from error


def probe() -> dict[str, str]:
    """Try to load every declared grammar; return name → reason of those that cannot be."""
    problems = {}
    for name in GRAMMARS:
        try:
            load(name)
        except GrammarUnavailable as error:
            problems[name] = str(error)
    return problems


def _selection(name: str) -> str:
    return (resources.files(__package__) / "selections" / f"{name}.scm").read_text(encoding="utf-8")


def _capsule(language: object) -> object:
    """Wrap the plain pointer that older grammar packages return in what tree-sitter asks for now."""
    if not isinstance(language, int):
        return language
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(language, b"tree_sitter.Language", None)


def _holds(
    predicate: str,
    args: list[tuple[str, Literal["capture", "string"]]],
    pattern_index: int,
    captures: dict[str, list[Node]],
) -> bool:
    """Decide a test of a selection; a label that matched nothing passes."""
    (label, _), (wanted, _) = args
    texts = [(node.text or b"").decode("utf-16-le", "surrogatepass") for node in captures.get(label, ())]
    match predicate:
        case "text-is?":
            return all(text == wanted for text in texts)
        case "text-is-not?":
            return all(text != wanted for text in texts)
        case "text-matches?":
            return all(re.search(wanted, text) for text in texts)
        case _:
            raise ValueError(f"A selection uses the unknown test {predicate}.")
