import sys
from pathlib import Path

import pytest

from semindex.model.errors import InvalidInput
from training import packages
from training.collect import PACKAGES
from training.packages import Ecosystem, Request, download, read_requests


def test_the_projects_own_list_is_readable_and_names_each_package_once() -> None:
    requests = read_requests(PACKAGES)

    assert len(requests) == len({request.key for request in requests}) == 863
    assert sum(request.heldout for request in requests) == 36


def test_lines_become_requests(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# comment\n\npypi attrs\nnpm @scope/name heldout  # a remark\n")

    requests = read_requests(tmp_path / "list")

    assert requests == [Request(Ecosystem.PYPI, "attrs", False), Request(Ecosystem.NPM, "@scope/name", True)]
    assert [request.key for request in requests] == ["pypi:attrs", "npm:@scope/name"]
    assert requests[1].folder(tmp_path) == tmp_path / "packages" / "npm" / "@scope+name"


@pytest.mark.parametrize("line", ["gem rails", "pypi", "pypi attrs held", "pypi attrs heldout twice"])
def test_a_line_that_is_something_else_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "list").write_text(f"pypi attrs\n{line}\n")

    with pytest.raises(InvalidInput, match='list, line 2: expected "ecosystem name'):
        read_requests(tmp_path / "list")


def test_a_download_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def client(name: str) -> list[str]:
        program = f"open('part.tgz', 'w').write('x'); import sys; sys.exit('no {name}' if '{name}' == 'bad' else 0)"
        return [sys.executable, "-c", program]

    monkeypatch.setitem(packages._COMMANDS, Ecosystem.NPM, client)
    monkeypatch.setitem(packages._COMMANDS, Ecosystem.DEB, lambda name: [str(tmp_path / "no-such-client")])
    good, bad, absent = (
        Request(Ecosystem.NPM, "good", False),
        Request(Ecosystem.NPM, "bad", False),
        Request(Ecosystem.DEB, "absent", False),
    )

    download([good, bad, absent], tmp_path)

    good_line, bad_line, absent_line = capsys.readouterr().out.splitlines()
    assert good_line == "npm good ok"
    assert bad_line == "npm bad failed: ['no bad']"
    assert absent_line.startswith("deb absent failed: ")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        "packages/npm/good/part.tgz"
    ]

    download([good], tmp_path)

    assert capsys.readouterr().out == ""
