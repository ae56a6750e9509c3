"""Machine-readable licence metadata of a package, and whether it allows the package as training data."""

import email.parser
import json
import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from attrs import frozen

_PERMISSIVE = re.compile(
    r"(?:the )?(?:mit(?:-0|/expat)?|expat|0?bsd(?:-?[123]-?clause)?(?:[~-](?!4).*)?"
    r"|(?:new|modified|simplified|3-clause|2-clause) bsd"
    r"|apache(?: software)?(?:[- ](?:v|version )?2(?:\.0)?)?(?: with llvm-exception)?|isc(?:l)?"
    r"|psf(?:-2\.0)?|python(?:-2\.0| software foundation)|unlicense|cc0(?:-1\.0)?)",
)
_NOISE = re.compile(r"\blicen[sc]e\b,?|\.$")
_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST_FIELD = 60
"""Characters of a wheel's free-form licence field from which it is the licence's text, not its name."""


@frozen
class Verdict:
    """What the metadata states, and whether all of it is permissive."""

    stated: str
    permissive: bool

    @classmethod
    def on(cls, names: list[str]) -> "Verdict":
        """Judge several licences that all apply; none at all is a refusal."""
        return cls("; ".join(names) or "none", bool(names) and all(map(is_permissive, names)))


def is_permissive(expression: str) -> bool:
    """Evaluate an SPDX-like expression: one side of an ``or`` is enough, both sides of an ``and`` are needed."""
    text = re.sub(r"\s+", " ", expression.strip().lower()).replace(", version ", " version ")
    while group := re.search(r"\(([^()]*)\)", text):
        before = text[: group.start()].rstrip()
        is_operand = not before or before.endswith((" and", " or", "(", "||", ","))
        verdict = ("mit" if _all_permissive(group[1]) else "refused") if is_operand else ""  # else a remark on a name
        text = f"{before} {verdict}{text[group.end() :]}"
    return _all_permissive(text)


def _all_permissive(text: str) -> bool:
    for separator, combine in ((r" or |\|\|", any), (r" and |,", all)):
        parts = [part for part in re.split(separator, text) if part.strip()]
        if len(parts) > 1:
            return combine(map(_all_permissive, parts))
    return bool(_PERMISSIVE.fullmatch(re.sub(r"\s+", " ", _NOISE.sub("", text)).strip(" ,")))


def of_wheel(metadata: str) -> Verdict:
    """Judge a wheel's METADATA: the licence expression, else the classifiers, else the short licence field."""
    message = email.parser.HeaderParser().parsestr(metadata)
    if expression := message.get("License-Expression", ""):
        return Verdict.on([expression])
    classifiers = [c.removeprefix(_CLASSIFIER) for c in message.get_all("Classifier", []) if c.startswith("License ::")]
    if classifiers:
        return Verdict.on(classifiers)
    field = " ".join(message.get("License", "").split())
    if len(field) < _LONGEST_FIELD:
        return Verdict.on([field] if field else [])
    return Verdict(field[:_LONGEST_FIELD], permissive=False)


def of_npm(package_json: str) -> Verdict:
    """Judge the licence named by a package.json, in the current form or one of the two old ones."""
    data = json.loads(package_json)
    value = data.get("license") or data.get("licenses") or []
    entries = value if isinstance(value, list) else [value]
    return Verdict.on([str(entry.get("type", "")) if isinstance(entry, dict) else str(entry) for entry in entries])


class DebianCopyright:
    """A machine-readable debian/copyright file: the licence of each path, where the last matching stanza wins."""

    def __init__(self, text: str) -> None:
        """Read the file; a free-form one has no stanzas and so no licence."""
        self._stanzas = list(_stanzas(text)) if "copyright-format" in text[:400].lower() else []

    def upstream(self) -> Verdict:
        """Judge the package as a whole, its packaging (debian/*) left out."""
        names = {
            licence
            for patterns, licence in self._stanzas
            if not all(pattern.startswith("debian/") for pattern in patterns)
        }
        return Verdict.on(sorted(names))

    def main(self) -> Verdict:
        """Judge the stanza that covers everything not listed elsewhere (``Files: *``)."""
        return self.of("\0")

    def of(self, path: str) -> Verdict:
        """Judge the licence of a path relative to the source's top folder."""
        found: list[str] = []
        for patterns, licence in self._stanzas:
            if any(_glob(pattern).match(path) for pattern in patterns):
                found = [licence]
        return Verdict.on(found)


def _stanzas(text: str) -> Iterator[tuple[list[str], str]]:
    for block in re.split(r"\n[ \t]*\n", text.replace("\r", "")):
        fields = {
            key.lower(): value
            for key, value in re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", block, re.MULTILINE)
        }
        if "files" in fields and "license" in fields:
            yield fields["files"].split(), fields["license"].strip().split("\n")[0].strip() or "none"


@lru_cache(maxsize=10_000)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.removeprefix("./")))
