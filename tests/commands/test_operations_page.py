"""docs/operations.md against what it describes."""

import re
from datetime import UTC, datetime
from pathlib import Path

from semindex.model.answers import CellPhase, CellStatus, DependencyStatus
from semindex.observe.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_page_names_every_series_and_no_other() -> None:
    now, reachable = datetime(2026, 5, 4, tzinfo=UTC), DependencyStatus(reachable=True)
    status = CellStatus(CellPhase.READY, "", now, now, "", (), 0, 0, 0, 0, 0, 0, 0, reachable, reachable, (), 0)
    kinds = re.findall(r"^# TYPE (\w+) (\w+)$", Metrics().text(status).decode(), flags=re.MULTILINE)

    assert {name for name, _ in kinds} == set(re.findall(r"`(semindex_\w+)`", PAGE))
