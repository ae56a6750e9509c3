"""The book of leases: found by id, by path and by baseline, whatever came and went before."""

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from semindex.leasing import Lease, LeaseBook
from semindex.model.errors import NotReady, Releasing
from semindex.model.registrations import Lifecycle, Registration

PATHS = ["/a", "/b", "/c"]
NOW = datetime.now(UTC)


def registrations() -> st.SearchStrategy[Registration]:
    return st.builds(
        Registration, st.sampled_from("12345"), st.sampled_from(PATHS), st.sampled_from([None, *PATHS]), st.just(NOW)
    )


@given(st.lists(registrations() | st.sampled_from("12345")))
def test_a_lease_is_found_by_its_path_and_by_its_baseline_as_long_as_it_is_held(
    steps: list[Registration | str],
) -> None:
    book, held = LeaseBook(), dict[str, Lease]()
    for step in steps:
        if isinstance(step, str):
            if (lease := held.pop(step, None)) is not None:
                book.remove(lease)
        elif step.id not in held:
            held[step.id] = Lease(step)
            book.add(held[step.id])

        assert book.all() == [held[id_] for id_ in sorted(held)]
        for path in PATHS:
            assert book.of(path) == [lease for lease in held.values() if lease.registration.path == path]
            assert book.overlays_of(path) == [
                lease for lease in held.values() if lease.registration.baseline_path == path
            ]


def test_removing_a_lease_leaves_another_one_of_its_id_where_it_is() -> None:
    book = LeaseBook()
    former, present = (Lease(Registration("1", path, None, NOW)) for path in ("/a", "/b"))
    book.add(former)
    book.remove(former)
    book.add(present)
    book.remove(former)

    assert (book.of("/a"), book.of("/b"), book.get("1")) == ([], [present], present)


def test_a_lease_without_a_workspace_says_why_none_runs_and_one_that_ends_says_that() -> None:
    lease = Lease(Registration("one", "/a", None, NOW), idle_because="The directory was deleted.")
    with pytest.raises(NotReady, match=r"not ready for search\. The directory was deleted\."):
        lease.running()

    lease.registration = evolve(lease.registration, lifecycle=Lifecycle.RELEASING)
    with pytest.raises(Releasing, match="The registration one is being released"):
        lease.running()
