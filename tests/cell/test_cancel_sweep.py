"""A cell of real parts is cancelled at some steps of its life; those of twins are swept step by step."""

from pathlib import Path

from semindex.testing.sweep import cancel_at_spread_steps
from tests.cell.life import lives_below

PLACES, LEAST = 12, 9


def test_wherever_a_real_cell_is_cancelled_nothing_is_left_and_the_next_is_right(tmp_path: Path) -> None:
    assert len(cancel_at_spread_steps(lives_below(tmp_path), PLACES)) >= LEAST
