"""Building, verifying and decoding of record batches; `header` has their layout.

None of this is on the broker's produce or fetch path; see `validation` for the leader's checks of a client's batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from millbeck.kernel.errors import CorruptMessage
from millbeck.records.compression import Codec, compress, decompress
from millbeck.records.crc import crc32c
from millbeck.records.header import (
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PREFIX_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    TimestampType,
    patch,
    prefix,
    read_header,
)
from millbeck.records.native import COMPILED
from millbeck.records.native.read import read_records
from millbeck.records.native.record import NO_TIMESTAMP, NOWHERE, RecordSource
from millbeck.records.native.write import encode_records
from millbeck.records.record import Record

if TYPE_CHECKING:
    from millbeck.records.native.record import Record as NativeRecord

if not COMPILED:
    from millbeck.records.uniform import read_records

__all__ = [
    "CONTROL_BIT",
    "CRC_START",
    "DELETE_HORIZON_BIT",
    "HEADER_SIZE",
    "LENGTH_MIN",
    "LOG_APPEND_TIME_BIT",
    "LOG_OVERHEAD",
    "MAGIC",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "PREFIX_SIZE",
    "READ_LIMIT_BYTES",
    "TRANSACTIONAL_BIT",
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

READ_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""Default limit for the decompressed size of a batch that is read."""

_AFTER_CRC: Final = Struct(">hiqqqhii")
_CRC: Final = Struct(">I")
_FIRST: Final = Struct(">qi")


class Batch(NamedTuple):
    """One whole batch in a larger buffer."""

    header: BatchHeader
    position: int
    data: memoryview


def checksum(batch: Buffer) -> int:
    """The computed CRC of ``batch``, which is exactly one batch."""
    return crc32c(memoryview(batch)[CRC_START:])


def verify(batch: Buffer, position: int = 0) -> BatchHeader:
    """Verify the checksum of the whole batch at ``position`` and return its header. Raises `CorruptMessage`.

    For followers, recovery and the scrub, which read batches that a leader has validated before.
    """
    header = read_header(batch, position)
    end = position + header.size_bytes
    if end > len(batch):
        raise CorruptMessage(f"batch of {header.size_bytes} bytes is truncated after {len(batch) - position} bytes")
    computed = crc32c(memoryview(batch)[position + CRC_START : end])
    if computed != header.crc:
        raise CorruptMessage(
            f"batch at offset {header.base_offset} has checksum {computed:#010x}, its header says {header.crc:#010x}"
        )
    return header


def split(buffer: Buffer, *, partial_tail: bool = False) -> Iterator[Batch]:
    """The consecutive batches in ``buffer``, without checking checksums.

    With ``partial_tail`` a last batch that is truncated ends the iteration, as in a fetch response; otherwise it
    raises `CorruptMessage`, as any malformed batch does.
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
            raise CorruptMessage(f"batch of {header.size_bytes} bytes is truncated after {remaining} bytes")
        yield Batch(header, position, view[position : position + header.size_bytes])
        position += header.size_bytes


def size_at(buffer: Buffer, position: int = 0) -> int:
    """The size of the batch at ``position``, from its first 12 bytes. Raises `CorruptMessage` when it is
    impossible.
    """
    if len(buffer) - position < LOG_OVERHEAD:
        raise CorruptMessage(f"{len(buffer) - position} bytes are too few for a batch")
    length: int = _FIRST.unpack_from(buffer, position)[1]
    if length < LENGTH_MIN:
        raise CorruptMessage(f"batch has a length field of {length} bytes, less than its header")
    return LOG_OVERHEAD + length


def payload_of(batch: Buffer, header: BatchHeader | None = None, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
    """The decompressed bytes of the records. ``batch`` begins with a whole batch."""
    header = header or read_header(batch)
    if header.size_bytes > len(batch):
        raise CorruptMessage(f"batch of {header.size_bytes} bytes is truncated after {len(batch)} bytes")
    data = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    codec = header.codec
    return bytes(data) if codec is Codec.NONE else decompress(codec, data, limit_bytes)


def records_of(
    batch: Buffer, *, check_crc: bool = True, limit_bytes: int = READ_LIMIT_BYTES, source: RecordSource = NOWHERE
) -> list[Record]:
    """The records of the batch at the beginning of ``batch``, control records included.

    Raises `CorruptMessage` for a bad header or checksum, `InvalidRecord` for malformed records or compressed data,
    `DecompressionLimit` when they would become larger than ``limit_bytes``.
    """
    header = verify(batch) if check_crc else read_header(batch)
    append_timestamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1
    if isinstance(batch, bytes) and not header.is_compressed and header.size_bytes == len(batch):
        payload, start = batch, HEADER_SIZE
    else:
        payload, start = payload_of(batch, header, limit_bytes), 0
    records = read_records(
        payload, start, header.record_count, header.base_offset, header.base_timestamp, append_timestamp, source
    )
    return cast("list[Record]", records)


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
    """Build a batch from encoded records, which are already compressed as ``attributes`` says."""
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
    head = prefix(base_offset, LENGTH_MIN + len(payload), partition_leader_epoch)
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
    """Build one batch from ``records``.

    A record whose offset is `UNASSIGNED` gets the next offset (the first one, ``base_offset``); given offsets must
    ascend and be at least ``base_offset``. ``append_timestamp`` makes it a LogAppendTime batch. ``last_offset``
    preserves the end of a compacted batch; without records it is required.
    """
    given = records if isinstance(records, list) else list(records)
    base_timestamp = delete_horizon_ms
    if base_timestamp is None:
        base_timestamp = given[0].timestamp if given else NO_TIMESTAMP
    payload, next_offset, max_timestamp = encode_records(cast("list[NativeRecord]", given), base_offset, base_timestamp)
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
