"""The producer ``.snapshot`` file: a log's producer state at one offset, so that opening need not read the whole log.

Version (int16, 1), CRC-32C of all that follows (uint32), number of entries (int32), then per producer: id, epoch, last
sequence, last offset, offset delta of the last batch, timestamp, coordinator epoch, first offset of the open
transaction (-1 for none). Only the last batch is stored; the window of five batches is refilled from the log (see
`producer_windows`).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

from millbeck.records.crc import crc32c
from millbeck.storage.producer_state import NO_OFFSET, ProducerStateEntry

SUFFIX = ".snapshot"
VERSION = 1
SIZE_BYTES_MAX = 256 * 1024 * 1024

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """A corrupt snapshot file; producer state must be rebuilt from an older one or from the log."""


def encode(entries: Iterable[ProducerStateEntry]) -> bytes:
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode(content: bytes) -> list[ProducerStateEntry]:
    """The entries of a snapshot file. Raises `CorruptSnapshot`."""
    try:
        version, crc = _HEAD.unpack_from(content)
        (count,) = _COUNT.unpack_from(content, _HEAD.size)
    except error as cause:
        raise CorruptSnapshot(f"{len(content)} bytes are too short for a snapshot") from cause
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is not supported")
    if crc32c(memoryview(content)[_HEAD.size :]) != crc:
        raise CorruptSnapshot("the checksum does not match")
    if len(content) != _HEAD.size + _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries do not fill {len(content)} bytes")
    entries = []
    for fields in _ENTRY.iter_unpack(memoryview(content)[_HEAD.size + _COUNT.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = fields
        batches = ((last_sequence, last_offset, delta, timestamp),) if last_offset >= 0 else ()
        first_offset = first_offset if first_offset >= 0 else NO_OFFSET
        entries.append(ProducerStateEntry(producer_id, epoch, batches, timestamp, coordinator_epoch, first_offset))
    return entries
