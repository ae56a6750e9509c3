from pathlib import Path

import pytest

from tests.training.archives import CODE, debian_source, npm, wheel
from training.collect import extract
from training.packages import Ecosystem, Request
from training.pairs import read_pairs

JAVASCRIPT = """
/** Join the parts of a path with slashes. */
export function joinPath(...parts) {
  return parts.map((part) => part.replace(/\\/+$/, "")).join("/");
}
"""


def test_downloads_become_pairs_held_out_declarations_and_the_licence_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = [
        Request(Ecosystem.NPM, "@demo/paths", heldout=False),
        Request(Ecosystem.PYPI, "demo", heldout=True),
        Request(Ecosystem.PYPI, "copyleft", heldout=False),
        Request(Ecosystem.DEBSRC, "damaged", heldout=False),
        Request(Ecosystem.PYPI, "missing", heldout=False),
    ]
    npm(requests[0].folder(tmp_path), "MIT", {"lib/paths.js": JAVASCRIPT})
    wheel(requests[1].folder(tmp_path), "BSD-3-Clause", {"demo/core.py": CODE})
    wheel(requests[2].folder(tmp_path), "GPL-3.0-only", {"demo/core.py": CODE})
    debian_source(requests[3].folder(tmp_path), {})
    (requests[3].folder(tmp_path) / "demo_1.0.orig.tar.gz").write_bytes(b"cut short")

    extract(requests, tmp_path, workers=1)

    assert [(pair.package, pair.symbol) for pair in read_pairs(tmp_path / "pairs.jsonl.gz")] == [
        ("npm:@demo/paths", "joinPath")
    ]
    assert [(pair.package, pair.symbol) for pair in read_pairs(tmp_path / "heldout.jsonl.gz")] == [
        ("pypi:demo", "parse_header")
    ]
    assert (tmp_path / "DATA.tsv").read_text().splitlines() == [
        "ecosystem\tpackage\tversion\tlicence\tpairs\tuse",
        "npm\t@demo/paths\t2.0.1\tMIT\t1\ttraining",
        "pypi\tcopyleft\t1.2\tGPL-3.0-only\t0\trejected",
        "pypi\tdemo\t1.2\tBSD-3-Clause\t1\tevaluation",
    ]
    assert capsys.readouterr().out.splitlines() == [
        "1 pairs: {'javascript': 1}",
        "packages: {'training': 1, 'rejected': 1, 'evaluation': 1}",
    ]
