"""The functions, methods and types of a source file, each with its documentation and its code without it.

Python is parsed; the other languages are read with one declaration pattern each, on a copy of the source in which
comments and literals are blanked, so that braces and keywords inside them are never seen.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator

from attrs import frozen

from training.languages import GRAMMARS, Grammar

MAX_CODE = 3000
"""Characters of code kept per declaration."""
_FARTHEST_DOC = 400
"""Characters between a documentation comment's end and its declaration, attributes and annotations included."""
_LONGEST_HEAD = 800
_LONGEST_BODY = 60_000

_Span = tuple[int, int]
_PythonNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@frozen
class Declaration:
    """A function, method or type; ``doc`` is empty when it is undocumented."""

    symbol: str
    doc: str
    code: str


def declarations(source: str, language: str) -> Iterator[Declaration]:
    """Yield the declarations of a file in source order; a file that cannot be read as its language gives none."""
    if language == "python":
        return _python_declarations(source)
    return _pattern_declarations(source, GRAMMARS[language])


def _python_declarations(source: str) -> Iterator[Declaration]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = source.splitlines()
    for node, symbol in _python_nodes(tree, ""):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        last = min(node.end_lineno or node.lineno, len(lines))
        doc = ast.get_docstring(node) or ""
        docstring = node.body[0] if doc else None
        kept = [
            lines[number - 1]
            for number in range(first, last + 1)
            if docstring is None or not docstring.lineno <= number <= (docstring.end_lineno or 0)
        ]
        yield Declaration(symbol, doc, _dedent(kept))


def _python_nodes(node: ast.AST, prefix: str) -> Iterator[tuple[_PythonNode, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield child, prefix + child.name
            yield from _python_nodes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _python_nodes(child, prefix)


def _pattern_declarations(source: str, grammar: Grammar) -> Iterator[Declaration]:
    masked, comments = _masked(source, grammar.mask)
    for match in grammar.declaration.finditer(masked):
        name = next((group for group in match.groups() if group), None)
        if name is None:
            continue
        end = _keyword_end(masked, match) if grammar.ends_with_keyword else _brace_end(masked, match)
        code = _dedent(source[match.start() : min(end, match.start() + MAX_CODE)].splitlines())
        yield Declaration(name, _doc_before(source, masked, match.start(), comments, grammar.between), code)


def _masked(source: str, mask: re.Pattern[str]) -> tuple[str, list[_Span]]:
    """Return the source with comments and literals blanked, and its comments' places, runs of line comments joined."""
    comments: list[_Span] = []

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        if text.lstrip().startswith(("//", "/*", "#")):
            start, end = match.span()
            if comments and not text.startswith("/*") and _adjacent(source[comments[-1][1] : start]):
                start = comments.pop()[0]
            comments.append((start, end))
        return re.sub(r"[^\n]", " ", text)

    return mask.sub(blank, source), comments


def _adjacent(gap: str) -> bool:
    return gap.count("\n") == 1 and not gap.strip()


def _doc_before(source: str, masked: str, start: int, comments: list[_Span], between: re.Pattern[str]) -> str:
    """Return the comment that ends right before a position, unless code precedes it on its line."""
    index = bisect_right(comments, start, key=lambda span: span[1]) - 1
    if index < 0:
        return ""
    begin, end = comments[index]
    gap = masked[end:start]
    if start - end > _FARTHEST_DOC or not between.fullmatch(gap) or re.match(r"[ \t]*\n[ \t]*\n", gap):
        return ""
    line_start = source.rfind("\n", 0, begin) + 1
    return "" if source[line_start:begin].strip() else source[begin:end]


def _keyword_end(masked: str, head: re.Match[str]) -> int:
    indent = head[0][: len(head[0]) - len(head[0].lstrip(" \t"))]
    end = re.compile(rf"^{indent}end\b", re.MULTILINE).search(masked, head.end())
    return end.end() if end else head.end()


def _brace_end(masked: str, head: re.Match[str]) -> int:
    opening = re.compile(r"[{;]|\n[ \t]*\n").search(masked, head.end(), head.end() + _LONGEST_HEAD)
    if opening is None:
        return min(len(masked), head.end() + 200)
    if opening[0] != "{":
        return opening.start() + 1
    depth = 0
    for brace in re.compile(r"[{}]").finditer(masked, opening.start(), opening.start() + _LONGEST_BODY):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return min(len(masked), opening.start() + MAX_CODE)


def _dedent(lines: list[str]) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines).strip("\n")
