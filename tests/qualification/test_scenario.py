"""The scenario of the qualification is passed by this checkout."""

from qualification.scenario import scenario


def test_every_step_passes() -> None:
    with scenario() as life:
        life.run()

    assert [outcome for outcome in life.outcomes if not outcome.passed] == []
    assert len(life.outcomes) == 12
