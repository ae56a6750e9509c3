"""Shows the parity table in the summary of a run that tested parity."""

import pytest

from tests.parsing.parity import Agreement, figures


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for level in ("passed", "failed") for report in terminalreporter.getreports(level)]
    if not any("tests/parsing/test_parity.py" in report.nodeid for report in reports):
        return
    terminalreporter.section("parity with the reference engine")
    terminalreporter.write_line(f"{'language':<14}" + "".join(f"{level:>15}" for level in Agreement))
    for handling, counts in figures().items():
        terminalreporter.write_line(f"{handling:<14}" + "".join(f"{counts[level]:>15}" for level in Agreement))
    totals = [sum(counts[level] for counts in figures().values()) for level in Agreement]
    terminalreporter.write_line(f"{'all':<14}" + "".join(f"{total:>15}" for total in totals))
