"""Who goes first, in every queue of the cell."""

from enum import IntEnum


class Priority(IntEnum):
    """Whose turn it is, everywhere in the cell: a lower value goes first."""

    QUERY = 0
    EDIT = 1
    BACKFILL = 2
