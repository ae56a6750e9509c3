import pytest

from semindex.stores.edge_optimizer import worth_optimizing


@pytest.mark.parametrize(
    ("points", "indexed", "removed", "dimension", "worth"),
    [
        pytest.param(50_000, 0, 0, 256, False, id="not yet large"),
        pytest.param(50_001, 0, 0, 256, True, id="many points"),
        pytest.param(17_000, 0, 0, 1024, True, id="many bytes"),
        pytest.param(100_000, 100_000, 0, 256, False, id="all in a graph"),
        pytest.param(100_000, 80_000, 0, 256, False, id="a fifth not in a graph"),
        pytest.param(100_000, 79_999, 0, 256, True, id="more than a fifth not in a graph"),
        pytest.param(100_000, 100_000, 20_001, 256, True, id="more than a fifth replaced since"),
        pytest.param(1_000, 0, 999, 256, False, id="too few dead for the engine"),
        pytest.param(1_000, 0, 1_000, 256, True, id="half dead"),
        pytest.param(4_000, 0, 1_000, 256, False, id="a fifth dead"),
        pytest.param(0, 0, 5_000, 256, True, id="all dead"),
    ],
)
def test_a_collection_is_optimised_when_large_or_full_of_dead_points(
    points: int, indexed: int, removed: int, dimension: int, worth: bool
) -> None:
    assert worth_optimizing(points, indexed, removed, dimension) is worth
