"""A batch that was validated and has its offsets, and waits for the write at the end of the event batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import Bytes

if TYPE_CHECKING:
    from millbeck.records.batch import BatchHeader
    from millbeck.records.control import EndTransaction

NO_APPEND_TIME: Final = -1


class Staged:
    """The result of staging a batch: the fields that the producer's response and the log's write need.

    A duplicate has the offsets of the batch it repeats and nothing to write. Positional arguments and slots, since one
    is created for every batch.
    """

    __slots__ = (
        "append_time_ms",
        "buffers",
        "first_offset",
        "header",
        "is_duplicate",
        "last_offset",
        "leader_epoch",
        "marker",
        "max_timestamp",
        "size_bytes",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        append_time_ms: int,
        is_duplicate: bool,
        buffers: tuple[Bytes, ...],
        size_bytes: int,
        max_timestamp: int,
        leader_epoch: int,
        marker: EndTransaction | None,
        header: BatchHeader,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.is_duplicate = is_duplicate
        self.buffers = buffers
        self.size_bytes = size_bytes
        self.max_timestamp = max_timestamp
        self.leader_epoch = leader_epoch
        self.marker = marker
        self.header = header
