from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.storage.offset_index import CorruptIndex, OffsetIndex


def test_entries_are_relative_offset_and_position_in_big_endian() -> None:
    index = OffsetIndex(1000, 1024)
    index.append(1005, 4096)
    index.append(1300, 9000)
    assert bytes(index.content) == bytes.fromhex("00000005 00001000 0000012c 00002328")
    assert index.entries() == [(1005, 4096), (1300, 9000)]
    assert index.last_entry() == (1300, 9000)


def test_an_empty_index_points_to_the_beginning() -> None:
    index = OffsetIndex(1000, 1024)
    assert index.position_for(5000) == 0
    assert index.last_entry() == (1000, 0)
    assert index.entry_at_most(10**6) is None


def test_size_is_limited_to_whole_entries() -> None:
    index = OffsetIndex(0, 20)
    index.append(1, 10)
    assert not index.is_full
    index.append(2, 20)
    assert index.is_full


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(0, 1600))
def test_lookup_finds_what_a_linear_search_finds(steps: list[int], target: int) -> None:
    index = OffsetIndex(100, 10**6)
    offset, position = 100, 0
    for step in steps:
        offset, position = offset + step, position + step * 7
        index.append(offset, position)
    entries = index.entries()
    below = [entry for entry in entries if entry[0] <= 100 + target]
    assert index.position_for(100 + target) == (below[-1][1] if below else 0)
    before = [entry for entry in entries if entry[1] <= target]
    assert index.entry_at_most(target) == (before[-1] if before else None)
    index.truncate_to(100 + target)
    assert index.entries() == [entry for entry in entries if entry[0] < 100 + target]


@pytest.mark.parametrize(
    "content",
    [b"1234567", bytes(8), bytes.fromhex("0000000500001000") + bytes(8), bytes.fromhex("fffffff000000010")],
    ids=["odd size", "zeros", "a zero tail, as preallocation leaves it", "negative offset"],
)
def test_impossible_files_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.load(0, 1024, content, log_size_bytes=10_000)


def test_an_entry_beyond_the_log_is_refused() -> None:
    content = bytes.fromhex("0000000500001000")
    assert OffsetIndex.load(0, 1024, content, log_size_bytes=4097).entry_count == 1
    with pytest.raises(CorruptIndex):
        OffsetIndex.load(0, 1024, content, log_size_bytes=4096)


@given(st.binary(max_size=64), st.integers(0, 2**31))
def test_any_bytes_are_an_index_or_refused(content: bytes, size: int) -> None:
    try:
        index = OffsetIndex.load(5, 1024, content, log_size_bytes=size)
    except CorruptIndex:
        return
    assert index.entry_count == len(content) // 8
    assert index.position_for(100) >= 0 or index.entry_count
