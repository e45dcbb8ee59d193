"""Compaction's walks, against the reader, which makes objects."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.native.read import read_records
from millbeck.records.native.write import encode_records
from millbeck.records.record import Record
from tests.unit.records.native.test_read import MALFORMED, MUTATIONS
from tests.unit.records.strategies import records

BASE_OFFSET, BASE_TIMESTAMP = 1000, 5000
KEYS = st.sampled_from([None, b"", b"a", b"b", b"key-" * 40])
VALUES = st.sampled_from([None, b"", b"value", b"x" * 9000])
LISTS = st.lists(st.tuples(st.integers(0, 300), st.integers(-100, 100_000), KEYS, VALUES), max_size=12)


def made(entries: list[tuple[int, int, bytes | None, bytes | None]]) -> list[Record]:
    """Records whose offsets rise by 1 and more."""
    offset, found = BASE_OFFSET - 1, []
    for gap, delta, key, value in entries:
        offset += 1 + gap
        found.append(Record(offset, BASE_TIMESTAMP + delta, key, value))
    return found


def encoded(given: list[Record]) -> bytes:
    return encode_records(cast("list[Any]", given), BASE_OFFSET, BASE_TIMESTAMP)[0]


def read(payload: bytes, count: int, base_timestamp: int = BASE_TIMESTAMP) -> list[Record]:
    return cast("list[Record]", read_records(payload, 0, count, BASE_OFFSET, base_timestamp, -1))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=LISTS, first=st.integers(990, 2000))
def test_gather_notes_the_latest_record_of_each_key_and_marks_those_before_it(
    kernels: SimpleNamespace, entries: list[tuple[int, int, bytes | None, bytes | None]], first: int
) -> None:
    present = made(entries)
    latest, dead = {b"a": 1}, bytearray(2)
    problem, key_bytes, keyless = kernels.compaction.gather(
        encoded(present), 0, len(present), BASE_OFFSET, first, latest, dead
    )
    noted = {b"a": 1}
    expected = [0, 0, *(2 if one.key is None else 0 for one in present)]
    for number, one in enumerate(present, 2):
        if one.key is not None and one.offset >= first:
            if one.key in noted:
                expected[noted[one.key]] = 1
            noted[one.key] = number
    assert (problem, latest, list(dead)) == (0, noted, expected)
    assert key_bytes == sum(len(key) for key in noted) - 1
    assert keyless == sum(one.key is None for one in present)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=LISTS,
    latest=st.dictionaries(st.sampled_from([b"", b"a", b"b", b"key-" * 40]), st.integers(0, 14)),
    drops=st.booleans(),
    first_number=st.sampled_from([-(1 << 62), 0, 3]),
    marks=st.one_of(st.none(), st.lists(st.booleans(), min_size=12, max_size=12)),
)
def test_choose_keeps_what_the_rule_keeps(
    kernels: SimpleNamespace,
    entries: list[tuple[int, int, bytes | None, bytes | None]],
    latest: dict[bytes, int],
    drops: bool,
    first_number: int,
    marks: list[bool] | None,
) -> None:
    present = made(entries)
    runs: list[int] = []
    payload = encoded(present)
    dead = b"" if marks is None else bytes(marks[: len(present)])
    found = kernels.compaction.choose(payload, 0, len(present), BASE_TIMESTAMP, latest, first_number, dead, drops, runs)

    def is_needless(number: int, key: bytes) -> bool:
        return bool(dead[number]) if dead else latest.get(key, -1) > max(first_number + number, -1)

    expected = [
        one
        for number, one in enumerate(present)
        if one.key is not None and not is_needless(number, one.key) and not (drops and one.value is None)
    ]
    problem, kept, tombstones, max_timestamp, keyless = found
    assert (problem, kept) == (0, len(expected))
    assert tombstones == sum(one.value is None for one in expected)
    assert max_timestamp == max((one.timestamp for one in expected), default=-1)
    looked_at = [one for number, one in enumerate(present) if not dead or not dead[number]]
    assert keyless == sum(one.key is None for one in looked_at)
    pieces = [payload[begin:end] for begin, end in zip(runs[::2], runs[1::2], strict=True)]
    assert read(b"".join(pieces), kept) == expected
    assert all(one < other for one, other in pairwise(runs))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(present=records(min_size=0, max_size=6), horizon=st.integers(0, 2**40))
def test_rebase_changes_the_base_and_no_timestamp(
    kernels: SimpleNamespace, present: list[Record], horizon: int
) -> None:
    given = [
        Record(BASE_OFFSET + index, min(one.timestamp, 2**60), one.key, one.value, one.headers)
        for index, one in enumerate(present)
    ]
    rebased = kernels.compaction.rebase(encoded(given), 0, BASE_TIMESTAMP - horizon)
    assert read(rebased, len(given), horizon) == given


def _is_refused_by_reader(payload: bytes, count: int) -> bool:
    try:
        read_records(payload, 0, count, 0, 0, -1)
    except InvalidRecord:
        return True
    return False


@pytest.mark.parametrize(("payload", "count"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_malformed_raises_nothing(kernels: SimpleNamespace, payload: bytes, count: int) -> None:
    runs: list[int] = []
    latest: dict[bytes, int] = {}
    gathered = kernels.compaction.gather(payload, 0, count, 0, 0, latest, bytearray())[0]
    chosen = kernels.compaction.choose(payload, 0, count, 0, latest, 0, b"", False, runs)[0]
    assert gathered in (0, -1)
    assert chosen in (0, -1)
    assert all(0 <= bound <= len(payload) for bound in runs)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(present=records(), mutations=MUTATIONS)
def test_mutated_records_never_read_beyond_the_payload(
    kernels: SimpleNamespace, present: list[Record], mutations: list[tuple[int, int]]
) -> None:
    mutated, count = bytearray(encoded(present)), len(present)
    for position, value in mutations:
        mutated[position % len(mutated)] = value
    payload = bytes(mutated)
    latest: dict[bytes, int] = {}
    runs: list[int] = []
    gathered = kernels.compaction.gather(payload, 0, count, 0, 0, latest, bytearray())[0]
    chosen = kernels.compaction.choose(payload, 0, count, 0, {}, 0, b"", False, runs)[0]
    if not _is_refused_by_reader(payload, count):
        assert (gathered, chosen) == (0, 0)
    assert all(0 <= bound <= len(payload) for bound in runs)
