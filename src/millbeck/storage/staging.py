"""A batch that was checked and given offsets, and waits for the write at the end of the loop turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import Bytes

if TYPE_CHECKING:
    from millbeck.records.batch import BatchHeader
    from millbeck.records.control import EndTransaction

NO_APPEND_TIME: Final = -1


class Staged:
    """What the producer will be told, and what the log needs to write the batch.

    A duplicate holds the offsets of the batch it repeats and has nothing to write. Positional and slotted: one is made
    for every batch.
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
