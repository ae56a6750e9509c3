"""The parts of Qdrant's REST requests and answers that its double reads and writes."""

import uuid
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def checked_id(point: object) -> str:
    """Return a point's id. Raises Refusal."""
    try:
        return str(uuid.UUID(str(point)))
    except ValueError:
        raise Refusal(400, f"Format error in JSON body: {point} is not a valid point ID") from None


def fields_of(selector: object) -> Any:
    """Return what the engine takes for a payload selector: field names, or whether to return all of it."""
    if isinstance(selector, dict):
        return selector["include"]
    return selector if isinstance(selector, list) else bool(selector)


def keys_of(matching: Mapping[str, Any]) -> Iterator[str]:
    """Yield every payload key that a filter looks at."""
    for clause in ("must", "should", "must_not"):
        for condition in matching.get(clause) or ():
            if "key" in condition:
                yield condition["key"]
            else:
                yield from keys_of(condition)


def rows_of(blob: bytes, count: int) -> Iterator[list[float]]:
    """Yield the vectors of so many points, stored as one run of 32-bit floats."""
    floats = array("f", blob)
    size = len(floats) // max(count, 1)
    for number in range(count):
        yield floats[number * size : (number + 1) * size].tolist()


def record_of(found: Json, vector: list[float], body: Json, *, with_payload: bool) -> Json:
    """Return a point as it was asked for."""
    record: Json = {"id": found["id"]}
    if body.get("with_payload", with_payload):
        record["payload"] = found["payload"]
    if body.get("with_vector"):
        record["vector"] = vector
    return record
