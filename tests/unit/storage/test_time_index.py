from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.time_index import TimeIndex


def filled() -> TimeIndex:
    index = TimeIndex(100, 1200)
    for timestamp, offset in [(1000, 105), (2000, 110), (3000, 150)]:
        assert index.append_if_later(timestamp, offset)
    return index


def test_entries_are_timestamp_and_relative_offset_in_big_endian() -> None:
    index = TimeIndex(100, 1200)
    index.append_if_later(0x1122334455, 105)
    assert bytes(index.content) == bytes.fromhex("0000001122334455 00000005")


def test_only_later_timestamps_are_entered() -> None:
    index = filled()
    assert not index.append_if_later(3000, 160)
    assert not index.append_if_later(2999, 170)
    assert not index.append_if_later(4000, 149)
    assert index.entries() == [(1000, 105), (2000, 110), (3000, 150)]


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(999, 100), (1000, 105), (1999, 105), (2000, 110), (9999, 150)], ids=str
)
def test_lookup_gives_the_last_entry_not_after_it(timestamp: int, offset: int) -> None:
    assert filled().offset_before(timestamp) == offset


def test_truncation_drops_entries_at_or_beyond_the_offset() -> None:
    index = filled()
    index.truncate_to(110)
    assert index.entries() == [(1000, 105)]
    assert (index.last_timestamp, index.last_offset) == (1000, 105)
    index.truncate_to(0)
    assert (index.last_timestamp, index.last_offset) == (-1, 100)


def test_one_entry_is_kept_free_for_the_closing_timestamp() -> None:
    index = TimeIndex(0, 36)
    index.append_if_later(1, 1)
    assert not index.is_full
    index.append_if_later(2, 2)
    assert index.is_full


@pytest.mark.parametrize(
    "content",
    [b"x", filled().content[:12] + bytes(12), filled().content[12:24] + filled().content[:12]],
    ids=["odd size", "zeros at the end", "falling timestamps"],
)
def test_impossible_files_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        TimeIndex.load(100, 1200, content)


def test_a_file_comes_back_as_it_was() -> None:
    assert TimeIndex.load(100, 1200, bytes(filled().content)).entries() == filled().entries()


@given(st.binary(max_size=72))
def test_any_bytes_are_an_index_or_refused(content: bytes) -> None:
    try:
        index = TimeIndex.load(100, 1200, content)
    except CorruptIndex:
        return
    assert index.entry_count == len(content) // 12
