"""What a registration, an operation and a token may be made of."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from semindex.model.errors import InvalidInput
from semindex.model.registrations import Registration, Retained, TokenRecord, token_digest

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def registration(name: str = "a", path: str = "/repo", project_id: str | None = None) -> Registration:
    return Registration(name, path, None, NOON, project_id=project_id)


@pytest.mark.parametrize("name", ["a", "0", "agent-7:worktree_2.b", "x" * 128])
def test_an_id_of_plain_characters_is_accepted(name: str) -> None:
    assert registration(name).id == name


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "a/b", "ä", "a\n", "\na", "a\0", "%41", "\ud800"])
def test_any_other_id_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 128 characters"):
        registration(name)


@pytest.mark.parametrize(("field", "value"), [("path", "/not-utf-8-\udce9"), ("project_id", "\ud800")])
def test_a_text_that_is_not_unicode_is_refused_by_name(field: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"The {field.replace('_', ' ')} cannot be written"):
        registration(**{field: value})


def test_times_are_kept_in_utc() -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))

    assert Registration("a", "/repo", None, tokyo).created_at.tzinfo is UTC
    assert Retained("/repo", None, tokyo) == Retained("/repo", None, NOON)


def test_a_time_without_a_zone_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        Retained("/repo", None, NOON.replace(tzinfo=None))


def test_a_token_is_known_by_its_digest_which_no_log_shows() -> None:
    digest = token_digest("a secret")
    record = TokenRecord("1", "a", digest, "label", NOON)

    assert len(digest) == 32
    assert digest != token_digest("another secret")
    assert repr(digest) not in repr(record)


def test_any_text_that_a_client_sends_as_a_token_has_a_digest() -> None:
    assert token_digest("\ud800") != token_digest("?")
