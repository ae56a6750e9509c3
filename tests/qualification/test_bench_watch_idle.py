from pathlib import Path

import pytest

from qualification.bench_watch_idle import make_tree, measure


async def test_a_measurement_sees_trees_that_are_watched(tmp_path: Path) -> None:
    cost = await measure(tmp_path, workspaces=3, directories=20, seconds=0.05)

    assert cost.watched == 3
    assert (cost.default_tokens, cost.descriptors) == (0, 1)
    assert cost.idle >= 0


@pytest.mark.parametrize("directories", [11, 40])
def test_a_tree_has_the_directories_that_it_tells(tmp_path: Path, directories: int) -> None:
    names = make_tree(tmp_path, directories)

    assert len(names) == directories
    assert set(names) == {str(path.parent.relative_to(tmp_path)).replace(".", "") for path in tmp_path.rglob("file.py")}
