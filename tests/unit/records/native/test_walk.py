"""The validation walk, against the reader, which makes objects and knows no rules."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.native import walk as codes
from millbeck.records.record import Record
from millbeck.records.varint import encode
from tests.unit.records.native.test_read import MALFORMED, MUTATIONS, record_bytes
from tests.unit.records.strategies import records

ALWAYS = (-(2**63) + 1, 2**63 - 1, False)

EXPECTED = {
    "no bytes": codes.BAD_COUNT,
    "negative count": codes.BAD_COUNT,
    "count beyond what fits": codes.BAD_COUNT,
    "length is cut short": codes.BAD_LENGTH,
    "length beyond the end": codes.BAD_LENGTH,
    "length too small": codes.BAD_LENGTH,
    "negative length": codes.BAD_LENGTH,
    "timestamp too wide": codes.BAD_TIMESTAMP,
    "timestamp out of range": codes.BAD_TIMESTAMP,
    "negative offset": codes.BAD_OFFSET,
    "key beyond the record": codes.BAD_KEY,
    "key length below null": codes.BAD_KEY,
    "value beyond the record": codes.BAD_VALUE,
    "value length below null": codes.BAD_VALUE,
    "negative header count": codes.BAD_HEADERS,
    "more headers than fit": codes.BAD_HEADERS,
    "null header name": codes.BAD_HEADERS,
    "header name beyond": codes.BAD_HEADERS,
    "header value beyond": codes.BAD_HEADERS,
    "bytes after the headers": codes.BAD_HEADERS,
    "bytes after the last record": codes.TRAILING_BYTES,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_each_malformation_has_its_name(kernels: SimpleNamespace, name: str) -> None:
    payload, count = MALFORMED[name]
    assert kernels.walk.walk(payload, 0, count, 1, *ALWAYS)[0] == EXPECTED[name]
    assert EXPECTED[name] in codes.PROBLEMS


@given(records(max_size=6), st.integers(0, 70))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_what_is_well_formed_is_found_so(kernels: SimpleNamespace, given_records: list[Record], repeated: int) -> None:
    given_records += [Record(-1, 1000 + index, b"", b"v") for index in range(repeated)]
    payload, _, max_timestamp = kernels.write.encode_records(given_records, 0, 1000)
    count = len(given_records)
    assert kernels.walk.walk(b"12" + payload, 2, count, 1000, *ALWAYS) == (codes.OK, count, max_timestamp, 0)


@pytest.mark.parametrize("deltas", [(1,), (0, 2), (0, 0), (1, 0), (0, 1, 3)])
def test_offset_deltas_count_from_zero_without_gaps(kernels: SimpleNamespace, deltas: tuple[int, ...]) -> None:
    payload = b"".join(record_bytes(b"\x00\x00" + encode(delta) + b"\x01\x01\x00") for delta in deltas)
    problem, index, _, _ = kernels.walk.walk(payload, 0, len(deltas), 0, *ALWAYS)
    assert problem == codes.BAD_OFFSET
    assert deltas[index] != index


def test_records_that_break_the_rules_are_counted(kernels: SimpleNamespace) -> None:
    timestamps_and_keys = [(10, b"k"), (9, b"k"), (20, None), (21, None), (-1, b"k"), (15, b"")]
    given_records = [Record(-1, timestamp, key, b"v") for timestamp, key in timestamps_and_keys]
    payload, _, _ = kernels.write.encode_records(given_records, 0, 10)
    assert kernels.walk.walk(payload, 0, 6, 10, 10, 20, False) == (codes.OK, 6, 21, 2)
    assert kernels.walk.walk(payload, 0, 6, 10, 10, 20, True) == (codes.OK, 6, 21, 3)
    assert kernels.walk.walk(payload, 0, 6, 10, 0, 100, True) == (codes.OK, 6, 21, 2)


@given(records(), MUTATIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_mutated_payloads_are_judged_as_the_reader_does(
    kernels: SimpleNamespace, given_records: list[Record], mutations: list[tuple[int, int]]
) -> None:
    payload = bytearray(kernels.write.encode_records(given_records, 0, 1000)[0])
    for position, byte in mutations:
        payload[position % len(payload)] = byte
    count = len(given_records)
    problem, _, max_timestamp, _ = kernels.walk.walk(bytes(payload), 0, count, 1000, *ALWAYS)
    try:
        read = kernels.read.read_records(bytes(payload), 0, count, 0, 1000, -1)
    except InvalidRecord:
        assert problem != codes.OK
        return
    contiguous = [record.offset for record in read] == list(range(count))
    assert (problem == codes.OK) == contiguous
    if contiguous:
        assert max_timestamp == max(-1, *(record.timestamp for record in read))


@given(st.one_of(st.binary(max_size=60), st.lists(st.sampled_from([0, 1, 2, 12, 14, 0x80, 0xFF])).map(bytes)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_compiled_and_python_files_agree(both_kernels: tuple[SimpleNamespace, SimpleNamespace], payload: bytes) -> None:
    compiled, pure = both_kernels
    for count in range(4):
        for rules in (ALWAYS, (0, 1, True)):
            assert compiled.walk.walk(payload, 0, count, 1, *rules) == pure.walk.walk(payload, 0, count, 1, *rules)
