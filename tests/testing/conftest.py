import pytest

pytest.register_assert_rewrite("tests.files.watching.conformance")
