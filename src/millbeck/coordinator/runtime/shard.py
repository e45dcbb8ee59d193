"""A shard: the state machine that owns the keys of one partition of an internal topic.

It is built empty, replays the partition's records, is told that it is loaded, and from then on is called by nobody but
its `millbeck.coordinator.runtime.host.ShardHost`. ``replay`` is the one way hard state changes: on load, after an
append, and on a node that takes the partition over.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from millbeck.kernel.errors import ApiError

R = TypeVar("R")

NO_PRODUCER_ID = -1


class Shard(Protocol[R]):
    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """Key and value as they stand in the log; a value of None is a tombstone."""

    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """The inverse of ``encode``; None for a record type this version does not know, which is skipped.

        Raises ``DecodeError`` for bytes that are wrong."""

    def replay(self, record: R, *, offset: int, producer_id: int) -> None:
        """Apply one record. ``producer_id`` is `NO_PRODUCER_ID` unless the record is part of a transaction."""

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None: ...

    def on_loaded(self, now_ms: int) -> None:
        """Every record is replayed: start the timers."""

    def on_unloaded(self, error: ApiError) -> None:
        """Answer whatever the shard holds with ``error``; nothing is called after this."""
