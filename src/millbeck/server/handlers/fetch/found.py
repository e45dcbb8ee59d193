"""What one partition has for the reply of a fetch."""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.kernel.environment import FileSlice
from millbeck.server.fetch_sessions import Wanted
from millbeck.server.topics import LocalTopic
from millbeck.wire.fast_fetch import PartitionResult


class Found:
    """What one partition has for the reply: a finished result, and the slice its records are still in.

    ``end_offset`` is where this reader has to stop, -1 when that is not known.
    """

    __slots__ = ("end_offset", "result", "slice", "topic", "wanted")

    def __init__(
        self,
        wanted: Wanted,
        result: PartitionResult,
        topic: LocalTopic | None,
        end_offset: int,
        slice_: FileSlice | None,
    ) -> None:
        self.wanted = wanted
        self.result = result
        self.topic = topic
        self.end_offset = end_offset
        self.slice = slice_

    def leave_out(self) -> None:
        """Its records had no room in this reply."""
        self.slice = None
        if self.result.aborted_transactions:
            self.result.aborted_transactions = []

    @property
    def is_cut_short(self) -> bool:
        """There is data, and only the limits of the request kept it out."""
        return (
            self.slice is None
            and self.result.diverging_epoch is None
            and self.result.preferred_read_replica < 0
            and self.wanted.fetch_offset < self.end_offset
        )

    @property
    def needs_answer(self) -> bool:
        """Something that does not wait for data."""
        result = self.result
        return result.error_code != 0 or result.diverging_epoch is not None or result.preferred_read_replica >= 0

    @property
    def is_news(self) -> bool:
        """Something that the client of a session has not been told."""
        wanted, result = self.wanted, self.result
        return (
            self.slice is not None
            or result.records_size > 0
            or result.error_code != 0
            or result.diverging_epoch is not None
            or result.preferred_read_replica >= 0
            or wanted.told_high_watermark != result.high_watermark
            or wanted.told_log_start_offset != result.log_start_offset
        )


def give_back(found: Iterable[Found]) -> None:
    """Nothing of this is sent after all."""
    for outcome in found:
        if outcome.slice is not None:
            outcome.slice.release()
