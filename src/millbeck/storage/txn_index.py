"""The transaction index of a segment: its aborted transactions (``.txnindex``, present only if there are any).

Entries are 34 bytes, big endian: version (int16, 0), producer id, first offset of the transaction, offset of its abort
marker, and the last stable offset when the marker was written (int64 each). They are in the order of the markers and
are kept in the segment that contains the marker.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from millbeck.storage.offset_index import CorruptIndex

ENTRY_SIZE = 34
VERSION = 0

_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: list[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(VERSION, *entry) for entry in entries)


def decode(content: bytes, base_offset: int) -> list[AbortedTransaction]:
    """The entries of a file. Raises `CorruptIndex`."""
    if len(content) % ENTRY_SIZE:
        raise CorruptIndex(f"{len(content)} bytes are not a whole number of transaction index entries")
    entries: list[AbortedTransaction] = []
    previous = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(content):
        entry = AbortedTransaction(*fields)
        if version != VERSION:
            raise CorruptIndex(f"version {version} is not supported")
        if entry.last_offset <= previous or entry.first_offset > entry.last_offset:
            raise CorruptIndex(f"{entry} does not follow offset {previous}")
        previous = entry.last_offset
        entries.append(entry)
    return entries


def overlapping(
    entries: list[AbortedTransaction], start_offset: int, upper_offset: int, into: list[AbortedTransaction]
) -> bool:
    """Add the transactions that overlap ``[start_offset, upper_offset)``; True when no later entry can."""
    for entry in entries:
        if entry.last_offset >= start_offset and entry.first_offset < upper_offset:
            into.append(entry)
        if entry.last_stable_offset >= upper_offset:
            return True
    return False
