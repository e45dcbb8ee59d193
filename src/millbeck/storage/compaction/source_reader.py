"""Reader of the batches of a source file, in large chunks.

A batch is given as its chunk and its bounds there; batches that are kept unchanged are copied from the chunk in runs.
The header fields are unpacked once per batch into attributes, which stay valid until the next batch.
"""

from __future__ import annotations

from typing import Final

from millbeck.records.header import HEADER, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC
from millbeck.storage.compaction.job import SourceFile, SourceRemoved, SourceSegment, Throttle, UncleanableLog

_unpack: Final = HEADER.unpack_from


class SourceReader:
    """A cursor: `advance` moves to the next batch and sets the attributes to its header fields and position."""

    __slots__ = (
        "_file",
        "_lowest",
        "_read_bytes",
        "_throttle",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "chunk",
        "chunk_position",
        "crc",
        "end",
        "last_offset",
        "leader_epoch",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
        "source",
        "start",
    )

    def __init__(self, source: SourceSegment, file: SourceFile, read_bytes: int, throttle: Throttle) -> None:
        self.source = source
        self._file = file
        self._read_bytes = max(read_bytes, HEADER_SIZE)
        self._throttle = throttle
        self._lowest = source.base_offset
        self.chunk = b""
        """The chunk read last; `start` and `end` are the bounds of the batch in it."""
        self.chunk_position = 0
        self.start = 0
        self.end = 0
        self.position = 0
        """Position of the batch in the file."""
        self.size = 0
        self.base_offset = -1
        self.last_offset = source.base_offset - 1
        self.leader_epoch = -1
        self.crc = 0
        self.attributes = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        self.record_count = 0

    def advance(self) -> bool:
        """Go to the next batch; False at the end. Raises `UncleanableLog`, `SourceRemoved` or OSError."""
        position = self.position + self.size
        source = self.source
        remaining = source.size - position
        if remaining <= 0:
            return False
        at = position - self.chunk_position
        if remaining < HEADER_SIZE:
            raise UncleanableLog(source.path, position, f"{remaining} bytes are too few for a batch")
        if at + HEADER_SIZE > len(self.chunk):
            self._fill(position, HEADER_SIZE)
            at = 0
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            crc,
            attributes,
            delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = _unpack(self.chunk, at)
        size = LOG_OVERHEAD + length
        if magic != MAGIC or length < LENGTH_MIN or size > remaining or delta < 0 or record_count < 0:
            raise UncleanableLog(source.path, position, "no valid batch header")
        last_offset = base_offset + delta
        if base_offset < self._lowest or last_offset >= source.next_base_offset:
            reason = f"offsets {base_offset} to {last_offset} overlap those of a neighbouring batch or segment"
            raise UncleanableLog(source.path, position, reason)
        if at + size > len(self.chunk):
            self._fill(position, size)
            at = 0
        self._lowest = last_offset + 1
        self.position = position
        self.size = size
        self.start = at
        self.end = at + size
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.crc = crc
        self.attributes = attributes
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count
        return True

    def _fill(self, position: int, size: int) -> None:
        wanted = min(max(size, self._read_bytes), self.source.size - position)
        self._throttle(wanted)
        chunk = self._file.read(wanted, position)
        if len(chunk) < wanted:
            raise SourceRemoved(f"{self.source.path} ends before position {position + wanted}")
        self.chunk = chunk
        self.chunk_position = position
