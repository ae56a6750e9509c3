"""How the model's values are written into columns, for the tables that hold one value a row."""

from datetime import UTC, datetime


def to_text(time: datetime) -> str:
    """Return a time as text that sorts as the times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def to_time(text: str) -> datetime:
    """Return the time that :func:`to_text` wrote."""
    return datetime.fromisoformat(text)


def to_flag(value: int | None) -> bool | None:
    """Return a truth value that may be unknown."""
    return None if value is None else bool(value)


def upsert(table: str, key: str, *columns: str) -> str:
    """Return a statement that inserts a row or changes the one with its key.

    To replace the row would delete it first, and with it what refers to it.
    """
    names = ", ".join((key, *columns))
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    marks = ", ".join("?" * (1 + len(columns)))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes}"
