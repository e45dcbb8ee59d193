"""The steps of one transactional id, each a value of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import EPOCH_MAX, LAST_EPOCH_SHOWN, Transaction
from millbeck.kernel.errors import ProducerFenced
from millbeck.kernel.ids import TopicPartition

PLACE = TopicPartition("t", 0)
FRESH = Transaction(transactional_id="x", producer_id=7, producer_epoch=3, timeout_ms=1000, update_timestamp_ms=5)


def test_a_transaction_begins_with_its_first_partition() -> None:
    begun = FRESH.with_partitions([PLACE], client_version=2, now_ms=100)
    assert (begun.status, begun.start_timestamp_ms, dict(begun.partitions)) == (
        TransactionState.ONGOING,
        100,
        {PLACE: None},
    )
    more = begun.with_partitions([TopicPartition("t", 1), PLACE], client_version=2, now_ms=200)
    assert (more.start_timestamp_ms, more.update_timestamp_ms, len(more.partitions)) == (100, 200, 2)
    assert dict(begun.partitions) == {PLACE: None}, "values are never changed"


def test_the_epoch_goes_up_with_the_end_from_version_2_on() -> None:
    begun = FRESH.with_partitions([PLACE], client_version=0, now_ms=100)
    older = begun.prepared(is_committed=True, client_version=0, now_ms=200)
    assert (older.status, older.producer_epoch) == (TransactionState.PREPARE_COMMIT, 3)
    newer = begun.prepared(is_committed=False, client_version=2, now_ms=200)
    assert (newer.status, newer.producer_epoch, newer.last_producer_epoch) == (TransactionState.PREPARE_ABORT, 4, 3)
    complete = newer.completed(300)
    assert (complete.status, complete.producer_epoch, dict(complete.partitions)) == (
        TransactionState.COMPLETE_ABORT,
        4,
        {},
    )


def test_the_last_epoch_is_followed_by_a_new_id() -> None:
    last = Transaction(transactional_id="x", producer_id=7, producer_epoch=LAST_EPOCH_SHOWN, timeout_ms=1000)
    assert last.client.is_exhausted
    begun = last.with_partitions([PLACE], client_version=2, now_ms=1)
    prepared = begun.prepared(is_committed=True, client_version=2, next_producer_id=8, now_ms=2)
    assert (prepared.producer_id, prepared.producer_epoch) == (7, EPOCH_MAX), "the marker is the old producer's"
    complete = prepared.completed(3)
    assert (complete.producer_id, complete.producer_epoch, complete.previous_producer_id) == (8, 0, 7)
    rotated = complete.with_new_id(9, timeout_ms=5, keeps_last_epoch=True, now_ms=4)
    assert (rotated.producer_id, rotated.producer_epoch, rotated.previous_producer_id) == (9, 0, 8)


def test_a_producer_that_asks_again_gets_the_epoch_it_did_not_hear_of() -> None:
    bumped = FRESH.with_next_epoch(timeout_ms=1, expected_epoch=3, now_ms=1)
    assert (bumped.producer_epoch, bumped.last_producer_epoch) == (4, 3)
    again = bumped.with_next_epoch(timeout_ms=1, expected_epoch=3, now_ms=1)
    assert again.producer_epoch == 4
    with pytest.raises(ProducerFenced):
        bumped.with_next_epoch(timeout_ms=1, expected_epoch=2, now_ms=1)
    assert bumped.with_next_epoch(timeout_ms=1, expected_epoch=None, now_ms=1).producer_epoch == 5


def test_only_what_is_open_can_take_too_long() -> None:
    begun = FRESH.with_partitions([PLACE], client_version=2, now_ms=100)
    assert not begun.is_timed_out(1100)
    assert begun.is_timed_out(1101)
    assert not begun.prepared(is_committed=True, client_version=2, now_ms=100).is_timed_out(10**9)
    endless = Transaction(transactional_id="x", producer_id=7, producer_epoch=3, timeout_ms=2**31 - 1)
    assert not endless.with_partitions([PLACE], client_version=2, now_ms=0).is_timed_out(10**13)


def test_fencing_takes_the_epoch_away() -> None:
    fenced = FRESH.with_partitions([PLACE], client_version=2, now_ms=1).fenced(client_version=2, now_ms=2)
    assert (fenced.status, fenced.producer_epoch, fenced.last_producer_epoch) == (TransactionState.PREPARE_ABORT, 4, -1)


def test_a_transaction_kept_beyond_its_producers_epochs_goes_on_with_a_new_id() -> None:
    opened = Transaction(
        transactional_id="x",
        producer_id=7,
        producer_epoch=LAST_EPOCH_SHOWN,
        timeout_ms=1,
        status=TransactionState.ONGOING,
    )
    kept = opened.kept(8, timeout_ms=2, now_ms=5)
    assert (kept.client, kept.producer_id, kept.producer_epoch) == ((8, 0), 7, LAST_EPOCH_SHOWN)
    ended = kept.prepared(is_committed=True, client_version=2, now_ms=6)
    assert (ended.client, ended.producer_id, ended.producer_epoch) == ((8, 1), 7, EPOCH_MAX)
    after = ended.completed(7)
    assert (after.producer_id, after.producer_epoch, after.previous_producer_id, after.is_kept) == (8, 1, 8, False)
    fenced = kept.fenced(client_version=2, now_ms=6)
    assert (fenced.client, fenced.producer_epoch, fenced.completed(7).producer_epoch) == ((8, 1), EPOCH_MAX, 1)
    often = replace(kept, next_producer_epoch=LAST_EPOCH_SHOWN)
    last = often.prepared(is_committed=False, client_version=2, next_producer_id=9, now_ms=6)
    assert (last.client, last.completed(7).previous_producer_id) == ((9, 0), 8)
