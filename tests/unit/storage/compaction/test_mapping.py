"""The first pass."""

from __future__ import annotations

from typing import Any

from millbeck.storage.compaction import mapping
from millbeck.storage.compaction.job import CompactionStats
from millbeck.storage.compaction.offset_map import OffsetMap


def build(table: Any) -> tuple[OffsetMap, CompactionStats]:
    plan, statistics = table.plan(), CompactionStats()
    offset_map = mapping.build(plan.job, plan.open_source, lambda size: None, statistics)
    plan.release()
    return offset_map, statistics


def test_only_what_is_dirty_is_mapped(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"))
    table.roll()
    table.checkpoint = table.put((b"b", b"2"))
    table.roll()
    offset_map, statistics = build(table)
    assert (offset_map.get(b"a"), offset_map.get(b"b")) == (-1, 0)
    assert offset_map.latest_offset == 2
    assert statistics.records_mapped == 1


def test_a_dirty_part_may_begin_inside_a_batch(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"))
    table.roll()
    table.checkpoint = 1
    offset_map, _ = build(table)
    assert (offset_map.get(b"a"), offset_map.get(b"b")) == (-1, 1)


def test_aborted_records_do_not_displace_committed_ones(table: Any) -> None:
    table.put((b"a", b"1"))
    table.put((b"a", b"2"), (b"b", b"2"), producer_id=5, transactional=True)
    table.world.end_transaction(5, committed=False)
    table.put((b"c", b"3"), producer_id=5, transactional=True)
    table.world.end_transaction(5, committed=True)
    table.roll()
    offset_map, _ = build(table)
    assert (offset_map.get(b"a"), offset_map.get(b"b"), offset_map.get(b"c")) == (0, -1, 1)


def test_a_full_map_ends_with_a_whole_batch(table: Any) -> None:
    for number in range(10):
        table.put((b"a%d" % number, b"1"), (b"b%d" % number, b"1"))
    table.roll()
    table.map_bytes_max = 700
    offset_map, statistics = build(table)
    assert 1 <= offset_map.latest_offset < 19
    assert offset_map.latest_offset % 2 == 1
    assert offset_map.entry_count == offset_map.latest_offset + 1
    assert statistics.map_entries == offset_map.entry_count
