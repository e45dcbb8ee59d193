"""Runs of records of one size: the same records and errors as the reader of single records has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records import uniform
from millbeck.records.native import read
from millbeck.records.native.record import NOWHERE, Record
from millbeck.records.native.write import encode_records

PARTS = st.one_of(st.none(), st.integers(0, 70), st.just(200))
DELTAS = st.one_of(st.just(0), st.integers(-70, 200), st.just(70_000))


def payload_of(sizes: list[tuple[int | None, int | None]], deltas: list[int]) -> tuple[bytes, int]:
    """One record for each pair of key size and value size."""
    records = [
        Record(
            -1,
            100_000 + deltas[index % len(deltas)],
            None if key is None else bytes([index % 256]) * key,
            None if value is None else bytes([index % 256]) * value,
        )
        for index, (key, value) in enumerate(sizes)
    ]
    return encode_records(records, 0, 100_000)[0], len(records)


def both(payload: bytes, count: int, append_timestamp: int = -1) -> tuple[object, object]:
    return tuple(  # type: ignore[return-value]
        _outcome(module, payload, count, append_timestamp) for module in (uniform, read)
    )


def _outcome(module: object, payload: bytes, count: int, append_timestamp: int) -> object:
    try:
        return module.read_records(payload, 3, count, 7, 100_000, append_timestamp)  # type: ignore[attr-defined]
    except InvalidRecord as error:
        return str(error)


@given(
    st.lists(st.tuples(PARTS, PARTS, st.integers(1, 90)), min_size=1, max_size=3),
    st.lists(DELTAS, min_size=1, max_size=3),
    st.sampled_from([-1, 5]),
    st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), max_size=2),
)
@settings(max_examples=150)
def test_the_outcome_is_that_of_the_plain_reader(
    runs: list[tuple[int | None, int | None, int]],
    deltas: list[int],
    append_timestamp: int,
    mutations: list[tuple[int, int]],
) -> None:
    payload, count = payload_of([(key, value) for key, value, length in runs for _ in range(length)], deltas)
    changed = bytearray(b"xyz" + payload)
    for place, byte in mutations:
        changed[3 + place % len(payload)] = byte
    found, expected = both(bytes(changed), count, append_timestamp)
    assert found == expected
    if isinstance(found, list) and isinstance(expected, list):
        assert [record.headers for record in found] == [record.headers for record in expected]


@pytest.mark.parametrize(("key", "value"), [(None, 100), (10, 100), (10, None), (None, None), (0, 0), (64, 8000)])
def test_records_of_one_size_are_read_in_runs(key: int | None, value: int | None) -> None:
    payload, count = payload_of([(key, value)] * 200, [0, 1, 2])
    found = uniform._runs(payload, 0, count, 7, 100_000, -1, NOWHERE)
    assert found is not None
    assert found == read.read_records(payload, 0, count, 7, 100_000, -1)
    with pytest.raises(AttributeError, match="offset"):
        found[0].offset = 1  # type: ignore[misc]


def test_a_number_with_needless_bytes_is_checked_in_every_record() -> None:
    """The length of a value of 5 bytes, written as two: the second byte belongs to the layout as well."""
    record = b"\x00\x00%c\x01" + b"\x8a\x00" + b"12345" + b"\x00"
    good = b"".join(bytes([2 * len(record % 0)]) + record % (2 * index) for index in range(10))
    assert both(b"xyz" + good, 10)[0] == both(b"xyz" + good, 10)[1]
    bad = bytearray(good)
    bad[-7] = 1
    found, expected = both(b"xyz" + bytes(bad), 10)
    assert isinstance(expected, str)
    assert found == expected
