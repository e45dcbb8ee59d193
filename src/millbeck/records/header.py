"""The 61-byte header of a record batch of format 2: decoding, and assignment of its offset.

Layout, all big-endian: base offset i64, length i32 (of what follows it), partition leader epoch i32, magic i8, CRC
u32, attributes i16, last offset delta i32, base timestamp i64, max timestamp i64, producer id i64, producer epoch i16,
base sequence i32, record count i32, records. The CRC covers everything from the attributes on, so a leader assigns the
offset and epoch without changing the checksum (`prefix`, `patch`); any other change needs a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final

from millbeck.kernel.errors import CorruptMessage
from millbeck.records.compression import Codec

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Size of base offset and length, which the length field does not count."""
PREFIX_SIZE: Final = 16
"""Size of the fields that a leader rewrites: base offset, length, partition leader epoch."""
CRC_START: Final = 21
"""Position of the first byte covered by the checksum."""
MAGIC_POSITION: Final = 16
ATTRIBUTES_LOW_BYTE: Final = 22
"""Position of the byte with the codec and the flags."""
MAGIC: Final = 2
LENGTH_MIN: Final = HEADER_SIZE - LOG_OVERHEAD

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

HEADER: Final = Struct(">qiibIhiqqqhii")
_unpack: Final = HEADER.unpack_from
_PREFIX: Final = Struct(">qii")
_OFFSET: Final = Struct(">q")
_EPOCH: Final = Struct(">i")


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_FIELDS: Final = (
    "attributes",
    "base_offset",
    "base_sequence",
    "base_timestamp",
    "crc",
    "last_offset_delta",
    "length",
    "magic",
    "max_timestamp",
    "partition_leader_epoch",
    "producer_epoch",
    "producer_id",
    "record_count",
)


class BatchHeader:
    """The fields of a batch header, and values derived from them."""

    __slots__ = _FIELDS

    def __init__(
        self,
        base_offset: int,
        length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.length = length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch, header included."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec of the records. Raises `CorruptMessage` for an unknown number."""
        try:
            return Codec(self.attributes & CODEC_MASK)
        except ValueError:
            raise CorruptMessage(f"batch has the unknown codec {self.attributes & CODEC_MASK}") from None

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time at which the batch's tombstones or marker may be removed; stored in place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, wrapping from 2^31-1 to 0; -1 when the batch has none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    def _fields(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return "BatchHeader(" + ", ".join(f"{name}={getattr(self, name)}" for name in _FIELDS) + ")"


def unpack_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Decode a header without any check; 61 bytes must be available."""
    # Unpacked one by one: compiled, a call with a starred tuple takes three times as long as a plain one.
    (
        base_offset,
        length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = _unpack(buffer, position)
    return BatchHeader(
        base_offset,
        length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Decode the header at ``position`` and check its length and magic, but not the checksum.

    Raises `CorruptMessage`. The records need not be in ``buffer``: 61 bytes are enough.
    """
    if position < 0 or len(buffer) - position < HEADER_SIZE:
        raise CorruptMessage(f"{len(buffer) - position} bytes are too few for a batch header")
    header = unpack_header(buffer, position)
    if header.magic != MAGIC:
        raise CorruptMessage(f"batch has magic {header.magic}; only format 2 is supported")
    if header.length < LENGTH_MIN:
        raise CorruptMessage(f"batch has a length of {header.length} bytes, less than its header")
    return header


prefix: Final[Callable[[int, int, int], bytes]] = _PREFIX.pack
"""``(base_offset, length, leader_epoch)``: the new first 16 bytes of a batch that is assigned an offset and a leader
epoch; the rest is unchanged."""


def patch(batch: bytearray | memoryview, base_offset: int, leader_epoch: int, position: int = 0) -> None:
    """Write the offset and leader epoch into the batch at ``position``, in place; the checksum stays valid."""
    _OFFSET.pack_into(batch, position, base_offset)
    _EPOCH.pack_into(batch, position + LOG_OVERHEAD, leader_epoch)
