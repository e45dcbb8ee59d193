from __future__ import annotations

import pytest

from millbeck.storage.checkpoints import CheckpointError
from millbeck.storage.epoch_cache import LeaderEpochCache, decode_epochs

ENTRIES = [(0, 0), (2, 100), (5, 250)]


def test_the_file_is_a_checkpoint_of_epoch_and_start() -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.encode() == b"0\n3\n0 0\n2 100\n5 250\n"
    assert decode_epochs(cache.encode()) == ENTRIES


@pytest.mark.parametrize("content", [b"0\n2\n1 5\n1 6\n", b"0\n2\n1 5\n2 5\n", b"0\n1\n-1 5\n", b"0\n1\nx 5\n"])
def test_entries_that_do_not_rise_are_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError):
        decode_epochs(content)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 100)), (1, (0, 100)), (2, (2, 250)), (4, (2, 250)), (5, (5, 400)), (6, (-1, -1))],
)
def test_the_end_of_an_epoch_is_where_the_next_begins(epoch: int, expected: tuple[int, int]) -> None:
    assert LeaderEpochCache(ENTRIES).end_offset_for(epoch, 400) == expected


def test_an_epoch_before_all_known_ended_where_the_first_known_began() -> None:
    assert LeaderEpochCache([(3, 50), (4, 60)]).end_offset_for(1, 100) == (1, 50)
    assert LeaderEpochCache().end_offset_for(0, 100) == (-1, -1)


def test_an_epoch_is_entered_once_and_only_if_later() -> None:
    cache = LeaderEpochCache(ENTRIES)
    version = cache.version
    cache.assign(5, 300)
    cache.assign(4, 300)
    assert cache.version == version
    cache.assign(6, 300)
    assert cache.entries()[-1] == (6, 300)
    assert cache.version > version


def test_an_epoch_without_records_gives_way_to_its_successor() -> None:
    cache = LeaderEpochCache([(1, 0), (2, 10)])
    cache.assign(3, 10)
    assert cache.entries() == [(1, 0), (3, 10)]


def test_truncation_at_the_end_forgets_epochs_that_begin_there() -> None:
    cache = LeaderEpochCache(ENTRIES)
    cache.truncate_from_end(250)
    assert cache.entries() == [(0, 0), (2, 100)]
    assert cache.latest_epoch == 2


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, ENTRIES), (50, [(0, 50), (2, 100), (5, 250)]), (100, [(2, 100), (5, 250)]), (300, [(5, 300)])],
)
def test_truncation_at_the_start_moves_the_epoch_it_falls_into(start: int, expected: list[tuple[int, int]]) -> None:
    cache = LeaderEpochCache(ENTRIES)
    cache.truncate_from_start(start)
    assert cache.entries() == expected


def test_epoch_of_an_offset() -> None:
    cache = LeaderEpochCache([(2, 100), (5, 250)])
    assert [cache.epoch_of(offset) for offset in (99, 100, 249, 250, 999)] == [-1, 2, 2, 5, 5]
    assert cache.earliest() == (2, 100)
    cache.clear()
    assert (cache.latest_epoch, cache.earliest()) == (-1, None)
