"""The scenario of the qualification is passed by this checkout, with what is embedded and with servers."""

from contextlib import nullcontext

import pytest

from qualification.scenario import scenario, servers


@pytest.mark.parametrize("with_servers", [False, True], ids=["embedded", "servers"])
def test_every_step_passes(with_servers: bool) -> None:
    with servers() if with_servers else nullcontext() as urls, scenario(urls) as life:
        life.run()

    assert [outcome for outcome in life.outcomes if not outcome.passed] == []
    assert len(life.outcomes) == 12
