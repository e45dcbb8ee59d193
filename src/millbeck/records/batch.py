"""Record batches of format 2: the 61-byte header, and batches built and taken apart.

Layout, all big-endian: base offset i64, length i32 (of what follows it), partition leader epoch i32, magic i8, CRC u32,
attributes i16, last offset delta i32, base timestamp i64, max timestamp i64, producer id i64, producer epoch i16, base
sequence i32, record count i32, records. The CRC covers everything from the attributes on, so a leader gives a batch its
offset and its epoch without touching the checksum (`prefix`, `patch`); any other change needs a new one.

Nothing here is on the broker's produce or fetch path except `read_header` and `prefix`; see `validation` for what a
leader does with a client's batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from millbeck.kernel.errors import CorruptMessage
from millbeck.records.compression import CODEC_NAMES, Codec, compress, decompress
from millbeck.records.crc import crc32c
from millbeck.records.kernels.read import read_records
from millbeck.records.kernels.record import NO_TIMESTAMP, Record
from millbeck.records.kernels.write import encode_records

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Base offset and length: what stands before the bytes that the length counts."""
PREFIX_SIZE: Final = 16
"""What a leader rewrites: base offset, length, partition leader epoch."""
CRC_POSITION: Final = 17
CRC_START: Final = 21
"""The first byte the checksum covers."""
MAGIC_POSITION: Final = 16
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

READ_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""How large a batch may become when it is decompressed for reading, unless the caller says."""

_HEADER: Final = Struct(">qiibIhiqqqhii")
_PREFIX: Final = Struct(">qii")
_PATCH: Final = Struct(">q")
_EPOCH: Final = Struct(">i")
_AFTER_CRC: Final = Struct(">hiqqqhii")
_CRC: Final = Struct(">I")
_FIRST: Final = Struct(">qi")


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader:
    """The header's fields as they stand in the batch, and what follows from them."""

    __slots__ = (
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
        """The whole batch, header included."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec of the records; `CorruptMessage` for a number that names none."""
        try:
            return Codec(self.attributes & CODEC_MASK)
        except ValueError:
            raise CorruptMessage(f"batch names codec {self.attributes & CODEC_MASK}, which does not exist") from None

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
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the batch's tombstones or marker may go; it takes the place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number; they wrap from 2^31-1 to 0. -1 when the batch has none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    def _fields(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return "BatchHeader(" + ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__) + ")"


class Batch(NamedTuple):
    """One whole batch inside a larger buffer."""

    header: BatchHeader
    position: int
    data: memoryview


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at ``position``. Its length and magic are plausible; the checksum is not looked at.

    Raises `CorruptMessage`. The records may lie outside ``buffer``: 61 bytes are enough.
    """
    if position < 0 or len(buffer) - position < HEADER_SIZE:
        raise CorruptMessage(f"{len(buffer) - position} bytes are too few for a batch header")
    header = BatchHeader(*_HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise CorruptMessage(f"batch has magic {header.magic}; only format 2 is supported")
    if header.length < LENGTH_MIN:
        raise CorruptMessage(f"batch claims a length of {header.length} bytes, less than its header")
    return header


def prefix(base_offset: int, length: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of a batch that is given an offset and a leader epoch; the rest stays as it is."""
    return _PREFIX.pack(base_offset, length, leader_epoch)


def patch(batch: bytearray | memoryview, base_offset: int, leader_epoch: int, position: int = 0) -> None:
    """Give the batch at ``position`` its offset and leader epoch in place; the checksum stays valid."""
    _PATCH.pack_into(batch, position, base_offset)
    _EPOCH.pack_into(batch, position + LOG_OVERHEAD, leader_epoch)


def checksum(batch: Buffer) -> int:
    """The CRC the batch should carry. ``batch`` is exactly one batch."""
    return crc32c(memoryview(batch)[CRC_START:])


def verify(batch: Buffer, position: int = 0) -> BatchHeader:
    """The header of the whole batch at ``position``, after checking its checksum; raises `CorruptMessage`.

    What a follower, a recovery or a scrub asks of a batch that a leader has validated before.
    """
    header = read_header(batch, position)
    end = position + header.size_bytes
    if end > len(batch):
        raise CorruptMessage(f"batch of {header.size_bytes} bytes is cut off after {len(batch) - position}")
    computed = crc32c(memoryview(batch)[position + CRC_START : end])
    if computed != header.crc:
        raise CorruptMessage(
            f"batch at offset {header.base_offset} has checksum {computed:#010x}, its header says {header.crc:#010x}"
        )
    return header


def split(buffer: Buffer, *, partial_tail: bool = False) -> Iterator[Batch]:
    """The batches that stand one after another in ``buffer``, without looking at checksums.

    With ``partial_tail`` a batch that is cut off by the end of the buffer ends the iteration, as in a fetch reply;
    without it, and for anything else that is no batch, `CorruptMessage`.
    """
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        remaining = len(view) - position
        if remaining < HEADER_SIZE and partial_tail:
            return
        header = read_header(view, position)
        if header.size_bytes > remaining:
            if partial_tail:
                return
            raise CorruptMessage(f"batch of {header.size_bytes} bytes is cut off after {remaining}")
        yield Batch(header, position, view[position : position + header.size_bytes])
        position += header.size_bytes


def size_at(buffer: Buffer, position: int = 0) -> int:
    """The size of the batch whose first 12 bytes stand at ``position``; `CorruptMessage` when impossible."""
    if len(buffer) - position < LOG_OVERHEAD:
        raise CorruptMessage(f"{len(buffer) - position} bytes are too few for a batch")
    length: int = _FIRST.unpack_from(buffer, position)[1]
    if length < LENGTH_MIN:
        raise CorruptMessage(f"batch claims a length of {length} bytes, less than its header")
    return LOG_OVERHEAD + length


def payload_of(batch: Buffer, header: BatchHeader | None = None, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
    """The records' bytes, decompressed. ``batch`` begins with a whole batch."""
    header = header or read_header(batch)
    if header.size_bytes > len(batch):
        raise CorruptMessage(f"batch of {header.size_bytes} bytes is cut off after {len(batch)}")
    data = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    codec = header.codec
    return bytes(data) if codec is Codec.NONE else decompress(codec, data, limit_bytes)


def records_of(batch: Buffer, *, check_crc: bool = True, limit_bytes: int = READ_LIMIT_BYTES) -> list[Record]:
    """The records of the batch that ``batch`` begins with, control records included.

    Raises `CorruptMessage` for a bad header or checksum, `InvalidRecord` for records or compressed data that make no
    sense, `DecompressionLimit` when they would become larger than ``limit_bytes``.
    """
    header = verify(batch) if check_crc else read_header(batch)
    append_timestamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1
    if isinstance(batch, bytes) and not header.is_compressed and header.size_bytes == len(batch):
        payload, start = batch, HEADER_SIZE
    else:
        payload, start = payload_of(batch, header, limit_bytes), 0
    return read_records(
        payload, start, header.record_count, header.base_offset, header.base_timestamp, append_timestamp
    )


def assemble(
    payload: bytes | memoryview,
    *,
    record_count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """A batch around records that are encoded, and compressed as ``attributes`` says, already."""
    covered = _AFTER_CRC.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    crc = crc32c(payload, crc32c(covered))
    head = _PREFIX.pack(base_offset, LENGTH_MIN + len(payload), partition_leader_epoch)
    return b"".join((head, b"\x02", _CRC.pack(crc), covered, payload))


def build(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    append_timestamp: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """One batch that holds ``records``.

    A record whose offset is `UNASSIGNED` takes the one after its predecessor (the first, ``base_offset``); given
    offsets rise and are not below ``base_offset``. ``append_timestamp`` makes it a LogAppendTime batch. ``last_offset``
    keeps a compacted batch's end; without records it is required.
    """
    given = records if isinstance(records, list) else list(records)
    base_timestamp = delete_horizon_ms
    if base_timestamp is None:
        base_timestamp = given[0].timestamp if given else NO_TIMESTAMP
    payload, next_offset, max_timestamp = encode_records(given, base_offset, base_timestamp)
    if last_offset is None:
        last_offset = next_offset - 1
    if last_offset < next_offset - 1 or last_offset < base_offset:
        raise ValueError(f"last offset {last_offset} does not fit {len(given)} records from {base_offset}")
    attributes = int(codec)
    attributes |= TRANSACTIONAL_BIT if is_transactional else 0
    attributes |= CONTROL_BIT if is_control else 0
    attributes |= DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0
    if append_timestamp is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = append_timestamp
    return assemble(
        payload if codec is Codec.NONE else compress(codec, payload, level),
        record_count=len(given),
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


__all__ = [
    "CODEC_NAMES",
    "HEADER_SIZE",
    "Batch",
    "BatchHeader",
    "Codec",
    "Record",
    "TimestampType",
    "assemble",
    "build",
    "checksum",
    "patch",
    "payload_of",
    "prefix",
    "read_header",
    "records_of",
    "size_at",
    "split",
    "verify",
]
