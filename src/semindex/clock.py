"""The time of day, for people to read; deadlines and durations go by the event loop's clock."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time of now, aware and in UTC."""
    return datetime.now(UTC)
