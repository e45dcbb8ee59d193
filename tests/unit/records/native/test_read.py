"""Reading records: what was written comes back, and any other bytes raise `InvalidRecord` and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.record import Record
from millbeck.records.varint import encode
from tests.unit.records.strategies import records

MUTATIONS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)


def record_bytes(body: bytes) -> bytes:
    return encode(len(body)) + body


@given(records(min_size=0), st.integers(0, 2**40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
def test_round_trip(kernels: SimpleNamespace, given_records: list[Record], base_offset: int) -> None:
    payload, _, _ = kernels.write.encode_records(given_records, base_offset, 1000)
    read = kernels.read.read_records(payload, 0, len(given_records), base_offset, 1000, -1)
    assert [record.offset for record in read] == [base_offset + index for index in range(len(given_records))]
    for wrote, found in zip(given_records, read, strict=True):
        assert (found.timestamp, found.key, found.value, found.headers) == (
            wrote.timestamp,
            wrote.key,
            wrote.value,
            wrote.headers,
        )


def test_append_time_replaces_every_timestamp(kernels: SimpleNamespace) -> None:
    payload, _, _ = kernels.write.encode_records([Record(-1, 5, None, None), Record(-1, 9, None, None)], 0, 5)
    assert [record.timestamp for record in kernels.read.read_records(payload, 0, 2, 0, 5, 77)] == [77, 77]


def test_records_are_read_from_inside_a_buffer(kernels: SimpleNamespace) -> None:
    payload, _, _ = kernels.write.encode_records([Record(-1, 5, b"k", None)], 0, 5)
    assert kernels.read.read_records(b"12345" + payload, 5, 1, 0, 5, -1) == [Record(0, 5, b"k", None)]


NULLS = bytes([1, 1])
MALFORMED = {
    "no bytes": (b"", 1),
    "negative count": (b"", -1),
    "count beyond what fits": (bytes(7 * 3), 4),
    "length is cut short": (b"\x80" * 7, 1),
    "length beyond the end": (encode(100) + bytes(20), 1),
    "length too small": (encode(5) + bytes(9), 1),
    "negative length": (encode(-3) + bytes(9), 1),
    "timestamp too wide": (record_bytes(b"\x00" + b"\xff" * 10 + b"\x00" + NULLS + b"\x00"), 1),
    "timestamp out of range": (record_bytes(b"\x00" + encode(2**63 - 1) + b"\x00" + NULLS + b"\x00"), 1),
    "negative offset": (record_bytes(b"\x00\x00" + encode(-1) + NULLS + b"\x00"), 1),
    "key beyond the record": (record_bytes(b"\x00\x00\x00" + encode(50) + b"kk\x01\x00") + bytes(60), 1),
    "key length below null": (record_bytes(b"\x00\x00\x00" + encode(-2) + b"\x01\x00"), 1),
    "value beyond the record": (record_bytes(b"\x00\x00\x00\x01" + encode(50) + b"\x00") + bytes(60), 1),
    "value length below null": (record_bytes(b"\x00\x00\x00\x01" + encode(-2) + b"\x00"), 1),
    "negative header count": (record_bytes(b"\x00\x00\x00" + NULLS + encode(-1)), 1),
    "more headers than fit": (record_bytes(b"\x00\x00\x00" + NULLS + encode(2**30)), 1),
    "null header name": (record_bytes(b"\x00\x00\x00" + NULLS + encode(1) + encode(-1) + b"\x01"), 1),
    "header name beyond": (record_bytes(b"\x00\x00\x00" + NULLS + encode(1) + encode(9) + b"a\x01"), 1),
    "header value beyond": (record_bytes(b"\x00\x00\x00" + NULLS + encode(1) + encode(1) + b"a" + encode(9)), 1),
    "bytes after the headers": (record_bytes(b"\x00\x00\x00" + NULLS + encode(0) + b"x"), 1),
    "bytes after the last record": (record_bytes(b"\x00\x00\x00" + NULLS + b"\x00") + bytes(3), 1),
}


@pytest.mark.parametrize(("payload", "count"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_records_raise_one_error(kernels: SimpleNamespace, payload: bytes, count: int) -> None:
    with pytest.raises(InvalidRecord):
        kernels.read.read_records(payload, 0, count, 0, 1, -1)


@pytest.mark.parametrize("start", [-1, 8])
def test_a_start_outside_the_payload_is_refused(kernels: SimpleNamespace, start: int) -> None:
    with pytest.raises(InvalidRecord):
        kernels.read.read_records(bytes(7), start, 0, 0, 0, -1)


def outcome(kernels: SimpleNamespace, payload: bytes, count: int) -> object:
    try:
        return kernels.read.read_records(payload, 0, count, 0, 1000, -1)
    except InvalidRecord as error:
        return str(error)


@given(records(), MUTATIONS, st.integers(0, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_mutated_payloads_never_raise_anything_else(
    kernels: SimpleNamespace, given_records: list[Record], mutations: list[tuple[int, int]], count: int
) -> None:
    payload = bytearray(kernels.write.encode_records(given_records, 0, 1000)[0])
    for position, byte in mutations:
        payload[position % len(payload)] = byte
    assert isinstance(outcome(kernels, bytes(payload), count), list | str)


@given(st.one_of(st.binary(max_size=60), st.lists(st.sampled_from([0, 1, 2, 12, 14, 0x80, 0xFF])).map(bytes)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_compiled_and_python_files_agree(both_kernels: tuple[SimpleNamespace, SimpleNamespace], payload: bytes) -> None:
    compiled, pure = both_kernels
    for count in range(4):
        assert outcome(compiled, payload, count) == outcome(pure, payload, count)
