"""Which file types are indexed, and by which route each is chunked.

Owns the one table of extensions and names. A file's handling is the name of a grammar, ``lines`` or ``markdown``.
"""

from collections.abc import Mapping
from types import MappingProxyType

from semindex.model.profiles import ChunkingProfile

LINES = "lines"
MARKDOWN = "markdown"
NONE = "none"
"""How a file is reported whose type is not indexed."""

_KILO = {
    "c": ".c .h",
    "c_sharp": ".cs",
    "cpp": ".cpp .hpp",
    "css": ".css",
    "elisp": ".el",
    "elixir": ".ex .exs",
    "go": ".go",
    "html": ".html",
    "java": ".java",
    "javascript": ".js .jsx .json",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "ocaml": ".ml .mli",
    "php": ".php",
    "python": ".py",
    "ruby": ".rb",
    "rust": ".rs",
    "solidity": ".sol",
    "tlaplus": ".tla",
    "toml": ".toml",
    "tsx": ".tsx",
    "typescript": ".ts",
    "vue": ".vue",
    "zig": ".zig",
    MARKDOWN: ".md .markdown",
    # SystemRDL (.rdl) stands here because no published Python package holds its grammar (docs/parity.md).
    LINES: (
        ".bash .bazel .bzl .build .gradle .ninja .sh .zsh .dart .elm .m .mm .ql .r .rdl .res .resi .sql .vb"
        " .yaml .yml .rst .scala .swift .ejs .erb .htm"
    ),
}

_EXTENDED_ONLY = {
    "cpp": ".cc .cxx .hh .hxx",
    "javascript": ".mjs .cjs",
    "python": ".pyi",
    "typescript": ".mts .cts",
    LINES: (
        ".scss .less .svelte .proto .graphql .tf .ps1 .hs .clj .jl .pl .pm .phtml .rake .astro .cmake .xml"
        " Makefile Dockerfile CMakeLists.txt"
    ),
}


def _by_name(*tables: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(
        {name: handling for table in tables for handling, names in table.items() for name in names.split()}
    )


_HANDLINGS = {
    ChunkingProfile.KILO: _by_name(_KILO),
    ChunkingProfile.EXTENDED: _by_name(_KILO, _EXTENDED_ONLY),
}

GRAMMARS = tuple(sorted(_KILO.keys() - {LINES, MARKDOWN}))
"""Every grammar that a file type is declared to need."""


def extension(name: str) -> str:
    """Return the extension of a file's name or path: the last dot and what follows, lower-cased; empty without one."""
    base = name.rpartition("/")[2]
    _, dot, suffix = base.rpartition(".")
    return dot and dot + suffix.lower()


def handling(name: str, profile: ChunkingProfile) -> str | None:
    """Return how a file of this name (or path) is chunked, or None if its type is not indexed.

    Extensions are compared without regard to case, whole names with it.
    """
    by_name = _HANDLINGS[profile]
    whole = by_name.get(name.rpartition("/")[2])
    return whole or by_name.get(extension(name))


def extensions(profile: ChunkingProfile) -> tuple[str, ...]:
    """Return the extensions (with their dot) and whole names that a profile indexes, sorted."""
    return tuple(sorted(_HANDLINGS[profile]))
