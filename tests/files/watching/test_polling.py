"""Where nothing can be watched."""

import sys

import pytest
import trio
import trio.testing

from semindex.files.watching.inotify import InotifySource
from semindex.files.watching.polling import Pace, PollingSource
from semindex.files.watching.source import open_event_source
from tests.files.watching.conformance import RESCAN


async def test_a_tree_that_is_polled_is_compared_the_less_often_the_larger_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with PollingSource(Pace(poll=2.0, poll_per_directory=0.005)).watch("/tree") as watch:
        assert not await watch.follow(["", "a"])
        assert watch.trouble == "This platform's file events are not used; the tree is compared every 2 seconds."
        for due in (2.0, 4.0):
            assert await watch.changes() == RESCAN
            assert trio.current_time() == pytest.approx(due)

        assert not await watch.follow([str(number) for number in range(1000)])
        assert "every 5 seconds" in watch.trouble
        assert await watch.changes() == RESCAN
        assert trio.current_time() == pytest.approx(9.0)


@pytest.mark.parametrize(("platform", "kind"), [("linux", InotifySource), ("darwin", PollingSource)])
async def test_linux_is_watched_and_other_platforms_are_polled(
    platform: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)

    async with open_event_source() as source:
        assert isinstance(source, kind)
