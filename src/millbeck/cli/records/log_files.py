"""Read the files of a log directory entry by entry, in bounded memory and without a broker.

Each reader yields `DumpEntry` values; damage becomes an entry too, so that everything before it is still shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from millbeck.cli.records.record_payloads import Decoder, as_text, control_record, plain
from millbeck.kernel.errors import ApiError, CorruptMessage
from millbeck.records.batch import checksum, records_of
from millbeck.records.header import HEADER_SIZE, LOG_OVERHEAD, NO_SEQUENCE, BatchHeader, TimestampType, read_header

PROBLEM: Final = "problem"
BATCH: Final = "batch"
RECORD: Final = "record"
ENTRY: Final = "entry"
SEQUENCE_COUNT: Final = 1 << 31
"""Producer sequence numbers wrap to 0 after this value."""


@dataclass(frozen=True, slots=True)
class DumpEntry:
    """One entry of a file: its kind, and its fields in the names and order of Kafka's tool."""

    kind: str
    fields: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """The options for the output of a segment."""

    records: bool = False
    payloads: bool = False
    decoder: Decoder = plain
    batch_bytes_max: int | None = None
    bytes_max: int | None = None


def read_entries(path: str, depth: DumpOptions) -> Iterator[DumpEntry]:
    """The entries of a file, whose type follows from its name; raises ``ValueError`` for another name, or
    ``OSError``."""
    suffix = os.path.splitext(path)[1]
    if suffix in (".log", ".checkpoint", ".cut"):
        return _segment_entries(path, depth)
    readers: dict[str, Callable[[str], Iterator[DumpEntry]]] = {
        ".index": _offset_index_entries,
        ".timeindex": _time_index_entries,
        ".txnindex": _transaction_index_entries,
        ".snapshot": _producer_entries,
    }
    if suffix not in readers:
        raise ValueError(f"{path}: not the name of a segment, index or snapshot")
    return readers[suffix](path)


def base_offset_of(path: str) -> int:
    """The offset in a file's name; raises ``ValueError``."""
    digits = os.path.basename(path).split(".")[0].split("-")[0]
    if not digits.isdigit():
        raise ValueError(f"{path}: the name does not begin with an offset")
    return int(digits)


def batches_of(path: str, *, batch_bytes_max: int | None = None) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Position, header and bytes of each batch; raises `CorruptMessage` if one is cut off or too large."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        position = 0
        while position < size:
            header, data = _batch_at(file, position, size, batch_bytes_max)
            yield position, header, data
            position += header.size_bytes


def _batch_at(file: BinaryIO, position: int, size: int, batch_bytes_max: int | None) -> tuple[BatchHeader, bytes]:
    file.seek(position)
    head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        raise CorruptMessage(f"the last {len(head)} bytes are too short for a batch header")
    header = read_header(head)
    if header.size_bytes > size - position:
        raise CorruptMessage(f"its size is {header.size_bytes} bytes, but the file has only {size - position} left")
    limit = None if batch_bytes_max is None else LOG_OVERHEAD + batch_bytes_max
    if limit is not None and header.size_bytes > limit:
        raise CorruptMessage(f"its size is {header.size_bytes} bytes, above the maximum of {limit}")
    return header, head + file.read(header.size_bytes - HEADER_SIZE)


def _segment_entries(path: str, depth: DumpOptions) -> Iterator[DumpEntry]:
    next_position = 0
    try:
        for position, header, data in batches_of(path, batch_bytes_max=depth.batch_bytes_max):
            if depth.bytes_max is not None and position >= depth.bytes_max:
                return
            next_position = position + header.size_bytes
            is_valid = checksum(data) == header.crc
            yield DumpEntry(BATCH, batch_fields(header, position, is_valid))
            if not is_valid:
                yield DumpEntry(
                    PROBLEM, {"problem": f"the checksum of the batch at position {position} does not match"}
                )
            elif depth.records or depth.payloads:
                yield from _record_entries(header, data, depth)
    except CorruptMessage as error:
        left = os.path.getsize(path) - next_position
        yield DumpEntry(
            PROBLEM, {"problem": f"{left} bytes from position {next_position} on are not a valid batch: {error}"}
        )


def batch_fields(header: BatchHeader, position: int, is_valid: bool) -> dict[str, object]:
    time_name = "LogAppendTime" if header.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"
    try:
        codec = header.codec.name.lower()
    except CorruptMessage:
        codec = "unknown"
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.delete_horizon_ms,
        "position": position,
        time_name: header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": codec,
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _record_entries(header: BatchHeader, data: bytes, depth: DumpOptions) -> Iterator[DumpEntry]:
    time_name = "LogAppendTime" if header.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"
    try:
        records = records_of(data)
    except ApiError as error:
        yield DumpEntry(
            PROBLEM, {"problem": f"the records from offset {header.base_offset} on cannot be decoded: {error}"}
        )
        return
    for record in records:
        fields: dict[str, object] = {
            "offset": record.offset,
            time_name: record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": _sequence_of(header, record.offset),
            "headerKeys": [as_text(name.encode("utf-8", "surrogateescape")) for name, _ in record.headers],
        }
        if header.is_control:
            fields |= control_record(record.key, record.value)
        elif depth.payloads:
            key, payload = depth.decoder(record.key, record.value)
            fields |= {name: shown for name, shown in (("key", key), ("payload", payload)) if shown is not None}
        yield DumpEntry(RECORD, fields)


def _sequence_of(header: BatchHeader, offset: int) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + offset - header.base_offset) % SEQUENCE_COUNT


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _log_size(path: str) -> int:
    """Size of the segment an index belongs to; without a segment there is no limit to check positions against."""
    log_path = f"{os.path.splitext(path)[0]}.log"
    return os.path.getsize(log_path) if os.path.exists(log_path) else 1 << 31


def _offset_index_entries(path: str) -> Iterator[DumpEntry]:
    from millbeck.storage.offset_index import CorruptIndex, OffsetIndex

    content = _trimmed(_content(path), 8)
    try:
        index = OffsetIndex.load(base_offset_of(path), len(content), content, _log_size(path))
    except CorruptIndex as error:
        yield DumpEntry(PROBLEM, {"problem": f"{error}: it will be rebuilt when the log is next opened"})
        return
    for offset, position in index.entries():
        yield DumpEntry(ENTRY, {"offset": offset, "position": position})


def _time_index_entries(path: str) -> Iterator[DumpEntry]:
    from millbeck.storage.offset_index import CorruptIndex
    from millbeck.storage.time_index import TimeIndex

    content = _trimmed(_content(path), 12)
    try:
        index = TimeIndex.load(base_offset_of(path), len(content), content)
    except CorruptIndex as error:
        yield DumpEntry(PROBLEM, {"problem": f"{error}: it will be rebuilt when the log is next opened"})
        return
    for timestamp, offset in index.entries():
        yield DumpEntry(ENTRY, {"timestamp": timestamp, "offset": offset})


def _trimmed(content: bytes, entry_size: int) -> bytes:
    """Remove the trailing zeros that Kafka preallocates in the indexes of an active segment."""
    end = len(content)
    empty = bytes(entry_size)
    while end >= entry_size and end % entry_size == 0 and content[end - entry_size : end] == empty:
        end -= entry_size
    return content[:end]


def _transaction_index_entries(path: str) -> Iterator[DumpEntry]:
    from millbeck.storage.offset_index import CorruptIndex
    from millbeck.storage.txn_index import VERSION, decode

    try:
        aborted = decode(_content(path), base_offset_of(path))
    except CorruptIndex as error:
        yield DumpEntry(PROBLEM, {"problem": str(error)})
        return
    for each in aborted:
        yield DumpEntry(
            ENTRY,
            {
                "version": VERSION,
                "producerId": each.producer_id,
                "firstOffset": each.first_offset,
                "lastOffset": each.last_offset,
                "lastStableOffset": each.last_stable_offset,
            },
        )


def _producer_entries(path: str) -> Iterator[DumpEntry]:
    from millbeck.storage.producer_snapshot import CorruptSnapshot, decode

    try:
        producers = decode(_content(path))
    except CorruptSnapshot as error:
        yield DumpEntry(PROBLEM, {"problem": f"{error}: producer state will be rebuilt from the log"})
        return
    for each in producers:
        yield DumpEntry(
            ENTRY,
            {
                "producerId": each.producer_id,
                "producerEpoch": each.epoch,
                "coordinatorEpoch": each.coordinator_epoch,
                "currentTxnFirstOffset": each.transaction_first_offset,
                "lastTimestamp": each.last_timestamp,
                "lastSequence": each.last_sequence,
                "lastOffset": each.last_offset,
                "offsetDelta": each.last_offset_delta,
            },
        )
