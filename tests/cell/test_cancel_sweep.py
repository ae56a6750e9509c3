"""A cell of real parts is cancelled here and there in its life; those of twins are swept step by step."""

from pathlib import Path

from semindex.testing.sweep import cancel_here_and_there
from tests.cell.life import lives_below

PLACES = 12


def test_wherever_a_real_cell_is_cancelled_nothing_is_left_and_the_next_is_right(tmp_path: Path) -> None:
    assert len(set(cancel_here_and_there(lives_below(tmp_path), PLACES))) == PLACES
