"""Validation of a produced batch by the leader, before it gets an offset.

`validate` is a pure function of immutable arguments, so a large batch may be validated on a worker thread. The usual
batch (nothing to decompress, nothing to rewrite) costs a header, a checksum and one pass of `walk`, and is returned
unchanged. A batch is rebuilt when the topic uses LogAppendTime, when it stores another codec than the producer used,
or when the header's largest timestamp is not the records'.

Order of the checks: shape and format (`InvalidRecord`, `CorruptMessage`), codec (`UnsupportedCompressionType`), size
(`MessageTooLarge`), checksum (`CorruptMessage`), header fields (`InvalidRecord`), the records themselves
(`InvalidRecord`), and at last the topic's rules about keys, timestamps and schemas, whose errors list the rejected
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordError,
    UnsupportedCompressionType,
)
from millbeck.records.batch import assemble
from millbeck.records.compression import Codec, compress, decompress
from millbeck.records.crc import crc32c
from millbeck.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    read_header,
    unpack_header,
)
from millbeck.records.native.read import read_records
from millbeck.records.native.record import NO_TIMESTAMP
from millbeck.records.native.walk import OK, PROBLEMS, walk
from millbeck.records.schema_validation import SchemaRules

INT64_MAX: Final = 2**63 - 1
RECORD_ERRORS_MAX: Final = 100
"""Maximum number of rejected records listed in an error."""
DECOMPRESSED_BYTES_MIN: Final = 16 * 1024 * 1024

_LENGTH: Final = Struct(">8xi")
_CODEC_LAST: Final = int(max(Codec))
_CODECS: Final = tuple(Codec)
_crc32c: Final = crc32c
_walk: Final = walk


class InvalidTimestamps(InvalidTimestamp):
    """Some records have timestamps outside the range that the topic accepts."""

    def __init__(self, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRules:
    """The topic settings that apply to a produced batch; created once per topic, not per batch."""

    max_message_bytes: int = 1_048_588
    codec: Codec | None = None
    """The codec of ``compression.type``; None keeps the codec of the producer."""
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    keys_required: bool = False
    """Whether every record needs a key, as in compacted topics."""
    schemas: SchemaRules | None = None
    """The schemas that records may have; None if the topic accepts anything."""

    @property
    def decompressed_bytes_max(self) -> int:
        return max(self.max_message_bytes * 10, DECOMPRESSED_BYTES_MIN)


class ValidatedBatch:
    """A batch that may be appended, as it is to be stored, and its header."""

    __slots__ = ("append_time_ms", "batch", "header", "max_timestamp", "record_count")

    def __init__(
        self, batch: bytes, header: BatchHeader, max_timestamp: int, record_count: int, append_time_ms: int
    ) -> None:
        self.batch = batch
        self.header = header
        self.max_timestamp = max_timestamp
        self.record_count = record_count
        self.append_time_ms = append_time_ms
        """The LogAppendTime for the response, or -1."""


def validate(
    batch: bytes, rules: ValidationRules, now_ms: int, allow_zstd: bool = True, raw_bytes_max: int = INT64_MAX
) -> ValidatedBatch:
    """Validate one produced batch and convert it to what the topic stores; the log assigns offset and leader epoch.

    ``allow_zstd`` is false for Produce requests older than version 7. Raises the errors listed above, and
    `DecompressionLimit` also when a compressed batch has more than ``raw_bytes_max``.
    """
    size = len(batch)
    if size < HEADER_SIZE:
        raise _misshapen(batch)
    header = unpack_header(batch)
    if header.magic != MAGIC or header.length != size - LOG_OVERHEAD:
        raise _misshapen(batch)
    attributes = header.attributes
    codec = attributes & CODEC_MASK
    if codec and (codec > _CODEC_LAST or (codec == Codec.ZSTD and not allow_zstd)):
        raise UnsupportedCompressionType(f"codec {codec} is unknown, or not allowed in this version of the request")
    if size > rules.max_message_bytes:
        raise MessageTooLarge(f"batch of {size} bytes exceeds max.message.bytes of {rules.max_message_bytes}")
    if _crc32c(memoryview(batch)[CRC_START:]) != header.crc:
        raise CorruptMessage("batch has a wrong checksum")
    count = header.record_count
    if (
        count <= 0
        or header.last_offset_delta != count - 1
        or header.base_offset != 0
        or attributes & (CONTROL_BIT | TRANSACTIONAL_BIT | LOG_APPEND_TIME_BIT)
        or (header.producer_id >= 0 and header.base_sequence < 0)
    ):
        _check_claims(header)

    if codec:
        limit_bytes = min(rules.decompressed_bytes_max, raw_bytes_max)
        payload = decompress(_CODECS[codec], memoryview(batch)[HEADER_SIZE:], limit_bytes)
        start = 0
    else:
        payload = batch
        start = HEADER_SIZE
    if rules.timestamp_type:
        oldest, newest = -INT64_MAX, INT64_MAX
    else:
        oldest = max(now_ms - rules.timestamp_before_max_ms, -INT64_MAX)
        newest = min(now_ms + rules.timestamp_after_max_ms, INT64_MAX)
    problem, index, max_timestamp, refused = _walk(
        payload, start, count, header.base_timestamp, oldest, newest, rules.keys_required
    )
    if problem != OK:
        raise InvalidRecord(f"record {index} of the batch is malformed: {PROBLEMS[problem]}")
    if refused:
        raise _refusal(payload, start, header, oldest, newest, rules)
    if rules.schemas is not None:
        rules.schemas.check(payload, start, count)

    if (
        rules.timestamp_type
        or max_timestamp != header.max_timestamp
        or (rules.codec is not None and rules.codec != codec)
    ):
        return _rewritten(batch, header, payload, max_timestamp, rules, now_ms)
    return ValidatedBatch(batch, header, max_timestamp, count, NO_TIMESTAMP)


def _misshapen(batch: bytes) -> InvalidRecord | CorruptMessage:
    """The error for bytes that are not exactly one batch of format 2."""
    size = len(batch)
    if size <= MAGIC_POSITION:
        return InvalidRecord(
            f"a produce request needs one batch for each partition; {size} bytes are too short for one"
        )
    magic = batch[MAGIC_POSITION]
    if magic < MAGIC:
        return InvalidRecord(f"batch has the old magic {magic}; only format 2 is accepted")
    if magic > MAGIC:
        return CorruptMessage(f"batch has the unknown magic {magic}")
    length = _LENGTH.unpack_from(batch)[0]
    if length < LENGTH_MIN:
        return CorruptMessage(f"batch has a length field of {length} bytes, less than its header")
    if LOG_OVERHEAD + length > size:
        return InvalidRecord(f"batch of {LOG_OVERHEAD + length} bytes is truncated after {size} bytes")
    return InvalidRecord(f"{size - LOG_OVERHEAD - length} bytes follow the one batch allowed for each partition")


def _check_claims(header: BatchHeader) -> None:
    """Check that the header fields are consistent, and allowed for clients."""
    if header.base_offset != 0:
        raise InvalidRecord(f"a produced batch begins at offset 0, not {header.base_offset}")
    if header.record_count <= 0:
        raise InvalidRecord(f"batch has an invalid record count, {header.record_count}")
    if header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"batch has {header.record_count} records but a last offset delta of {header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidRecord("clients may not write control records")
    if header.is_transactional and not header.has_producer_id:
        raise InvalidRecord("a transactional batch needs a producer id")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecord(f"batch of producer {header.producer_id} has sequence number {header.base_sequence}")
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        text = "producers may not set the timestamp type to LogAppendTime"
        raise InvalidTimestamps(text, [RecordError(0, text)])


def _refusal(
    payload: bytes, start: int, header: BatchHeader, oldest: int, newest: int, rules: ValidationRules
) -> InvalidRecord | InvalidTimestamps:
    """The error that lists the records which violate the topic's rules; off the fast path, so it may create
    objects.
    """
    errors: list[RecordError] = []
    out_of_range = False
    for index, record in enumerate(read_records(payload, start, header.record_count, 0, header.base_timestamp, -1)):
        if rules.keys_required and record.key is None:
            errors.append(RecordError(index, "a compacted topic needs a key on every record"))
        elif record.timestamp != NO_TIMESTAMP and not oldest <= record.timestamp <= newest:
            out_of_range = True
            errors.append(RecordError(index, f"timestamp {record.timestamp} is not between {oldest} and {newest}"))
        if len(errors) >= RECORD_ERRORS_MAX:
            break
    if out_of_range:
        return InvalidTimestamps("one or more records have a timestamp that the topic does not accept", errors)
    return InvalidRecord(
        f"one or more records were rejected; record {errors[0].batch_index}: {errors[0].message}", errors
    )


def _rewritten(
    batch: bytes, header: BatchHeader, payload: bytes, max_timestamp: int, rules: ValidationRules, now_ms: int
) -> ValidatedBatch:
    """The batch with the topic's codec and timestamps, and a new checksum; records and producer fields are
    unchanged.
    """
    codec = header.attributes & CODEC_MASK
    attributes = header.attributes
    stored: bytes | memoryview = memoryview(batch)[HEADER_SIZE:]
    if rules.codec is not None and rules.codec != codec:
        raw = payload if codec else stored
        stored = compress(rules.codec, raw, rules.level)
        attributes = attributes & ~CODEC_MASK | rules.codec
    append_time_ms = NO_TIMESTAMP
    if rules.timestamp_type:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = append_time_ms = now_ms
    rewritten = assemble(
        stored,
        record_count=header.record_count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    if len(rewritten) > rules.max_message_bytes:
        raise MessageTooLarge(
            f"batch has {len(rewritten)} bytes with the topic's compression.type, more than max.message.bytes of "
            f"{rules.max_message_bytes}"
        )
    return ValidatedBatch(rewritten, read_header(rewritten), max_timestamp, header.record_count, append_time_ms)
