"""The life of a cell of real parts, told so that it can be cut short anywhere, and what must hold afterwards."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import trio
from attrs import define, field

from semindex.model.registrations import Lifecycle
from semindex.model.status import State
from semindex.testing.cells import config_below, indexed, running_cell, workspace_of
from semindex.testing.sweep import Begin, Check

PATIENCE = 120.0
ADDED, EDITED, REMOVED = "heliotrope", "marzipan", "obsidian"


def write(file: Path, word: str) -> None:
    file.write_text(
        "".join(f"def {word}_{part}(value):\n    return value + {part}  # the {word}\n" for part in range(4))
    )


@define
class Scene:
    """A tree, the directory of a cell, and what was acknowledged."""

    home: Path
    registered: set[str] = field(factory=set)
    released: set[str] = field(factory=set)
    is_edited: bool = False
    open_before: int = 0
    children_before: set[psutil.Process] = field(factory=set)
    """Of other tests in this process."""

    @property
    def tree(self) -> Path:
        return self.home / "tree"

    @property
    def other(self) -> Path:
        return self.home / "other"

    async def live(self, begin: Begin) -> None:
        """Begin, register, edit, search, release one of two, and end."""
        for directory in (self.tree, self.other):
            directory.mkdir()
            write(directory / "removed.py", REMOVED)
            write(directory / "edited.py", REMOVED)
        this = psutil.Process()
        self.open_before, self.children_before = this.num_fds(), set(this.children(recursive=True))
        begin()
        with trio.fail_after(PATIENCE):
            async with running_cell(config_below(self.home, self.home)) as cell:
                for name in ("tree", "other"):
                    await indexed(cell, name, self.home / name)
                    self.registered.add(name)
                write(self.tree / "edited.py", EDITED)
                write(self.tree / "added.py", ADDED)
                (self.tree / "removed.py").unlink()
                self.is_edited = True
                await cell.searches.search("tree", ADDED)
                self.registered.remove("other")
                await cell.leases.release("other", purge=True)
                self.released.add("other")

    async def check(self, step: int) -> None:
        """Nothing of that life is left; the next finds everything, and the store holds what the ledger says."""
        this = psutil.Process()
        assert set(this.children(recursive=True)) <= self.children_before, f"a process is left after step {step}"
        assert this.num_fds() <= self.open_before, f"a descriptor is left after step {step}"
        with trio.fail_after(PATIENCE):
            async with running_cell(config_below(self.home, self.home)) as cell:
                known = {lease.registration.id: lease.registration for lease in cell.leases.registry.leases()}
                for name, registration in known.items():
                    if registration.lifecycle is Lifecycle.RELEASING:
                        await cell.leases.release(name)
                left = {lease.registration.id for lease in cell.leases.registry.leases()}
                assert self.registered <= left
                assert not self.released & left
                for name in left:
                    workspace = workspace_of(cell, name)
                    assert (await workspace.settled()).state is State.INDEXED
                    await workspace.sweep()
                    await workspace.settled()
                    stored = await cell.janitor.store.file_points(cell.leases.status(name).collection)
                    ledger = {record.path: {record.file_hash: record.chunks} for record in workspace.index.table}
                    assert stored == ledger, f"{name} after step {step}"
                    assert {*ledger} == {file.name for file in (self.home / name).iterdir()}
                if self.is_edited:
                    for word, file in ((EDITED, "edited.py"), (ADDED, "added.py")):
                        answer = await cell.searches.search("tree", word)
                        assert answer.fresh
                        assert answer.results[0].file_path == file, f"{word} after step {step}"
                assert len(await cell.janitor.store.collections()) == len(left)
                assert await cell.janitor.orphans() == []


def lives_below(directory: Path) -> Callable[[], tuple[Callable[[Begin], Awaitable[None]], Check]]:
    """Return what makes the scenes of a sweep, each below a directory of its own."""

    def make() -> tuple[Callable[[Begin], Awaitable[None]], Check]:
        scene = Scene(Path(tempfile.mkdtemp(dir=directory)))
        return scene.live, scene.check

    return make
