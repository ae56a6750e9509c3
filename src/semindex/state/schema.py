"""The tables of the cell's two databases, and the steps by which an older file becomes a present one.

A step that was released is never changed: a new one is added after it.
"""

from attrs import frozen


@frozen
class Schema:
    """What one kind of database looks like."""

    application_id: int
    """Written into the file's header: no other kind of database is ever taken for this one."""
    migrations: tuple[tuple[str, ...], ...]
    """The statements that lead from version n to version n + 1; a new file takes all steps."""
    page_size: int = 4096
    """Bytes; decides only how a new file is made."""
    checked: bool = True
    """Whether the whole file is checked when it is opened, which reads all of it."""

    @property
    def version(self) -> int:
        """Return the version of a file that has taken all steps."""
        return len(self.migrations)


CELL = Schema(
    application_id=int.from_bytes(b"smix"),
    migrations=(
        (
            "CREATE TABLE cell (id TEXT NOT NULL, created_at TEXT NOT NULL)",
            """CREATE TABLE registrations (
                id TEXT PRIMARY KEY,
                path TEXT NOT NULL,
                baseline_path TEXT,
                created_at TEXT NOT NULL,
                lifecycle TEXT NOT NULL,
                purge_on_release INTEGER,
                project_id TEXT,
                workspace_id TEXT,
                purge INTEGER
            )""",
            """CREATE TABLE retained (
                path TEXT PRIMARY KEY,
                baseline_path TEXT,
                since TEXT NOT NULL,
                ttl INTEGER
            )""",
            # An operation outlives its registration, so it does not refer to it.
            """CREATE TABLE operations (
                id TEXT PRIMARY KEY,
                registration_id TEXT NOT NULL,
                kind TEXT NOT NULL,
                started_at TEXT NOT NULL,
                state TEXT NOT NULL,
                completed_at TEXT,
                error TEXT
            )""",
            """CREATE TABLE tokens (
                id TEXT PRIMARY KEY,
                registration_id TEXT NOT NULL REFERENCES registrations (id) ON DELETE CASCADE,
                digest BLOB NOT NULL UNIQUE,
                label TEXT NOT NULL,
                created_at TEXT NOT NULL
            )""",
            "CREATE INDEX tokens_by_registration ON tokens (registration_id)",
            # A ledger without a path is being deleted, slice by slice.
            "CREATE TABLE ledgers (id INTEGER PRIMARY KEY, path TEXT UNIQUE)",
            # Names and reasons are bytes (UTF-8, lone surrogates passed through): a file system may hold any name.
            # The signature is text: some file systems have inode numbers and times beyond 64 bits with sign.
            """CREATE TABLE files (
                ledger INTEGER NOT NULL REFERENCES ledgers (id),
                path BLOB NOT NULL,
                state TEXT NOT NULL,
                file_hash TEXT,
                signature TEXT,
                chunks INTEGER NOT NULL,
                chunking TEXT NOT NULL,
                dirty INTEGER NOT NULL,
                inherited INTEGER NOT NULL,
                reason BLOB,
                PRIMARY KEY (ledger, path)
            ) WITHOUT ROWID""",
        ),
        # Text: a file system may have a number beyond 63 bits.
        ("ALTER TABLE registrations ADD COLUMN device TEXT",),
    ),
)
"""Registrations, ledgers, operations: what must survive."""

EMBEDDINGS = Schema(
    application_id=int.from_bytes(b"smiv"),
    migrations=(
        (
            "CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
            # Apart from the vectors, so that noting a use rewrites a small row only.
            """CREATE TABLE entries (
                id INTEGER PRIMARY KEY,
                space INTEGER NOT NULL REFERENCES spaces (id),
                digest BLOB NOT NULL,
                used INTEGER NOT NULL,
                UNIQUE (space, digest)
            )""",
            "CREATE INDEX entries_by_use ON entries (used)",
            """CREATE TABLE vectors (
                id INTEGER PRIMARY KEY REFERENCES entries (id) ON DELETE CASCADE,
                checksum BLOB NOT NULL,
                vector BLOB NOT NULL
            )""",
        ),
    ),
    page_size=16384,  # 15 vectors of 256 components, 5 of 768 or 1 of 3072 fill a page with little waste
    checked=False,  # gigabytes; every row carries a checksum
)
"""Vectors by content: may be lost."""
