"""The latest record of each key, in bounded memory."""

from __future__ import annotations

from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.storage.compaction.offset_map import OffsetMap


def payload(*keys: bytes | None) -> bytes:
    return batches.payload_of(batches.build([Record(-1, 0, key, b"v") for key in keys]))


def test_the_latest_record_wins_and_those_before_it_are_dead() -> None:
    offset_map = OffsetMap(0, 10_000)
    assert offset_map.add(payload(b"a", b"b", b"a"), 3, 10)
    assert (offset_map.get(b"a"), offset_map.get(b"b"), offset_map.get(b"c")) == (2, 1, -1)
    assert offset_map.entry_count == 2
    assert offset_map.add(payload(b"b", None), 2, 20)
    assert list(offset_map.dead) == [1, 1, 0, 0, 2]


def test_what_lies_below_the_first_offset_is_not_noted() -> None:
    offset_map = OffsetMap(11, 10_000)
    offset_map.add(payload(b"a", b"b", b"c"), 3, 10)
    assert (offset_map.get(b"a"), offset_map.get(b"b")) == (-1, 1)
    assert offset_map.latest_offset == 10


def test_there_is_always_room_for_a_first_batch_and_never_beyond_the_limit() -> None:
    offset_map = OffsetMap(0, 1000)
    assert offset_map.has_room(100, 100_000)
    number = 0
    while offset_map.has_room(1, 20):
        offset_map.add(payload(b"key-%016d" % number), 1, number)
        number += 1
    assert 3 < number < 100
    assert offset_map.size_bytes <= 1000
    assert 0.5 < offset_map.utilization <= 1.0


def test_malformed_records_are_told_of() -> None:
    assert not OffsetMap(0, 1000).add(payload(b"a")[:-1], 1, 0)
