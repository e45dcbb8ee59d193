"""Where two logs part, by leader epochs: against logs that are compared record by record."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.errors import OffsetOutOfRange
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.replication.divergence import EpochEnd, divergence, truncation_offset
from millbeck.simulation.environment.disk import SimDisk
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from tests.log_steps import truncate_to

NAME = TopicPartition("t", 0)


def log_of(*epochs: int) -> Log:
    """A log with one record for each of these epochs."""
    files = SimDisk(random.Random(1)).mount()
    directory = LogDirectory(
        files,
        "/data",
        cache=FileCache(files, 10),
        index_cache=IndexCache(),
        jitter_below=lambda _: 0,
        on_failure=lambda reason: None,
    )
    log = directory.create_log(NAME, bytes(16), LogConfig.of(), now_ms=0)
    for epoch in epochs:
        log.stage(batches.build([Record(-1, 0, None, b"x")]), leader_epoch=epoch, now_ms=0)
        log.write_staged()
    return log


def test_a_reader_whose_history_is_ours_does_not_diverge() -> None:
    log = log_of(0, 0, 2, 2)
    assert divergence(log, 4, 2) is None
    assert divergence(log, 3, 2) is None
    assert divergence(log, 2, 0) is None
    assert divergence(log, 0, -1) is None
    assert divergence(log, 7, -1) is None, "without an epoch nothing is compared"


def test_a_reader_with_records_we_do_not_have_is_told_the_last_epoch_we_may_share() -> None:
    log = log_of(0, 0, 2, 2)
    assert divergence(log, 5, 2) == EpochEnd(2, 4)
    assert divergence(log, 3, 0) == EpochEnd(0, 2)
    assert divergence(log, 3, 1) == EpochEnd(0, 2)


def test_what_epochs_cannot_tell_is_out_of_range() -> None:
    log = log_of(0, 0, 2, 2)
    with pytest.raises(OffsetOutOfRange):
        divergence(log, 4, 3)
    log.delete_records(1)
    with pytest.raises(OffsetOutOfRange):
        divergence(log, 0, 0)


def test_a_follower_cuts_to_the_earlier_end_of_the_shared_epoch() -> None:
    log = log_of(0, 0, 0, 1)
    assert truncation_offset(log, EpochEnd(0, 2)) == 2
    assert truncation_offset(log, EpochEnd(0, 9)) == 3
    assert truncation_offset(log, EpochEnd(1, 9)) == 4


def test_a_follower_without_that_epoch_cuts_to_the_end_of_the_one_before() -> None:
    assert truncation_offset(log_of(0, 0, 3, 3), EpochEnd(2, 9)) == 2
    assert truncation_offset(log_of(5, 5), EpochEnd(2, 1)) == 0
    assert truncation_offset(log_of(), EpochEnd(2, 1)) == 0


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 5), max_size=4), st.data())
def test_asking_and_cutting_ends_exactly_where_the_histories_part(
    shared: list[int], ours: list[int], data: st.DataObject
) -> None:
    """An epoch has one leader, so the two sides never write in the same one: that is what makes epochs enough."""
    shared = sorted(shared)
    later = [epoch for epoch in sorted(set(ours)) if not shared or epoch > shared[-1]]
    split = data.draw(st.lists(st.booleans(), min_size=len(later), max_size=len(later)))
    leader_tail = [epoch for epoch, mine in zip(later, split, strict=True) if mine for _ in range(2)]
    follower_tail = [epoch for epoch, mine in zip(later, split, strict=True) if not mine for _ in range(3)]
    leader, follower = log_of(*shared, *leader_tail, 9), log_of(*shared, *follower_tail)
    for _ in range(10):
        diverging = divergence(leader, follower.end_offset, follower.epochs.latest_epoch)
        if diverging is None:
            break
        truncate_to(follower, truncation_offset(follower, diverging))
    assert follower.end_offset == len(shared)
