import pytest

pytest.register_assert_rewrite("tests.embedders.conformance")
