"""A shard: the state machine that owns the keys of one partition of an internal topic.

It is created empty, replays the partition's records, is notified that it is loaded, and is then called only by its
`ShardRunner`. Only ``replay`` changes hard state: on load, after an append, and on a node that takes the partition
over.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from millbeck.kernel.errors import ApiError

R = TypeVar("R")

NO_PRODUCER_ID = -1


class Shard(Protocol[R]):
    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """Serialize the record; a value of None is a tombstone."""

    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """Deserialize a record; None for an unknown record type, which is skipped.

        Raises ``DecodeError`` for malformed bytes.
        """

    def replay(self, record: R, *, offset: int, producer_id: int) -> None:
        """Apply one record. ``producer_id`` is `NO_PRODUCER_ID` unless the record is part of a transaction."""

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None: ...

    def on_loaded(self, now_ms: int) -> None:
        """Start the timers: every record is replayed."""

    def on_unloaded(self, error: ApiError) -> None:
        """Complete all pending requests with ``error``; the shard is not called after this."""
