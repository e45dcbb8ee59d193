"""The result of reading one partition for a fetch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from millbeck.kernel.environment import FileSlice, Part
from millbeck.replication.log_read import LogRead
from millbeck.server.fetch.sessions import CachedPartition
from millbeck.server.local_topics import LocalTopic
from millbeck.wire.fast_fetch import PartitionResult
from millbeck.wire.messages.fetch import AbortedTransaction, EpochEndOffset
from millbeck.wire.messages.shared import LeaderIdAndEpoch

NOTHING: Final = LogRead(-1, -1)
"""The offset fields of a partition that could not be read."""


class PartitionRead:
    """What a fetch reads from one partition: the log slice with its records, later the records themselves, and the
    response fields that go with them."""

    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "error_code",
        "info",
        "preferred_read_replica",
        "records",
        "records_size",
        "slice",
        "topic",
        "wanted",
    )

    def __init__(self, wanted: CachedPartition, topic: LocalTopic | None, info: LogRead, error_code: int = 0) -> None:
        self.wanted = wanted
        self.topic = topic
        self.info = info
        self.error_code = error_code
        self.slice: FileSlice | None = info.slice
        self.records: Sequence[Part] = ()
        self.records_size = 0
        self.aborted_transactions: list[AbortedTransaction] | None = None
        self.preferred_read_replica = -1
        self.current_leader: LeaderIdAndEpoch | None = None

    def result(self) -> PartitionResult:
        info = self.info
        diverging = info.diverging_epoch
        return PartitionResult(
            self.wanted.partition_index,
            self.error_code,
            info.high_watermark,
            info.last_stable_offset,
            info.log_start_offset,
            self.records_size,
            self.records,
            self.aborted_transactions,
            self.preferred_read_replica,
            None if diverging is None else EpochEndOffset(diverging.epoch, diverging.end_offset),
            self.current_leader,
        )

    def fail(self, error_code: int) -> None:
        """Replace the result by an error."""
        self.error_code = error_code
        self.info = NOTHING
        self.slice = self.aborted_transactions = None

    def drop_records(self) -> None:
        """Leave out the records, because the response has no room for them."""
        self.slice = None
        if self.aborted_transactions:
            self.aborted_transactions = []

    @property
    def is_size_limited(self) -> bool:
        """Whether there is data that only the size limits of the request left out."""
        return (
            self.slice is None
            and self.info.diverging_epoch is None
            and self.preferred_read_replica < 0
            and self.wanted.fetch_offset < self.info.end_offset
        )

    @property
    def must_respond(self) -> bool:
        """Whether the result completes the fetch without waiting for data."""
        return self.error_code != 0 or self.info.diverging_epoch is not None or self.preferred_read_replica >= 0

    @property
    def is_changed(self) -> bool:
        """Whether the result differs from the values last sent to the client of the session."""
        wanted, info = self.wanted, self.info
        return (
            self.slice is not None
            or self.records_size > 0
            or self.error_code != 0
            or info.diverging_epoch is not None
            or self.preferred_read_replica >= 0
            or wanted.last_sent_high_watermark != info.high_watermark
            or wanted.last_sent_log_start_offset != info.log_start_offset
        )


def release_unsent(found: Iterable[PartitionRead]) -> None:
    """Release the slices of results that are not sent."""
    for outcome in found:
        if outcome.slice is not None:
            outcome.slice.release()
