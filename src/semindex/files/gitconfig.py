"""The one setting of git's configuration that decides what is ignored: ``core.excludesFile``.

Owns the reading of git's configuration files, without running git (it need not be installed). Conditional includes
(``includeIf``) and the configuration of single linked worktrees are not read.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping

from semindex.files.git import Repository

_MAX_FILES = 100
"""Read at most; files that include each other would never end."""

_MAX_BYTES = 1 << 18

_ITEM = re.compile(
    r"""\s*(?:
        \[\s*(?P<section>[\w.-]+)(?:\s+"(?P<subsection>(?:[^"\\\n]|\\.)*)")?\s*\]
      | (?P<key>[A-Za-z][A-Za-z0-9-]*)[ \t]*
        (?:=(?P<value>(?:[^"\\\n\#;]|\\(?:\r?\n|[ntb"\\])|"(?:[^"\\\n]|\\(?:\r?\n|[ntb"\\]))*")*))?
        (?:[\#;].*)?(?:\n|\Z)
      | [\#;].*
    )""",
    re.VERBOSE,
)
"""A section's header, a key with or without its value, or a comment."""

_ESCAPED = re.compile(r"\\(?P<escaped>\r?\n|.)")
_PART = re.compile(rf'"(?P<quoted>(?:[^"\\]|\\\r?\n|\\.)*)"|{_ESCAPED.pattern}|(?P<blanks>\s+)|[^\s"\\]+')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}


def global_excludes_file(repository: Repository | None, environ: Mapping[str, str]) -> str | None:
    """Return the path of git's global excludes file, which need not exist; None if there is none by design."""
    home = environ.get("HOME")
    configured: str | None = None
    budget = iter(range(_MAX_FILES))
    for path in _configuration_files(repository, environ):
        for key, value in _settings(path, home, budget):
            if key == "core.excludesfile":
                configured = value
    if configured is not None:
        top = repository.top if repository is not None else "/"
        return os.path.join(top, _expanded(configured, home)) if configured else None
    base = _xdg_base(environ)
    return None if base is None else os.path.join(base, "git", "ignore")


def _configuration_files(repository: Repository | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the files in git's order: the last one that sets a value wins."""
    if environ.get("GIT_CONFIG_NOSYSTEM", "0").lower() in ("", "0", "false", "no", "off"):
        yield environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    if "GIT_CONFIG_GLOBAL" in environ:
        yield environ["GIT_CONFIG_GLOBAL"]
    else:
        base, home = _xdg_base(environ), environ.get("HOME")
        if base:
            yield os.path.join(base, "git", "config")
        if home:
            yield os.path.join(home, ".gitconfig")
    if repository is not None:
        yield os.path.join(repository.common_dir, "config")


def _xdg_base(environ: Mapping[str, str]) -> str | None:
    if environ.get("XDG_CONFIG_HOME"):
        return environ["XDG_CONFIG_HOME"]
    return os.path.join(environ["HOME"], ".config") if environ.get("HOME") else None


def _settings(path: str, home: str | None, budget: Iterator[int]) -> Iterator[tuple[str, str]]:
    """Yield (section.key in lower case, value) of a file and those it includes, in order; each costs of the budget."""
    if next(budget, None) is None:
        return
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return
            text = os.fsdecode(file.read(_MAX_BYTES)).removeprefix("\ufeff")
    except (OSError, ValueError):
        return
    for key, value in parse(text):
        if key != "include.path":
            yield key, value
        else:
            yield from _settings(os.path.join(os.path.dirname(path), _expanded(value, home)), home, budget)


def parse(text: str) -> Iterator[tuple[str, str]]:
    """Yield (section.key in lower case, value) of a configuration's text, up to the first thing that is not valid.

    A subsection stands between section and key, as written. A key without a value is left out.
    """
    section, at = "", 0
    while (found := _ITEM.match(text, at)) is not None and found.end() > at:
        at = found.end()
        if found["section"] is not None:
            section = ".".join(filter(None, (found["section"].lower(), found["subsection"])))
        elif found["value"] is not None:
            yield f"{section}.{found['key'].lower()}", _unquoted(found["value"])


def _unquoted(value: str) -> str:
    """Return a value without its quotes, escapes, and the blanks around it that neither of them keeps."""
    result = blanks = ""
    for part in _PART.finditer(value):
        if part["blanks"] is not None:
            blanks += part["blanks"] if result else ""
        else:
            quoted, escaped = part["quoted"], part["escaped"]
            text = part[0] if quoted is None else quoted
            result += blanks + (_ESCAPED.sub(_unescaped, text) if escaped is None else _unescaped(part))
            blanks = ""
    return result


def _unescaped(part: re.Match[str]) -> str:
    return _ESCAPES.get(part["escaped"], "")


def _expanded(path: str, home: str | None) -> str:
    if home is not None and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return os.path.expanduser(path)
