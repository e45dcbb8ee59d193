"""Encoded records: a known byte string, sizes told in advance, offsets that rise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings

from millbeck.records.record import Header, Record
from tests.unit.records.strategies import records

BY_HAND = bytes.fromhex("1c 00 0a 02 02 6b 02 76 04 02 61 01 02 62 00".replace(" ", ""))
"""Length 14; no attributes; timestamp +5; offset +1; key k; value v; headers a = null, b = empty."""


def test_a_record_is_written_as_specified(kernels: SimpleNamespace) -> None:
    headers: tuple[Header, ...] = (("a", None), ("b", b""))
    records = [Record(0, 100, None, None), Record(1, 105, b"k", b"v", headers)]
    payload, next_offset, max_timestamp = kernels.write.encode_records(records, 0, 100)
    first = bytes.fromhex("0c000000010100")
    assert payload == first + BY_HAND
    assert (next_offset, max_timestamp) == (2, 105)


def test_given_offsets_are_kept_and_missing_ones_follow(kernels: SimpleNamespace) -> None:
    records = [Record(-1, 0, None, None), Record(9, 0, None, None), Record(-1, 0, None, None)]
    payload, next_offset, _ = kernels.write.encode_records(records, 5, 0)
    assert [record.offset for record in kernels.read.read_records(payload, 0, 3, 5, 0, -1)] == [5, 9, 10]
    assert next_offset == 11


@pytest.mark.parametrize("offsets", [(4,), (7, 7), (8, 6)])
def test_offsets_that_do_not_rise_are_refused(kernels: SimpleNamespace, offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="comes after"):
        kernels.write.encode_records([Record(offset, 0, None, None) for offset in offsets], 5, 0)


@given(records())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_sizes_are_told_in_advance(kernels: SimpleNamespace, given_records: list[Record]) -> None:
    writer = kernels.write.PayloadWriter()
    for record in given_records:
        told = writer.size_with(record.timestamp, record.key, record.value, record.headers)
        writer.append(record.timestamp, record.key, record.value, record.headers)
        assert writer.size_bytes == told == len(writer.payload())
    encoded, _, max_timestamp = kernels.write.encode_records(given_records, 0, given_records[0].timestamp)
    assert writer.payload() == encoded
    assert writer.max_timestamp == max_timestamp
    assert writer.record_count == len(given_records)


def test_header_names_that_are_not_utf8_keep_their_bytes(kernels: SimpleNamespace) -> None:
    payload, _, _ = kernels.write.encode_records([Record(0, 0, None, None, (("\udcff", b"x"),))], 0, 0)
    assert b"\x02\xff\x02x" in payload
    (read,) = kernels.read.read_records(payload, 0, 1, 0, 0, -1)
    assert read.headers == (("\udcff", b"x"),)
