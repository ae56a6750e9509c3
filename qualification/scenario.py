"""Command: one life of a repository and its worktree through ``indexctl``, against a real ``semindex serve``.

python -m qualification.scenario [--servers] [--json]

No step needs another product. Every search is fresh: it answers with what is on disk when it is asked, so that no step
polls. With ``--servers`` the cell is a fleet's: it embeds at an endpoint and stores in a Qdrant server, both of which
are doubles in processes of their own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import httpx2
from attrs import asdict, define, field, frozen

from semindex.testing.doubles import DoubleProcess
from semindex.testing.serving import ServedCell

HELIOTROPE: Final = "Heliotrope authentication"
VERMILLION: Final = "Vermillion settlement ledger"
CERULEAN: Final = "Cerulean credential rotation"
AUTH: Final = f"""\
// {HELIOTROPE} validates bearer credentials before request dispatch.
export function authenticate(header: string): boolean {{
  return header.startsWith("Bearer ") && header.length > 23
}}
"""
PAYMENTS: Final = f"""\
// {VERMILLION} reconciles completed invoices.
export function settle(invoices: number[]): number {{
  return invoices.reduce((sum, invoice) => sum + invoice, 0)
}}
"""
ROTATION: Final = f"""\
// {CERULEAN} replaces every key before it expires.
export function rotate(keys: string[]): string[] {{
  return keys.map((key) => key.split("").reverse().join(""))
}}
"""
QDRANT_KEY: Final = "e2e-qdrant-api-key"
EMBEDDER_KEY: Final = "e2e-embedder-api-key"
TOKENS: Final = {
    "SEMANTIC_INDEX_QDRANT_API_KEY": QDRANT_KEY,
    "SEMANTIC_INDEX_EMBEDDER_API_KEY": EMBEDDER_KEY,
    "SEMANTIC_INDEX_CONTROL_TOKEN": "e2e-control-token-value",
    "SEMANTIC_INDEX_MCP_TOKEN": "e2e-mcp-token-value-only",
}
TIMEOUT: Final = 200
"""Seconds for one command."""


class Unmet(Exception):
    """A step found something else than it must."""


@frozen
class Outcome:
    """What came of one step."""

    step: str
    passed: bool
    found: str = ""
    """What was found instead."""


@define
class Scenario:
    """The repository, its worktree, and the client of a cell."""

    cell: ServedCell
    directory: Path
    qdrant_url: str | None = None
    """Where the collections are; None: below the state directory."""
    outcomes: list[Outcome] = field(factory=list)

    @property
    def primary(self) -> Path:
        """Return the primary checkout."""
        return self.directory / "primary"

    @property
    def worktree(self) -> Path:
        """Return the worktree."""
        return self.directory / "worktree"

    def run(self) -> None:
        """Carry out all steps, those after a failed one included."""
        self._step("2: a repository and a worktree", self._prepare)
        self._step("3: the primary is registered, and found in", self._register_primary)
        self._step("4: the worktree is registered, and finds its baseline", self._register_worktree)
        self._step("5: an overwritten file is found by its new text", self._expect_new_text)
        self._step("5: and by its old text no more", self._expect_old_text_gone)
        self._step("6: a deleted file is not found", self._expect_deleted_file_gone)
        self._step("7: files that were put back are found again", self._expect_both_back)
        self._step("7: the primary was never touched by it", self._expect_primary_untouched)
        self._step("10: both are found again after a restart", self._expect_both_after_restart)
        self._step("12: two collections", lambda: self._expect_collections(2))
        self._step("12: a released worktree's is deleted", self._release_worktree)
        self._step("12: a released primary's is kept", self._release_primary)

    def _step(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except (Unmet, OSError, subprocess.TimeoutExpired) as unmet:
            # Of files, too, that an earlier step should have made.
            self.outcomes.append(Outcome(name, passed=False, found=str(unmet)))
        else:
            self.outcomes.append(Outcome(name, passed=True))

    # The steps

    def _prepare(self) -> None:
        source = self.primary / "src"
        source.mkdir(parents=True)
        (source / "auth.ts").write_text(AUTH)
        (source / "payments.ts").write_text(PAYMENTS)
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("add", ".")
        self._git("commit", "--quiet", "--message=A fixture")
        self._git("worktree", "add", "--quiet", "-b", "qualification", str(self.worktree))

    def _register_primary(self) -> None:
        status = self._indexctl("register", "--id", "fixture-primary", "--path", str(self.primary), *_WAIT)
        _expect(status["state"] == "Indexed" and status["kind"] == "primary", status)
        self._expect_found("fixture-primary", "heliotrope authentication bearer", HELIOTROPE)

    def _register_worktree(self) -> None:
        place = ("--path", str(self.worktree), "--baseline", str(self.primary))
        status = self._indexctl("register", "--id", "fixture-worktree", *place, *_WAIT)
        _expect(status["state"] == "Indexed" and status["kind"] == "worktree", status)
        self._expect_found("fixture-worktree", "heliotrope authentication bearer", HELIOTROPE)

    def _expect_new_text(self) -> None:
        (self.worktree / "src" / "auth.ts").write_text(ROTATION)
        self._expect_found("fixture-worktree", "cerulean credential rotation", CERULEAN)

    def _expect_old_text_gone(self) -> None:
        self._expect_absent("fixture-worktree", "heliotrope authentication bearer", HELIOTROPE)

    def _expect_deleted_file_gone(self) -> None:
        (self.worktree / "src" / "payments.ts").unlink()
        self._expect_absent("fixture-worktree", "vermillion settlement ledger", VERMILLION)

    def _expect_both_back(self) -> None:
        self._git("checkout", "--quiet", "--", "src/auth.ts", "src/payments.ts", directory=self.worktree)
        self._expect_found("fixture-worktree", "heliotrope authentication bearer", HELIOTROPE)
        self._expect_found("fixture-worktree", "vermillion settlement ledger", VERMILLION)
        self._expect_absent("fixture-worktree", "cerulean credential rotation", CERULEAN)

    def _expect_primary_untouched(self) -> None:
        self._expect_found("fixture-primary", "heliotrope authentication bearer", HELIOTROPE)
        self._expect_found("fixture-primary", "vermillion settlement ledger", VERMILLION)
        self._expect_absent("fixture-primary", "cerulean credential rotation", CERULEAN)

    def _expect_both_after_restart(self) -> None:
        _expect(self.cell.stop() == 0, "another exit code than 0")
        self.cell.start()
        self._indexctl("service-status", *_WAIT)
        for registration in ("fixture-primary", "fixture-worktree"):
            status = self._indexctl("status", "--id", registration, *_WAIT)
            _expect(status["embeddedChunks"] == 0, status)
            self._expect_found(registration, "heliotrope authentication bearer", HELIOTROPE)

    def _release_worktree(self) -> None:
        receipt = self._indexctl("release", "--id", "fixture-worktree", "--purge")
        _expect(receipt["purged"] is True, receipt)
        self._expect_collections(1)

    def _release_primary(self) -> None:
        receipt = self._indexctl("release", "--id", "fixture-primary")
        _expect(receipt["purged"] is False, receipt)
        self._expect_collections(1)

    # What they are made of

    def _expect_found(self, registration: str, query: str, marker: str) -> None:
        answer = self._search(registration, query)
        _expect(_holds(answer, marker), answer)

    def _expect_absent(self, registration: str, query: str, marker: str) -> None:
        answer = self._search(registration, query)
        _expect(answer["fresh"] and not _holds(answer, marker), answer)

    def _search(self, registration: str, query: str) -> Any:
        return self._indexctl("search", "--id", registration, "--query", query)

    def _expect_collections(self, number: int) -> None:
        """Count the collections of the server, or on disk, where each is a directory of the embedded store."""
        if self.qdrant_url is not None:
            headers = {"api-key": QDRANT_KEY}
            answer = httpx2.get(f"{self.qdrant_url}/collections", headers=headers, trust_env=False).json()
            found = sorted(each["name"] for each in answer["result"]["collections"])
        else:
            found = sorted(path.name for path in (self.cell.home / "state" / "vectors").glob("ws-*"))
        _expect(len(found) == number, found)

    def _indexctl(self, *arguments: str) -> Any:
        done = subprocess.run(
            [Path(sys.executable).with_name("indexctl"), *arguments, "--json"],
            env=self.cell.client_environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        if done.returncode != 0:
            raise Unmet(f"exit code {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def _git(self, *arguments: str, directory: Path | None = None) -> None:
        identity = ("-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=directory or self.primary,
            env=self.cell.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        if done.returncode != 0:
            raise Unmet(f"git {arguments[0]}: {done.stderr.strip()}")


_WAIT: Final = ("--wait", "--timeout", "3m")


def _expect(is_met: bool, found: object) -> None:
    if not is_met:
        raise Unmet(json.dumps(found))


def _holds(answer: Any, marker: str) -> bool:
    return any(marker in hit["codeChunk"] for hit in answer["results"])


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """Run the doubles of both servers; yield the URLs of the endpoint and of Qdrant."""
    embedder = DoubleProcess("semindex.testing.embedder_double", ["--api-key", EMBEDDER_KEY])
    qdrant = DoubleProcess("semindex.testing.qdrant_double", ["--api-key", QDRANT_KEY])
    with embedder, qdrant:
        yield embedder.url, qdrant.url


def indexing_with(embedder_url: str, qdrant_url: str) -> dict[str, Any]:
    """Return the configuration of a fleet's cell; the keys come through the environment."""
    return {
        "model": "deterministic-test-embedding",
        "dimension": 32,
        "openai-compatible": {"baseUrl": f"{embedder_url}/v1"},
        "qdrant": {"url": qdrant_url},
        "searchMinScore": 0.2,
        "searchMaxResults": 30,
        "embeddingBatchSize": 20,
        "scannerMaxBatchRetries": 3,
    }


@contextmanager
def scenario(urls: tuple[str, str] | None = None) -> Iterator[Scenario]:
    """Provide the scenario on a new cell, which allows the directory of both checkouts and registers nothing.

    ``urls`` are those of an endpoint and of a Qdrant server; without them the embedded ones are used.
    """
    with tempfile.TemporaryDirectory() as scratch:
        directory, home = Path(scratch).resolve() / "workspace", Path(scratch).resolve() / "home"
        directory.mkdir()
        home.mkdir()
        config = {
            "stateDirectory": str(home / "state"),
            "cacheDirectory": str(home / "cache"),
            "allowedRoots": [str(directory)],
            "listen": {"port": 0},
            "indexing": {} if urls is None else indexing_with(*urls),
        }
        (home / "config.json").write_text(json.dumps(config))
        with ServedCell(home, ["--config", str(home / "config.json")], TOKENS) as cell:
            yield Scenario(cell, directory, None if urls is None else urls[1])


def main() -> int:
    """Run the scenario, print what came of each step, and return 1 if any has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", action="store_true", help="with an endpoint and a Qdrant server, both doubles")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with servers() if options.servers else nullcontext() as urls, scenario(urls) as life:
        life.run()
    if options.json:
        print(json.dumps({"outcomes": [asdict(outcome) for outcome in life.outcomes]}, indent=2))
    else:
        for outcome in life.outcomes:
            print(f"{'PASS' if outcome.passed else 'FAIL'}  {outcome.step}  {outcome.found}".rstrip())
    return 0 if all(outcome.passed for outcome in life.outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
