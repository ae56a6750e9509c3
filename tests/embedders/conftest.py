from pathlib import Path

import pytest

from tests.servers import Certificate, make_certificate

pytest.register_assert_rewrite("tests.embedders.conformance")


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """A certificate for 127.0.0.1 that no system trusts."""
    return make_certificate(tmp_path)
