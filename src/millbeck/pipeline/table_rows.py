"""The rows of a table, the last value of each key of a topic, in an SQLite file that processes of one machine share.

Rows are kept by key and partition. A key is in several partitions only if its topic was given more partitions, or by a
partitioner that does not go by key; then the value with the newest timestamp counts. A tombstone is a row without a
value; it is kept while it hides a row of another partition.

`transaction` gives one process at a time the right to write; what it writes is there for others when it ends, or not
at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

_WAIT_SECONDS: Final = 3600.0
"""The time that another process may take to read a whole topic."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS rows (
    key BLOB, partition INTEGER, value BLOB, timestamp INTEGER, offset INTEGER, PRIMARY KEY (key, partition)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tombstones ON rows (key) WHERE value IS NULL;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
"""
_PUT: Final = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)"
_FIND: Final = "SELECT value, partition, offset FROM rows WHERE key = ? ORDER BY timestamp DESC, partition DESC LIMIT 1"
_PURGE: Final = (
    "DELETE FROM rows WHERE value IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM rows AS other WHERE other.key = rows.key AND other.partition <> rows.partition)"
)


class TableRecord(NamedTuple):
    """A record of the topic, in the order of the columns; a null value deletes the key."""

    key: bytes
    partition: int
    value: bytes | None
    timestamp: int
    offset: int


class FoundRow(NamedTuple):
    value: bytes
    partition: int
    offset: int


class TableRows:
    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        # What a crash of the machine destroys is read again from the topic.
        for setting in ("journal_mode=WAL", "synchronous=OFF", "cache_size=-65536", "mmap_size=1073741824"):
            self._database.execute(f"PRAGMA {setting}").fetchall()
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold off the other processes; keep what is written, unless the block raises."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def state(self, name: str) -> Any:
        """A value that was put, None if there is none."""
        found = self._database.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if found is None else json.loads(found[0])

    def put_state(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, json.dumps(value)))

    def clear(self) -> None:
        self._database.execute("DELETE FROM rows")
        self._database.execute("DELETE FROM state")

    def put(self, records: Iterable[TableRecord]) -> None:
        """Add records, those of a partition in the order of the log."""
        self._database.executemany(_PUT, records)

    def purge(self) -> None:
        """Remove the tombstones that hide nothing, once the records of all partitions are there."""
        self._database.execute(_PURGE)

    def find(self, keys: Iterable[bytes]) -> dict[bytes, FoundRow]:
        """The rows of these keys, without those that are not there."""
        found: dict[bytes, FoundRow] = {}
        for key in keys:
            row = self._database.execute(_FIND, (key,)).fetchone()
            if row is not None and row[0] is not None:
                found[key] = FoundRow(*row)
        return found
