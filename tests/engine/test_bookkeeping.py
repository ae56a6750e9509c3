"""What an index tells of itself from running counts, against a plain look at every file, whatever happened before."""

from collections import Counter
from collections.abc import Sequence

import trio
from attrs import define, evolve, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from semindex.engine.filetable import FileTable
from semindex.engine.index import Index, Outcome
from semindex.engine.priority import Priority
from semindex.model.status import FileCounts, FileRecord, FileState

NAMES = "abcd"
EVENTS = ["mark", "note_pending", "expel", "skip", "take", "take", "give_back", "vanish", "finish", "finish"]
RARE = ["take_over", "begin_write", "start_over", "close"]


@frozen
class Step:
    """Something that happens to one of the two indexes."""

    is_overlay: bool
    event: str
    record: FileRecord
    """With its path, or with it as it is."""
    table: list[FileRecord]
    """With which an index starts over."""


RECORDS = st.builds(
    FileRecord,
    st.sampled_from(NAMES),
    st.sampled_from(FileState),
    st.sampled_from(["h1", "h2"]),
    chunks=st.integers(0, 1),
    dirty=st.booleans(),
    inherited=st.booleans(),
)
STEPS = st.builds(Step, st.booleans(), st.sampled_from(EVENTS + RARE), RECORDS, st.lists(RECORDS, max_size=3))


@define
class Life:
    """A baseline and an overlay to which anything happens."""

    baseline: Index = field(factory=Index)
    overlay: Index = field(factory=Index)
    held: dict[bool, set[str]] = field(factory=lambda: {False: set(), True: set()})
    """Whether of the overlay → paths that were taken from its queue."""

    async def run(self, steps: Sequence[Step]) -> None:
        self.baseline.attach(self.overlay)
        for step in steps:
            await trio.lowlevel.checkpoint()
            index, held = (self.overlay if step.is_overlay else self.baseline), self.held[step.is_overlay]
            await self.meet(step, index, held)
            for one in (self.baseline, self.overlay):
                states = Counter(one.state_of(record.path) for record in one.table)
                assert one.counts() == FileCounts(**{state.value: states[state] for state in FileState})
            assert self.told() == set(filter(self.is_shadowed, NAMES))

    async def meet(self, step: Step, index: Index, held: set[str]) -> None:
        match step.event:
            case "give_back" | "vanish" | "finish":
                if held:
                    record = step.record if step.record.path in held else evolve(step.record, path=min(held))
                    held.remove(record.path)
                    self.let_go(step.event, record, index)
            case "take" if len(index.queue) > len(held):
                held.update((await index.queue.take(1)).paths)
            case "start_over":
                held.clear()
                await index.start_over(FileTable(step.table))
                if step.is_overlay:
                    self.baseline.detach(index)
                    self.baseline.attach(index)
                await self.overlay.find_shadows()
            case _:
                self.change(step, index)

    def let_go(self, event: str, record: FileRecord, index: Index) -> None:
        match event:
            case "give_back":
                index.queue.give_back(record.path)
            case "vanish":
                index.finish(Outcome(record.path, None))
            case _:
                index.finish(Outcome(record.path, record))

    def change(self, step: Step, index: Index) -> None:
        path = step.record.path
        match step.event:
            case "mark":
                index.mark(path, Priority.EDIT)
            case "note_pending":
                index.note_pending(path, Priority.BACKFILL)
            case "expel":
                index.expel(path, None, Priority.EDIT)
            case "skip":
                index.note_skipped(path, "too large")
            case "take_over":
                index.take_over([step.record])
            case "begin_write":
                index.begin_write([Outcome(path, step.record, ids=("1",))])
            case _:
                index.queue.close()

    def told(self) -> set[str]:
        """Return which files that the baseline serves are told to be shadowed; of others it does not matter."""
        return {path for path in self.overlay.shadowed if self.baseline.hash_of(path) is not None}

    def is_shadowed(self, path: str) -> bool:
        record = self.overlay.table.get(path)
        is_inherited = record is not None and record.inherited
        return self.baseline.hash_of(path) is not None and not is_inherited and path not in self.overlay.queue


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=30))
def test_counts_and_shadows_are_those_that_a_look_at_every_file_gives(steps: Sequence[Step]) -> None:
    trio.run(Life().run, steps)
