"""The files of a log directory taken apart, entry by entry and never whole in memory, without a broker.

Each reader yields `Entry` values; what is damaged becomes an entry too, so that everything before it is still shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from millbeck.cli.record_payloads import Decoder, as_text, control_record, plain
from millbeck.kernel.errors import ApiError, CorruptMessage
from millbeck.records.batch import checksum, records_of
from millbeck.records.header import HEADER_SIZE, LOG_OVERHEAD, NO_SEQUENCE, BatchHeader, TimestampType, read_header

PROBLEM: Final = "problem"
BATCH: Final = "batch"
RECORD: Final = "record"
ENTRY: Final = "entry"
SEQUENCE_COUNT: Final = 1 << 31
"""Sequences begin again at 0 after this many."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what kind, and its fields under the names of Kafka's tool, in its order."""

    kind: str
    fields: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much of a segment to show."""

    records: bool = False
    payloads: bool = False
    decoder: Decoder = plain
    batch_bytes_max: int | None = None
    bytes_max: int | None = None


def read_entries(path: str, depth: Depth) -> Iterator[Entry]:
    """The entries of a file, whose kind its name tells; raises ``ValueError`` when it does not, or ``OSError``."""
    suffix = os.path.splitext(path)[1]
    if suffix in (".log", ".checkpoint"):
        return _segment_entries(path, depth)
    readers: dict[str, Callable[[str], Iterator[Entry]]] = {
        ".index": _offset_index_entries,
        ".timeindex": _time_index_entries,
        ".txnindex": _transaction_index_entries,
        ".snapshot": _producer_entries,
    }
    if suffix not in readers:
        raise ValueError(f"{path}: neither a segment nor an index, by its name")
    return readers[suffix](path)


def base_offset_of(path: str) -> int:
    """The offset in a file's name; raises ``ValueError``."""
    digits = os.path.basename(path).split(".")[0].split("-")[0]
    if not digits.isdigit():
        raise ValueError(f"{path}: the name does not begin with an offset")
    return int(digits)


def batches_of(path: str, *, batch_bytes_max: int | None = None) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Position, header and bytes of each batch; `CorruptMessage` where the file goes on but a batch does not."""
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
        raise CorruptMessage(f"{len(head)} bytes at the end are too few for a batch")
    header = read_header(head)
    limit = size - position if batch_bytes_max is None else min(size - position, LOG_OVERHEAD + batch_bytes_max)
    if header.size_bytes > limit:
        raise CorruptMessage(f"a batch of {header.size_bytes} bytes goes beyond {limit}")
    return header, head + file.read(header.size_bytes - HEADER_SIZE)


def _segment_entries(path: str, depth: Depth) -> Iterator[Entry]:
    next_position = 0
    try:
        for position, header, data in batches_of(path, batch_bytes_max=depth.batch_bytes_max):
            if depth.bytes_max is not None and position >= depth.bytes_max:
                return
            next_position = position + header.size_bytes
            is_valid = checksum(data) == header.crc
            yield Entry(BATCH, batch_fields(header, position, is_valid))
            if not is_valid:
                yield Entry(PROBLEM, {"problem": f"the checksum of the batch at position {position} does not match"})
            elif depth.records or depth.payloads:
                yield from _record_entries(header, data, depth)
    except CorruptMessage as error:
        left = os.path.getsize(path) - next_position
        yield Entry(PROBLEM, {"problem": f"{left} bytes from position {next_position} on are no batch: {error}"})


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


def _record_entries(header: BatchHeader, data: bytes, depth: Depth) -> Iterator[Entry]:
    time_name = "LogAppendTime" if header.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"
    try:
        records = records_of(data)
    except ApiError as error:
        yield Entry(PROBLEM, {"problem": f"the records of offset {header.base_offset} on cannot be read: {error}"})
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
        yield Entry(RECORD, fields)


def _sequence_of(header: BatchHeader, offset: int) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + offset - header.base_offset) % SEQUENCE_COUNT


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _log_size(path: str) -> int:
    """Size of the segment an index belongs to; without one, nothing of it can be said to be too far."""
    log_path = f"{os.path.splitext(path)[0]}.log"
    return os.path.getsize(log_path) if os.path.exists(log_path) else 1 << 31


def _offset_index_entries(path: str) -> Iterator[Entry]:
    from millbeck.storage.offset_index import CorruptIndex, OffsetIndex

    content = _trimmed(_content(path), 8)
    try:
        index = OffsetIndex.load(base_offset_of(path), len(content), content, _log_size(path))
    except CorruptIndex as error:
        yield Entry(PROBLEM, {"problem": f"{error}: it will be built anew when the log is next opened"})
        return
    for offset, position in index.entries():
        yield Entry(ENTRY, {"offset": offset, "position": position})


def _time_index_entries(path: str) -> Iterator[Entry]:
    from millbeck.storage.offset_index import CorruptIndex
    from millbeck.storage.time_index import TimeIndex

    content = _trimmed(_content(path), 12)
    try:
        index = TimeIndex.load(base_offset_of(path), len(content), content)
    except CorruptIndex as error:
        yield Entry(PROBLEM, {"problem": f"{error}: it will be built anew when the log is next opened"})
        return
    for timestamp, offset in index.entries():
        yield Entry(ENTRY, {"timestamp": timestamp, "offset": offset})


def _trimmed(content: bytes, entry_size: int) -> bytes:
    """Kafka preallocates the indexes of an active segment: the zeros behind the last entry are none."""
    end = len(content)
    empty = bytes(entry_size)
    while end >= entry_size and end % entry_size == 0 and content[end - entry_size : end] == empty:
        end -= entry_size
    return content[:end]


def _transaction_index_entries(path: str) -> Iterator[Entry]:
    from millbeck.storage.offset_index import CorruptIndex
    from millbeck.storage.txn_index import VERSION, decode

    try:
        aborted = decode(_content(path), base_offset_of(path))
    except CorruptIndex as error:
        yield Entry(PROBLEM, {"problem": str(error)})
        return
    for each in aborted:
        yield Entry(
            ENTRY,
            {
                "version": VERSION,
                "producerId": each.producer_id,
                "firstOffset": each.first_offset,
                "lastOffset": each.last_offset,
                "lastStableOffset": each.last_stable_offset,
            },
        )


def _producer_entries(path: str) -> Iterator[Entry]:
    from millbeck.storage.producer_snapshot import CorruptSnapshot, decode

    try:
        producers = decode(_content(path))
    except CorruptSnapshot as error:
        yield Entry(PROBLEM, {"problem": f"{error}: producers will be read from the log instead"})
        return
    for each in producers:
        yield Entry(
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
