"""How to find declarations in each language without a parser here: one pattern per language, and its file suffixes."""

import re
from typing import Final

from attrs import frozen


@frozen
class Grammar:
    """How to find declarations in one language without a parser."""

    mask: re.Pattern[str]
    """Comments and literals."""
    declaration: re.Pattern[str]
    """A declaration's head, from the start of its line; the first group that took part is the name."""
    between: re.Pattern[str]
    """What may stand between a documentation comment and its declaration."""
    ends_with_keyword: bool = False
    """The body ends at an ``end`` of the head's indentation instead of at the matching brace."""


_BLOCK = r"/\*.*?(?:\*/|\Z)"
_LINE = r"//[^\n]*"
_STRING = r'"(?:\\.|[^"\\\n])*"'
_CHAR = r"'(?:\\.|[^'\\\n])*'"
_NOT_A_NAME = r"(?!(?:if|for|while|switch|catch|return|else|do|function|new|await|sizeof|throw|typeof|super)\b)"
_JAVA_MODIFIER = r"(?:public|protected|private|static|final|abstract|synchronized|native|default|sealed)\s+"
_TS_MODIFIER = r"(?:public|private|protected|static|async|readonly|override|abstract|get|set)\s+"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE | re.DOTALL)


_C = Grammar(
    mask=_pattern(f"{_BLOCK}|{_LINE}|{_STRING}|{_CHAR}"),
    declaration=_pattern(
        rf"^(?:[ \t]{{0,8}}(?:class|struct|enum(?: class)?)\s+(\w+)[^;{{}}()]{{0,120}}(?=\{{)"
        rf"|[ \t]{{0,4}}(?!typedef|using|#){_NOT_A_NAME}(?:(?:[A-Za-z_][\w:<>,&*\[\]]*[ \t*&]+){{1,6}}[*&]*|(?=\w+::))"
        rf"{_NOT_A_NAME}(~?[A-Za-z_][\w:~]*)[ \t]*"
        r"\((?:[^;{}()]|\([^;{}()]*\)){0,500}\)[^;{}()=]{0,80}(?=[{;]))"
    ),
    between=_pattern(r"\s{0,80}(?:[\w \t*&:<>,()]*\n)?[ \t]*"),
)
_JAVASCRIPT = Grammar(
    mask=_pattern(rf"{_BLOCK}|{_LINE}|{_STRING}|{_CHAR}|`(?:\\.|[^`\\])*`"),
    declaration=_pattern(
        r"^[ \t]*(?:(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?"
        r"(?:(?:async\s+)?function\s*\*?\s*([\w$]+)|(?:class|interface|enum)\s+([\w$]+)"
        r"|(?:const|let|var)\s+([\w$]+)\s*(?::[^=\n;]+)?=\s*(?:async\s*)?(?:function\b|\([^;{}]{0,300}?=>|[\w$]+\s*=>))"
        r"|(?:[\w$]+\.)+([\w$]+)\s*=\s*(?:async\s+)?(?:function\b|\([^;{}]{0,300}?=>|class\b)"
        r"|([\w$]+)\s*:\s*(?:async\s+)?function\b"
        rf"|(?:{_TS_MODIFIER})*[*#]?{_NOT_A_NAME}([\w$]+)\??[ \t]*(?:<[^>\n]*>)?\([^;{{}}]{{0,400}}?\)\s*"
        r"(?::[^{;\n=]+)?(?=[{;]))"
    ),
    between=_pattern(r"\s{0,80}(?:@\w+(?:\([^)]*\))?\s*)*"),
)
GRAMMARS: Final[dict[str, Grammar]] = {
    "c": _C,
    "javascript": _JAVASCRIPT,
    "typescript": _JAVASCRIPT,
    "go": Grammar(
        mask=_pattern(rf"{_BLOCK}|{_LINE}|{_STRING}|{_CHAR}|`[^`]*`"),
        declaration=_pattern(r"^(?:func\s+(?:\([^)\n]*\)\s*)?(\w+)|type\s+(\w+)\s)"),
        between=_pattern(r"\n?"),
    ),
    "rust": Grammar(
        mask=_pattern(rf"{_BLOCK}|{_LINE}|r(#+)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\[^\n]{{1,8}}?|[^'\\\n])'"),
        declaration=_pattern(
            r"^[ \t]*(?:pub(?:\([^)\n]*\))?\s+)?(?:(?:default|const|async|unsafe|extern)\s+)*"
            r"(?:fn|struct|enum|trait|union|macro_rules!)\s+(\w+)"
        ),
        between=_pattern(r"\s{0,80}(?:#\[[^\n]*\]\s*|[A-Za-z_][^\n]*\)\]\s*)*"),
    ),
    "java": Grammar(
        mask=_pattern(f"{_BLOCK}|{_LINE}|{_STRING}|{_CHAR}"),
        declaration=_pattern(
            rf"^[ \t]*(?:{_JAVA_MODIFIER})+(?:<[^>\n]+>\s+)?"
            r"(?:(?:class|interface|enum|record|@interface)\s+(\w+)|[\w.<>\[\], ?&]+?\s+(\w+)\s*\(|(\w+)\s*\()"
        ),
        between=_pattern(r"\s{0,80}(?:@[\w.]+(?:\([^)]*\))?\s*)*"),
    ),
    "php": Grammar(
        mask=_pattern(rf"{_BLOCK}|{_LINE}|\#(?!\[)[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"),
        declaration=_pattern(
            r"^[ \t]*(?:(?:public|protected|private|static|final|abstract|readonly)\s+)*"
            r"(?:function\s+&?(\w+)|(?:class|interface|trait|enum)\s+(\w+))"
        ),
        between=_pattern(r"\s{0,80}(?:#\[[^\n]*\]\s*)*"),
    ),
    "ruby": Grammar(
        mask=_pattern(r"^[ \t]*#[^\n]*"),
        declaration=_pattern(r"^[ \t]*(?:def\s+(?:self\.)?([\w?!]+)|(?:class|module)\s+([\w:]+))"),
        between=_pattern(r"\n?"),
        ends_with_keyword=True,
    ),
}
"""By language; Python is parsed instead."""

_SUFFIXES = {
    "python": (".py",),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "typescript": (".ts", ".tsx", ".mts"),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java",),
    "c": (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"),
    "ruby": (".rb",),
    "php": (".php",),
}
LANGUAGE_OF_SUFFIX: Final = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes}
