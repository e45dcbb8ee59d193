"""The header to the byte, and what follows from it."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import CorruptMessage
from millbeck.records import batch, header
from millbeck.records.compression import Codec
from millbeck.records.crc import crc32c
from millbeck.records.header import TimestampType
from millbeck.records.record import Record

SAMPLE = [
    Record(-1, 1_700_000_000_000, b"k0", b"value"),
    Record(-1, 1_700_000_000_003, None, b""),
    Record(-1, 1_699_999_999_990, b"", None),
]
GOOD = batch.build(SAMPLE)


def test_header_fields_stand_where_the_format_says() -> None:
    data = batch.build(
        SAMPLE,
        base_offset=0x0102030405060708,
        partition_leader_epoch=0x11121314,
        producer_id=0x2122232425262728,
        producer_epoch=0x3132,
        base_sequence=0x41424344,
        is_transactional=True,
    )
    assert data[:8] == bytes(range(1, 9))
    assert int.from_bytes(data[8:12], "big") == len(data) - 12
    assert data[12:16] == bytes(range(0x11, 0x15))
    assert data[16] == 2
    assert int.from_bytes(data[17:21], "big") == crc32c(data[21:])
    assert data[21:23] == b"\x00\x10"
    assert int.from_bytes(data[23:27], "big") == 2
    assert int.from_bytes(data[27:35], "big") == 1_700_000_000_000
    assert int.from_bytes(data[35:43], "big") == 1_700_000_000_003
    assert data[43:51] == bytes(range(0x21, 0x29))
    assert data[51:53] == b"\x31\x32"
    assert data[53:57] == b"\x41\x42\x43\x44"
    assert int.from_bytes(data[57:61], "big") == 3


def test_what_follows_from_the_header() -> None:
    data = batch.build(
        SAMPLE, base_offset=40, codec=Codec.LZ4, producer_id=7, producer_epoch=1, base_sequence=2**31 - 2
    )
    found = header.read_header(data)
    assert (found.last_offset, found.next_offset, found.size_bytes) == (42, 43, len(data))
    assert found.codec is Codec.LZ4
    assert found.is_compressed
    assert found.timestamp_type is TimestampType.CREATE_TIME
    assert found.last_sequence == 0, "sequence numbers wrap to 0"
    assert found.has_producer_id
    assert (found.is_transactional, found.is_control) == (False, False)
    assert found.delete_horizon_ms is None
    assert found == header.read_header(bytearray(b"xx" + data), 2)
    assert found != header.read_header(batch.build(SAMPLE))


def test_a_batch_without_a_producer_has_no_sequence() -> None:
    found = header.read_header(batch.build(SAMPLE))
    assert (found.producer_id, found.producer_epoch, found.base_sequence, found.last_sequence) == (-1, -1, -1, -1)
    assert not found.has_producer_id


def test_attribute_bits() -> None:
    data = batch.build(
        SAMPLE, is_control=True, is_transactional=True, delete_horizon_ms=99, append_timestamp=1234, codec=Codec.ZSTD
    )
    found = header.read_header(data)
    assert found.attributes == 4 | 8 | 16 | 32 | 64
    assert found.delete_horizon_ms == 99
    assert found.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch.records_of(data)] == [1234] * 3


def test_offset_and_epoch_are_given_without_a_new_checksum() -> None:
    data = batch.build(SAMPLE)
    patched = bytearray(b"junk" + data)
    header.patch(patched, 4200, 17, position=4)
    found = batch.verify(patched, 4)
    assert (found.base_offset, found.partition_leader_epoch) == (4200, 17)
    assert header.prefix(4200, found.length, 17) + data[header.PREFIX_SIZE :] == patched[4:]


def test_a_position_outside_the_buffer_is_corrupt() -> None:
    for position in (-1, len(GOOD), len(GOOD) + 70):
        with pytest.raises(CorruptMessage):
            header.read_header(GOOD, position)
