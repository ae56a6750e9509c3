"""Which status an error has."""

import pytest

from semindex.http.errors import status_of
from semindex.model.errors import SemindexError, Starting, Stopping


@pytest.mark.parametrize("error", [Starting(), Stopping()], ids=lambda error: error.code)
def test_a_cell_that_begins_or_ends_asks_to_be_asked_again(error: SemindexError) -> None:
    assert status_of(error) == 503
    assert "try again" in str(error)
