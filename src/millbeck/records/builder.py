"""`BatchBuilder`: a producer's open batch, filled record by record until it is full or ``linger.ms`` has passed.

When all records are at hand, use `batch.build`.
"""

from __future__ import annotations

from millbeck.records.batch import (
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    Codec,
    assemble,
)
from millbeck.records.compression import compress
from millbeck.records.native.record import Header
from millbeck.records.native.write import PayloadWriter


class EncodedBatchBuilder:
    """A batch whose records are encoded already, all with one timestamp; `build` may be called again with other
    producer fields."""

    __slots__ = ("_codec", "_compressed", "_level", "_payload", "_timestamp", "record_count")

    def __init__(self, payload: bytes, record_count: int, timestamp: int, codec: Codec, level: int | None) -> None:
        self.record_count = record_count
        self._payload = payload
        self._timestamp = timestamp
        self._codec = codec
        self._level = level
        self._compressed: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """The batch's size before compression."""
        return HEADER_SIZE + len(self._payload)

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> bytes:
        """The batch to be produced."""
        if self._compressed is None:
            self._compressed = compress(self._codec, self._payload, self._level)
        return assemble(
            self._compressed,
            record_count=self.record_count,
            last_offset_delta=self.record_count - 1,
            base_timestamp=self._timestamp,
            max_timestamp=self._timestamp,
            attributes=self._codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )


class BatchBuilder:
    """A batch of records with offsets 0, 1, 2, ...; `build` may be called again with other producer fields."""

    __slots__ = ("_codec", "_compressed", "_level", "_writer")

    def __init__(self, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        self._codec = codec
        self._level = level
        self._writer = PayloadWriter()
        self._compressed: bytes | None = None

    @property
    def record_count(self) -> int:
        return self._writer.record_count

    @property
    def size_bytes(self) -> int:
        """The batch's size before compression."""
        return HEADER_SIZE + self._writer.size_bytes

    def size_with(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()
    ) -> int:
        """`size_bytes` as it would be after `append` of this record."""
        return HEADER_SIZE + self._writer.size_with(timestamp, key, value, headers)

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()) -> int:
        """Append a record; returns the batch's size before compression."""
        writer = self._writer
        writer.append(timestamp, key, value, headers)
        self._compressed = None
        return HEADER_SIZE + writer.size_bytes

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> bytes:
        """The batch to be produced; it needs at least one record."""
        writer = self._writer
        if writer.record_count == 0:
            raise ValueError("a produced batch needs a record")
        if self._compressed is None:
            self._compressed = compress(self._codec, writer.payload(), self._level)
        return assemble(
            self._compressed,
            record_count=writer.record_count,
            last_offset_delta=writer.record_count - 1,
            base_timestamp=writer.base_timestamp,
            max_timestamp=writer.max_timestamp,
            attributes=self._codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
