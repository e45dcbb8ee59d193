"""The inner loops of compaction over a batch's (decompressed) records: collect keys, select records, change base time.

`gather` numbers the records, keeps the latest number of each key, and marks the superseded records; `choose` selects
the retained records, as runs of bytes that are copied and never decoded; `rebase` rewrites the records of a batch that
gets another base timestamp. For a marked record `choose` needs no lookup of its key, which is most of the cost with a
large table.

Only the necessary fields are decoded, and each number is checked against the end of its record. The first number of a
result is 0, or -1 for malformed records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.records.native.varints import NO_NUMBER, encode, read_varint, read_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

_RECORD_SIZE_MIN: Final = 7
_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
_BAD: Final = -1
_OK: Final = 0

NEEDLESS: Final = 1
KEYLESS: Final = 2


def gather(
    payload: bytes,
    start: i64,
    count: i64,
    base_offset: i64,
    first_offset: i64,
    latest: dict[bytes, int],
    dead: bytearray,
) -> tuple[i64, i64, i64]:
    """Collect the keys of ``count`` records, numbered from ``len(dead)`` on; returns ``(problem, key_bytes,
    keyless)``.

    ``dead`` gets a byte for each of them: `KEYLESS` for those without a key, else 0. Records superseded by a later one
    become `NEEDLESS`. Records below ``first_offset`` are numbered but their keys are not collected. ``key_bytes`` is
    the total size of new keys.
    """
    payload_end: i64 = len(payload)
    key_bytes: i64 = 0
    keyless: i64 = 0
    if start < 0 or start > payload_end or count < 0 or count > (payload_end - start) // _RECORD_SIZE_MIN:
        return _BAD, key_bytes, keyless
    number: i64 = len(dead)
    dead.extend(bytes(count))
    position: i64 = start
    index: i64 = 0
    byte: i64
    second: i64
    size: i64
    end: i64
    offset: i64
    before: i64
    while index < count:
        if position >= payload_end:
            return _BAD, key_bytes, keyless
        byte = payload[position]
        second = payload[position + 1] if position + 1 < payload_end else 0x80
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            size, position = read_varint(payload, position, payload_end)
        if position == NO_NUMBER or size < _RECORD_SIZE_MIN - 1 or size > payload_end - position:
            return _BAD, key_bytes, keyless
        end = position + size
        # Skip the timestamp: up to the byte without the high bit.
        position += 1
        while position < end and payload[position] >= 0x80:
            position += 1
        position += 1
        if position >= end:
            return _BAD, key_bytes, keyless
        byte = payload[position]
        second = payload[position + 1] if position + 1 < end else 0x80
        if byte < 0x80:
            offset = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            offset = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            offset, position = read_varint(payload, position, end)
        if position == NO_NUMBER or offset < 0 or position >= end:
            return _BAD, key_bytes, keyless
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            size, position = read_varint(payload, position, end)
        if position == NO_NUMBER or size < -1 or size > end - position:
            return _BAD, key_bytes, keyless
        if size < 0:
            keyless += 1
            dead[number] = KEYLESS
        elif base_offset + offset >= first_offset:
            key = payload[position : position + size]
            before = latest.get(key, -1)
            latest[key] = number
            if before >= 0:
                dead[before] = NEEDLESS
            else:
                key_bytes += size
        position = end
        index += 1
        number += 1
    if position != payload_end:
        return _BAD, key_bytes, keyless
    return _OK, key_bytes, keyless


def choose(
    payload: bytes,
    start: i64,
    count: i64,
    base_timestamp: i64,
    latest: dict[bytes, int],
    first_number: i64,
    dead: bytes,
    drops_tombstones: bool,
    runs: list[int],
) -> tuple[i64, i64, i64, i64, i64]:
    """Select the retained records; returns ``(problem, kept, tombstones, max_timestamp, keyless)``.

    A record is retained when it has a key, no later record has the same one, and it is not a tombstone past its delete
    horizon. ``dead`` has a byte for each record, non-zero for those to be removed, or is empty: then a record is
    superseded when the number of its key in ``latest`` is above its own, and numbering begins at ``first_number``. The
    begin and end of each retained run of bytes are appended to ``runs``. ``tombstones`` counts the retained ones,
    ``keyless`` the records without a key. ``max_timestamp`` is the largest of the retained ones, or -1.
    """
    int64_max: i64 = _INT64_MAX
    payload_end: i64 = len(payload)
    kept: i64 = 0
    tombstones: i64 = 0
    max_timestamp: i64 = -1
    keyless: i64 = 0
    marked: i64 = len(dead)
    if start < 0 or start > payload_end or count < 0 or count > (payload_end - start) // _RECORD_SIZE_MIN:
        return _BAD, kept, tombstones, max_timestamp, keyless
    if marked != 0 and marked != count:
        return _BAD, kept, tombstones, max_timestamp, keyless
    position: i64 = start
    begin: i64
    run_begin: i64 = start
    run_end: i64 = start
    index: i64 = 0
    byte: i64
    second: i64
    size: i64
    end: i64
    timestamp: i64
    newest: i64
    value: i64
    while index < count:
        if position >= payload_end:
            return _BAD, kept, tombstones, max_timestamp, keyless
        begin = position
        byte = payload[position]
        second = payload[position + 1] if position + 1 < payload_end else 0x80
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            size, position = read_varint(payload, position, payload_end)
        if position == NO_NUMBER or size < _RECORD_SIZE_MIN - 1 or size > payload_end - position:
            return _BAD, kept, tombstones, max_timestamp, keyless
        end = position + size
        if marked != 0 and dead[index] != 0:
            if dead[index] == KEYLESS:
                keyless += 1
            position = end
            index += 1
            continue

        position += 1
        byte = payload[position]
        second = payload[position + 1] if position + 1 < end else 0x80
        if byte < 0x80:
            timestamp = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            timestamp = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            timestamp, position = read_varlong(payload, position, end)
        if position == NO_NUMBER or position >= end:
            return _BAD, kept, tombstones, max_timestamp, keyless
        if base_timestamp > int64_max - timestamp if timestamp > 0 else base_timestamp < -int64_max - timestamp:
            return _BAD, kept, tombstones, max_timestamp, keyless
        timestamp += base_timestamp

        # The offset delta does not change: skip to the byte without the high bit.
        while position < end and payload[position] >= 0x80:
            position += 1
        position += 1
        if position >= end:
            return _BAD, kept, tombstones, max_timestamp, keyless
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            size, position = read_varint(payload, position, end)
        if position == NO_NUMBER or size < -1 or size >= end - position:
            return _BAD, kept, tombstones, max_timestamp, keyless
        if size < 0:
            keyless += 1
        else:
            newest = -1
            if marked == 0:
                newest = latest.get(payload[position : position + size], -1)
            position += size
            if newest <= first_number + index or newest < 0:
                # A null value has the length -1, one byte in this encoding unless it was encoded in more bytes than
                # needed.
                byte = payload[position]
                if byte < 0x80:
                    value = (byte >> 1) ^ -(byte & 1)
                else:
                    value, position = read_varint(payload, position, end)
                    if position == NO_NUMBER:
                        return _BAD, kept, tombstones, max_timestamp, keyless
                if value >= 0 or not drops_tombstones:
                    if value < 0:
                        tombstones += 1
                    kept += 1
                    if timestamp > max_timestamp:
                        max_timestamp = timestamp
                    if run_end != begin:
                        if run_end != run_begin:
                            runs.append(run_begin)
                            runs.append(run_end)
                        run_begin = begin
                    run_end = end
        position = end
        index += 1
    if position != payload_end:
        return _BAD, kept, tombstones, max_timestamp, keyless
    if run_end != run_begin:
        runs.append(run_begin)
        runs.append(run_end)
    return _OK, kept, tombstones, max_timestamp, keyless


def rebase(payload: bytes, start: i64, shift: i64) -> bytes:
    """The records from ``start`` to the end of ``payload`` with ``shift`` added to each timestamp delta.

    `choose` must have checked them before.
    """
    pieces: list[bytes] = []
    payload_end: i64 = len(payload)
    position: i64 = start
    size: i64
    end: i64
    delta: i64
    while position < payload_end:
        size, position = read_varint(payload, position, payload_end)
        if position == NO_NUMBER or size < _RECORD_SIZE_MIN - 1 or size > payload_end - position:
            raise ValueError("malformed records cannot be rebased")
        end = position + size
        attributes = payload[position : position + 1]
        delta, position = read_varlong(payload, position + 1, end)
        if position == NO_NUMBER:
            raise ValueError("malformed records cannot be rebased")
        timestamp = encode(delta + shift)
        pieces.append(encode(1 + len(timestamp) + end - position))
        pieces.append(attributes)
        pieces.append(timestamp)
        pieces.append(payload[position:end])
        position = end
    return b"".join(pieces)
