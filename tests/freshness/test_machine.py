"""Whatever people and agents do to a repository and its worktrees, answers are fresh, whole and true.

The same is played for as long as one likes by ``python -m qualification.freshness``.
"""

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.freshness.cells import Watching, cheap_cell
from tests.freshness.machine import Machine, Tally
from tests.freshness.moves import FREQUENT, MOVES, Move, Repository

PAUSES = [0.0, 0.0, 0.0, 0.05, 0.3]
PROGRAMS = st.lists(
    st.builds(
        Move,
        st.sampled_from([*FREQUENT, *MOVES, *FREQUENT]),
        st.integers(0, 2),
        st.integers(0, 99),
        st.integers(0, 99),
        st.sampled_from(PAUSES),
    ),
    min_size=8,
    max_size=16,
)


async def play(machine: Machine, moves: list[Move]) -> list[str]:
    """Play moves on a repository that is registered only for that; return what was wrong."""
    await trio.to_thread.run_sync(machine.repository.make)
    await machine.begin()
    await machine.play(moves)
    await machine.end()
    return machine.tally.faults


@pytest.mark.parametrize("watching", Watching)
async def test_fresh_answers_show_what_is_on_disk_and_no_answer_shows_anything_else(
    home: Path, tmp_path: Path, watching: Watching
) -> None:
    number = 0
    async with cheap_cell(home, tmp_path, watching=watching) as cell:

        @settings(max_examples=3)
        @given(moves=PROGRAMS)
        def explore(moves: list[Move]) -> None:
            nonlocal number
            number += 1
            machine = Machine(cell, Repository(tmp_path / f"project{number}"), Tally())
            assert trio.from_thread.run(play, machine, moves) == []

        await trio.to_thread.run_sync(explore)
