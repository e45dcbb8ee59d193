"""Who may end a transaction, and what a retry finds."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.transaction.ending import EndTransactionRequest, end
from millbeck.coordinator.transaction.initialization import ProducerIdRequired
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import LAST_EPOCH_SHOWN, Transaction
from millbeck.kernel.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from millbeck.kernel.ids import TopicPartition

PLACE = TopicPartition("t", 0)
EMPTY = Transaction(transactional_id="x", producer_id=7, producer_epoch=3, timeout_ms=1)


def ending(
    is_committed: bool, version: int, epoch: int = 3, producer_id: int = 7, new_id: int | None = None
) -> EndTransactionRequest:
    return EndTransactionRequest(
        transactional_id="x",
        producer_id=producer_id,
        producer_epoch=epoch,
        is_committed=is_committed,
        client_version=version,
        new_producer_id=new_id,
    )


def opened(version: int, epoch: int = 3) -> Transaction:
    known = Transaction(transactional_id="x", producer_id=7, producer_epoch=epoch, timeout_ms=1)
    return known.with_partitions([PLACE], client_version=version, now_ms=1)


def refusal(known: Transaction, asked: EndTransactionRequest) -> type[ApiError] | None:
    try:
        end(known, asked, 9)
    except ApiError as error:
        return type(error)
    return None


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_committed", [True, False])
def test_what_is_open_is_decided(version: int, is_committed: bool) -> None:
    after = end(opened(version), ending(is_committed, version), 9)
    assert after is not None
    assert after.status is (TransactionState.PREPARE_COMMIT if is_committed else TransactionState.PREPARE_ABORT)
    assert after.producer_epoch == (4 if version == 2 else 3)


@pytest.mark.parametrize("version", [0, 2])
def test_only_its_producer_ends_a_transaction(version: int) -> None:
    assert refusal(opened(version), ending(True, version, epoch=2)) is ProducerFenced
    assert refusal(opened(version), ending(True, version, epoch=4)) is ProducerFenced
    assert refusal(opened(version), ending(True, version, producer_id=6)) is InvalidProducerIdMapping


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_retry_waits_for_the_markers_and_then_finds_it_done(is_committed: bool) -> None:
    for version in (0, 2):
        asked = ending(is_committed, version)
        prepared: Any = end(opened(version), asked, 9)
        assert refusal(prepared, asked) is ConcurrentTransactions
        assert refusal(prepared, ending(not is_committed, version)) is ConcurrentTransactions
        assert end(prepared.completed(10), asked, 11) is None
        assert refusal(prepared.completed(10), ending(not is_committed, version)) is InvalidTxnState


def test_an_end_that_bumps_the_epoch_is_no_retry_of_one_that_did_not() -> None:
    prepared: Any = end(opened(0), ending(True, 0), 9)
    complete = prepared.completed(10)
    assert end(complete, ending(True, 0), 11) is None
    assert refusal(complete, ending(True, 2)) is InvalidTxnState


def test_a_delayed_end_cannot_touch_a_later_transaction() -> None:
    first: Any = end(opened(2), ending(True, 2), 9)
    second = first.completed(10).with_partitions([PLACE], client_version=2, now_ms=11)
    assert second.producer_epoch == 4
    assert refusal(second, ending(True, 2, epoch=3)) is ProducerFenced
    assert refusal(second, ending(False, 2, epoch=3)) is ProducerFenced
    # Without the bump, it would have ended the second one: that is what version 2 is for.
    older: Any = end(opened(0), ending(True, 0), 9)
    assert end(older.completed(10).with_partitions([PLACE], client_version=0, now_ms=11), ending(True, 0), 12)


def test_an_abort_may_come_before_anything_was_written() -> None:
    after: Any = end(EMPTY, ending(False, 2), 9)
    assert (after.status, after.producer_epoch, after.start_timestamp_ms) == (TransactionState.PREPARE_ABORT, 4, 9)
    complete = after.completed(10)
    again: Any = end(complete, ending(False, 2, epoch=4), 11)
    assert (again.status, again.producer_epoch) == (TransactionState.PREPARE_ABORT, 5)
    assert refusal(EMPTY, ending(True, 2)) is InvalidTxnState
    assert refusal(complete, ending(True, 2, epoch=4)) is InvalidTxnState
    assert refusal(EMPTY, ending(False, 0)) is InvalidTxnState


def test_an_abort_of_what_has_not_begun_waits_for_the_markers_of_the_last() -> None:
    """The answer to the last end leaves before its markers are written."""
    for is_committed in (True, False):
        first: Any = end(opened(2), ending(is_committed, 2), 9)
        assert refusal(first, ending(False, 2, epoch=4)) is ConcurrentTransactions
        after: Any = end(first.completed(10), ending(False, 2, epoch=4), 11)
        assert (after.status, after.producer_epoch) == (TransactionState.PREPARE_ABORT, 5)


def test_the_end_of_the_last_epoch_brings_a_new_id() -> None:
    last = opened(2, LAST_EPOCH_SHOWN)
    with pytest.raises(ProducerIdRequired):
        end(last, ending(True, 2, LAST_EPOCH_SHOWN), 9)
    after: Any = end(last, ending(True, 2, LAST_EPOCH_SHOWN, new_id=8), 9)
    assert after.next_producer_id == 8
    assert refusal(after, ending(True, 2, LAST_EPOCH_SHOWN)) is ConcurrentTransactions
    complete = after.completed(10)
    assert end(complete, ending(True, 2, LAST_EPOCH_SHOWN), 11) is None
    assert refusal(complete, ending(False, 2, LAST_EPOCH_SHOWN)) is InvalidTxnState


def test_whoever_was_fenced_with_the_last_epoch_gets_no_other() -> None:
    fenced = opened(2, LAST_EPOCH_SHOWN).fenced(client_version=2, now_ms=9)
    assert refusal(fenced, ending(False, 2, LAST_EPOCH_SHOWN)) is ConcurrentTransactions
    assert refusal(fenced.completed(10), ending(False, 2, LAST_EPOCH_SHOWN)) is ProducerFenced
