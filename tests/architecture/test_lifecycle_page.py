"""docs/lifecycle.md names the test that shows each promise: every name must be that of a test."""

import ast
import re

from tests.architecture.checkout import ROOT

PAGE = ROOT / "docs" / "lifecycle.md"


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE.read_text())
    assert len(named) > 20
    for file, test in named:
        functions = {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert not test or test in functions, f"{file} has no {test}"
