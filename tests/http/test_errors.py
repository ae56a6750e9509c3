"""Which status an error has, and what of several errors is told and what is logged."""

import pytest

from semindex.http.errors import RequestError, refusal_of, status_of
from semindex.model.errors import NotReady, SemindexError, Starting, Stopping


@pytest.mark.parametrize("error", [Starting(), Stopping()], ids=lambda error: error.code)
def test_a_cell_that_begins_or_ends_asks_to_be_asked_again(error: SemindexError) -> None:
    assert status_of(error) == 503
    assert "try again" in str(error)


@pytest.mark.parametrize("wanted", [NotReady("Wait a moment."), RequestError(503, "not_ready", "Wait a moment.")])
def test_an_unexpected_error_is_logged_although_another_is_told(
    wanted: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    stray, deeper = ZeroDivisionError("one"), KeyError("another")
    refusal = refusal_of(ExceptionGroup("", [stray, wanted, ExceptionGroup("", [deeper])]), "GET /v1/status")

    assert (refusal.status, refusal.body) == (503, {"error": "Wait a moment.", "code": "not_ready"})
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [stray, deeper]


def test_an_unexpected_error_is_told_by_nothing_but_its_place_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusal = refusal_of(ExceptionGroup("", [ValueError("a secret"), KeyError("another")]), "GET /v1/status")

    assert (refusal.status, refusal.body["code"]) == (500, "internal")
    assert "secret" not in str(refusal)
    for record in caplog.records:
        assert record.exc_info is not None
        assert record.getMessage().split()[1] in str(refusal)
    assert len(caplog.records) == 2
