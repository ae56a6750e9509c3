"""The kill -9 campaign: a real service with real children and real git repositories, killed at any moment.

python -m qualification.crash [--kills 200] [--seed 0]

Each round edits a repository and its worktree at random, registers, releases or purges one of them now and then, kills
the service in the middle of all that, at a random moment or at a named point (see :mod:`semindex.testing.killpoints`),
starts it again, and compares it with the disk and with what was acknowledged:

- lost: a file whose token a fresh search does not find, or an acknowledged registration that is gone;
- stale: an answer with text that is not on disk;
- left over: a released registration that is still there, an orphan that the janitor finds, a child that survived.

All of these must be 0. What was asked for and not answered may have happened or not.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
from attrs import define, field

from semindex.testing.killpoints import POINTS, VARIABLE
from semindex.testing.serving import ServedCell

SETTLED = 60.0
"""Seconds for a registration to be indexed after a start."""
KINDS = ("lost", "stale", "left over")
AT_RANDOM = "at random"
PATIENCE = 3.0
"""Seconds for coming to a named point; then it is killed wherever it is."""
WORDS = (
    "amber",
    "basalt",
    "cobalt",
    "damask",
    "ember",
    "fjord",
    "garnet",
    "harbour",
    "indigo",
    "juniper",
    "kelp",
    "lagoon",
)


@define
class Tally:
    """How often the service was killed, and what went wrong."""

    kills: Counter[str] = field(factory=Counter)
    """By the point at which it was killed."""
    found: Counter[str] = field(factory=Counter)
    """By kind: lost, stale, left over."""

    def note(self, kind: str, what: str) -> None:
        """Count a fault, and print what it is."""
        self.found[kind] += 1
        print(f"after {self.kills.total()} kills {kind}: {what}", flush=True)

    def __str__(self) -> str:
        return f"{self.kills.total()} kills: " + ", ".join(f"{self.found[kind]} {kind}" for kind in KINDS)


@define
class Campaign:
    """A repository, its worktree, a service, and what is known of them."""

    cell: ServedCell
    directory: Path
    point: Path
    """The file that names where the service is to be killed."""
    chance: random.Random
    tally: Tally = field(factory=Tally)
    registered: dict[str, bool | None] = field(factory=dict)
    """Id → whether it is registered, as acknowledged; None where a call was cut off."""
    serial: int = 0

    @property
    def trees(self) -> dict[str, Path]:
        """Return the working trees by registration id."""
        return {"primary": self.directory / "primary", "worktree": self.directory / "worktree"}

    def prepare(self) -> None:
        """Make the repository and the worktree."""
        primary = self.trees["primary"]
        primary.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        for _ in range(12):
            self.edit(primary)
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.git("worktree", "add", "-q", "-b", "side", str(self.trees["worktree"]))

    def git(self, *arguments: str) -> None:
        """Run git in the primary checkout."""
        identity = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid"]
        subprocess.run(["git", *identity, *arguments], cwd=self.trees["primary"], check=True, capture_output=True)

    def edit(self, tree: Path) -> None:
        """Write, rewrite or remove a file; each version holds a token of its own."""
        self.serial += 1
        name = f"module_{self.chance.randrange(16)}.py"
        if self.chance.random() < 0.15:
            (tree / name).unlink(missing_ok=True)
            return
        token = f"{self.chance.choice(WORDS)}{self.serial}{self.chance.choice(WORDS)}"
        functions = (
            f"def {token}_{part}(value):\n    '''The {token} {part} of the ledger.'''\n    return value + {part}\n"
            for part in range(self.chance.randrange(1, 6))
        )
        (tree / name).write_text("\n\n".join(functions))

    # The service

    def client(self, seconds: float) -> httpx2.Client:
        """Return a client of the control API."""
        token = next(self.cell.home.rglob("control.token")).read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.cell.url, headers=headers, timeout=seconds, trust_env=False)

    def disturb(self, until: float) -> None:
        """Edit and call at random until the time has come, and take note of what was acknowledged."""
        with self.client(5.0) as client:
            while time.monotonic() < until:
                kind = self.chance.random()
                name = self.chance.choice(list(self.trees))
                try:
                    if kind < 0.80:
                        self.edit(self.trees[name])
                        time.sleep(self.chance.random() * 0.02)
                    elif kind < 0.88:
                        self.register(client, name)
                    elif kind < 0.94:
                        self.release(client, name)
                    else:
                        client.post("/v1/search", json={"registrationId": name, "query": self.chance.choice(WORDS)})
                except httpx2.HTTPError:
                    return

    def register(self, client: httpx2.Client, name: str) -> None:
        """Register a tree, the worktree above the primary."""
        body = {"path": str(self.trees[name])}
        if name == "worktree":
            body["baselinePath"] = str(self.trees["primary"])
        before, self.registered[name] = self.registered.get(name), None
        answer = client.put(f"/v1/registrations/{name}", json=body)
        self.registered[name] = True if answer.status_code == 200 else before

    def release(self, client: httpx2.Client, name: str) -> None:
        """Release a registration, at times with purge."""
        before, self.registered[name] = self.registered.get(name), None
        purge = self.chance.choice(["", "?purge=true", "?purge=false"])
        answer = client.delete(f"/v1/registrations/{name}{purge}")
        # Whatever else it says, the release was begun, and will be finished at some time.
        self.registered[name] = {200: False, 404: False, 409: before}.get(answer.status_code)

    def kill_somewhere(self) -> None:
        """Let the service live for a moment full of work, and kill it, there or at a named point."""
        point, moment = self.chance.choice([AT_RANDOM, *POINTS]), self.chance.random() * 1.5
        worker = threading.Thread(target=self.disturb, args=(time.monotonic() + 5.0,))
        worker.start()
        time.sleep(moment)
        family = psutil.Process(self.cell.pid).children(recursive=True)
        if point is not AT_RANDOM:
            self.point.write_text(point)
            with suppress(subprocess.TimeoutExpired):
                self.cell.process.wait(PATIENCE)
        self.tally.kills[AT_RANDOM if self.cell.process.poll() is None else point] += 1
        self.cell.kill()
        self.point.unlink(missing_ok=True)
        worker.join()
        _, alive = psutil.wait_procs(family, timeout=5.0)
        for process in alive:
            self.tally.note("left over", f"child {process.pid}")

    # The comparison

    def check(self) -> None:
        """Compare the service, started again, with the disk and with what was acknowledged."""
        with self.client(30.0) as client:
            while client.get("/readyz").json()["status"] == "starting":
                client.get("/v1/status", params={"wait": "5"})
            known = self.check_registrations(client)
            for name in ("primary", "worktree"):
                if known.get(name) == "active":
                    self.check_tree(client, name)
            for orphan in client.get("/v1/orphans").raise_for_status().json()["orphans"]:
                self.tally.note("left over", f"orphan {orphan['name']}")

    def check_registrations(self, client: httpx2.Client) -> dict[str, str]:
        """Look for what was acknowledged, and return the lifecycle of each registration that there is."""
        answer = client.get("/v1/registrations").raise_for_status().json()
        known = {each["id"]: each["lifecycle"] for each in answer["registrations"]}
        for name, expected in self.registered.items():
            if expected is True and name not in known:
                self.tally.note("lost", f"registration {name}")
            if expected is False and name in known:
                self.tally.note("left over", f"registration {name}")
        for name in self.trees:
            # What was cut off is decided now, so that the next round begins with what is known. A release that was
            # begun goes on by itself.
            self.registered[name] = None if known.get(name) == "releasing" else name in known
        return known

    def check_tree(self, client: httpx2.Client, name: str) -> None:
        """Look for every file's token, and for text that is not there."""
        self.wait_until_indexed(client, name)
        tree = self.trees[name]
        for file in sorted(tree.glob("*.py")):
            text = file.read_text()
            token = text.partition("(")[0].removeprefix("def ").rpartition("_")[0]
            results = self.fresh_results(client, name, f"the {token} of the ledger")
            for result in results:
                path = tree / result["filePath"]
                if not path.exists() or result["codeChunk"] not in path.read_text():
                    self.tally.note("stale", f"{name}/{result['filePath']}")
            if file.name not in {result["filePath"] for result in results}:
                self.tally.note("lost", f"{name}/{file.name}: {token}")

    def fresh_results(self, client: httpx2.Client, name: str, question: str) -> list[dict[str, Any]]:
        """Search until the answer is fresh, as it has to be where nothing moves; none that ever is counts as lost."""
        deadline = time.monotonic() + SETTLED
        while time.monotonic() < deadline:
            body = {"registrationId": name, "query": question, "maxResults": 50}
            answer = client.post("/v1/search", json=body).raise_for_status().json()
            if answer["fresh"]:
                return list(answer["results"])
        self.tally.note("lost", f"{name} never gives a fresh answer")
        return []

    def wait_until_indexed(self, client: httpx2.Client, name: str) -> None:
        """Wait until a registration is indexed; one that never is counts as lost."""
        deadline = time.monotonic() + SETTLED
        revision, status = "", dict[str, Any]()
        while time.monotonic() < deadline:
            options = {"wait": "5", "since": revision} if revision else {}
            status = client.get(f"/v1/registrations/{name}", params=options).json()
            if status.get("state") == "Indexed":
                return
            revision = status.get("revision", "")
        self.tally.note("lost", f"{name} is not indexed: {status}")


def main() -> int:
    """Run the campaign, and return 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch).resolve()
        # The root itself is registered, too; both repositories below it are boundaries of its scan.
        point, arguments = directory / "point", ["--root", str(directory / "trees"), "--port", "0"]
        cell = ServedCell(directory / "home", arguments, {VARIABLE: str(point)}, program="semindex.testing.killpoints")
        campaign = Campaign(cell, directory / "trees", point, random.Random(options.seed))
        campaign.prepare()
        with cell:
            for number in range(options.kills):
                campaign.kill_somewhere()
                cell.start()
                campaign.check()
                if number % 10 == 9:
                    print(campaign.tally, flush=True)
            code = cell.stop()
    print("; ".join(f"{point}: {number}" for point, number in campaign.tally.kills.most_common()))
    print(f"{campaign.tally}; end in order: exit code {code}")
    return 1 if campaign.tally.found or code else 0


if __name__ == "__main__":
    sys.exit(main())
