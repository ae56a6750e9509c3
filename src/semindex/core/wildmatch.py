"""git's wildcards as regular expressions over bytes.

Owns the translation of one pattern; knows nothing of ignore files. The expressions take time linear in the name for
each wildcard, whatever the pattern: what stands between two wildcards matches at the first place where it can and is
never tried again (atomic groups), so that no pattern of a hostile repository can hold the interpreter.

Source: gitignore(5); for malformed and unusual patterns the behaviour of git, which the tests compare with.
"""

import re
import string
from collections.abc import Iterator, Sequence
from enum import Enum

_SPECIAL = frozenset(b"*?[\\")
_SLASH = ord("/")
_STAR = ord("*")
_BACKSLASH = ord("\\")
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": string.digits,
    b"graph": string.ascii_letters + string.digits + string.punctuation,
    b"lower": string.ascii_lowercase,
    b"print": string.ascii_letters + string.digits + string.punctuation + " ",
    b"punct": string.punctuation,
    # git's own idea of a space: neither vertical tab nor form feed.
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


def literal_length(pattern: bytes) -> int:
    """Return how many leading bytes have no special meaning."""
    return next((index for index, byte in enumerate(pattern) if byte in _SPECIAL), len(pattern))


def translate(pattern: bytes, *, pathname: bool) -> bytes | None:
    """Return an expression that fully matches what the pattern matches, or None if that is nothing.

    With ``pathname`` a pattern is compared with a path: ``**`` beside slashes spans directories, other wildcards end
    at a slash. Without, it is compared with a single name. The expression has no capturing groups and wants DOTALL.
    """
    # git compares the part before the first wildcard by itself. It shows: the rest counts as a new beginning, so that
    # in "foo**/bar" the stars span directories as if a slash stood before them.
    start = literal_length(pattern) if pathname else 0
    try:
        tokens = list(_tokens(pattern[start:], pathname))
    except _Malformed:
        return None
    return re.escape(pattern[:start]) + _join(tokens)


class _Malformed(Exception):
    """The pattern can match nothing."""


class _Wild(Enum):
    """What a pattern holds besides single bytes."""

    SEPARATOR = "/"
    WITHIN = "*"
    """Any bytes but slashes."""
    DIRECTORIES = "**/"
    """Any number of directories, none included."""
    SOME_DIRECTORIES = "**\\/"
    """At least one directory: what an escaped slash makes of ``**/`` in git."""
    REST = "**"
    """Everything to the end of the path."""


_Token = _Wild | bytes
"""Bytes are an expression that matches exactly one byte."""


def _tokens(pattern: bytes, pathname: bool) -> Iterator[_Token]:
    token: _Token
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        if byte == _STAR:
            token, at = _stars(pattern, at, pathname)
        elif byte == ord("?"):
            token, at = (b"[^/]", at + 1)
        elif byte == ord("["):
            token, at = _bracket(pattern, at + 1)
        else:
            if byte == _BACKSLASH:
                at += 1
                if at == len(pattern):
                    raise _Malformed
            token, at = (_Wild.SEPARATOR if pattern[at] == _SLASH else re.escape(pattern[at : at + 1])), at + 1
        yield token


def _stars(pattern: bytes, at: int, pathname: bool) -> tuple[_Token, int]:
    end = at
    while end < len(pattern) and pattern[end] == _STAR:
        end += 1
    if pathname and end - at > 1 and (at == 0 or pattern[at - 1] == _SLASH):
        if end == len(pattern):
            return _Wild.REST, end
        if pattern[end] == _SLASH:
            return _Wild.DIRECTORIES, end + 1
        if pattern.startswith(b"\\/", end):
            return _Wild.SOME_DIRECTORIES, end + 2
    return _Wild.WITHIN, end


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Return the expression for the set that begins at ``at``, and where the pattern goes on."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous = 0
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        previous, at = _member(pattern, at, previous, members)
    if negated:
        members = set(range(1, 256)) - members
    members.discard(_SLASH)
    if not members:
        raise _Malformed
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]", at + 1


def _member(pattern: bytes, at: int, previous: int, members: set[int]) -> tuple[int, int]:
    """Add one member of a set; return the byte that a range could begin with (0 for none) and the next position."""
    byte = _byte(pattern, at)
    if byte == ord("-") and previous and at + 1 < len(pattern) and pattern[at + 1] != ord("]"):
        last, at = _escaped(pattern, at + 1)
        members.update(range(previous, last + 1))
        return 0, at
    if pattern.startswith(b"[:", at):
        end = pattern.find(b"]", at + 2)
        if end < 0:
            raise _Malformed
        if end > at + 2 and pattern[end - 1] == ord(":"):
            named = _CLASSES.get(pattern[at + 2 : end - 1])
            if named is None:
                raise _Malformed
            members.update(named.encode())
            return 0, end + 1
        members.add(byte)
        return byte, at + 1
    byte, at = _escaped(pattern, at)
    members.add(byte)
    return byte, at


def _escaped(pattern: bytes, at: int) -> tuple[int, int]:
    """Return the byte at a position, the one after it if it is a backslash, and the next position."""
    if _byte(pattern, at) == _BACKSLASH:
        at += 1
    return _byte(pattern, at), at + 1


def _byte(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise _Malformed
    return pattern[at]


def _join(tokens: Sequence[_Token]) -> bytes:
    """Cut a pattern at its ``**/``, and join the expressions of the runs between them."""
    expression = b""
    before: _Wild | None = None
    run: list[_Token] = []
    for token in tokens:
        if token is _Wild.DIRECTORIES or token is _Wild.SOME_DIRECTORIES:
            expression += _run(run, before, last=False)
            before, run = token, []
        else:
            run.append(token)
    return expression + _run(run, before, last=True)


def _run(tokens: Sequence[_Token], before: _Wild | None, *, last: bool) -> bytes:
    """Return the expression of what spans a fixed number of directories, and of the ``**/`` before it."""
    body = b"".join(_names(tokens))
    if before is None:
        return body
    may_be_none = before is _Wild.DIRECTORIES
    if last:
        return (b"(?:.*/)?" if may_be_none else b".*/") + body
    return b"(?>(?:[^/]*/)" + (b"*?" if may_be_none else b"+?") + body + b")"


def _names(tokens: Sequence[_Token]) -> Iterator[bytes]:
    """Yield the expressions of single names, and of what stands between them."""
    pieces = [b""]
    for token in tokens:
        if isinstance(token, bytes):
            pieces[-1] += token
        elif token is _Wild.WITHIN:
            pieces.append(b"")
        else:
            yield _name(pieces)
            yield b".*" if token is _Wild.REST else b"/"
            pieces = [b""]
    yield _name(pieces)


def _name(pieces: Sequence[bytes]) -> bytes:
    """Return the expression of one name, given the pieces of fixed length between its ``*``."""
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + b"".join(b"(?>[^/]*?" + piece + b")" for piece in middle) + b"[^/]*" + last
