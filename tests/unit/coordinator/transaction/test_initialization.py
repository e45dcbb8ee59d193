"""Who gets a transactional id, and what happens to the one who had it."""

from __future__ import annotations

import pytest

from millbeck.coordinator.transaction.initialization import Initialisation, ProducerIdRequired, begin, initialise
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import EPOCH_MAX, LAST_EPOCH_SHOWN, Transaction
from millbeck.kernel.errors import ConcurrentTransactions, ProducerFenced
from millbeck.kernel.ids import TopicPartition

PLACE = TopicPartition("t", 0)


def asked(expected: tuple[int, int] | None = None, new_id: int | None = None) -> Initialisation:
    return Initialisation(transactional_id="x", timeout_ms=50, expected=expected, new_producer_id=new_id)


def known(epoch: int = 3, producer_id: int = 7) -> Transaction:
    return Transaction(transactional_id="x", producer_id=producer_id, producer_epoch=epoch, timeout_ms=1)


def init(transaction: Transaction, request: Initialisation) -> Transaction:
    return initialise(transaction, request, fence_version=2, now_ms=10)


def test_a_new_id_begins_with_epoch_0() -> None:
    with pytest.raises(ProducerIdRequired):
        begin(asked(), 10)
    first = init(begin(asked(new_id=7), 10), asked(new_id=7))
    assert (first.producer_id, first.producer_epoch, first.status, first.timeout_ms) == (
        7,
        0,
        TransactionState.EMPTY,
        50,
    )


def test_a_new_producer_gets_the_next_epoch() -> None:
    assert init(known(), asked()).producer_epoch == 4
    assert init(known(), asked((7, 3))).producer_epoch == 4


def test_a_producer_that_was_replaced_is_fenced() -> None:
    with pytest.raises(ProducerFenced):
        init(known(), asked((7, 2)))
    with pytest.raises(ProducerFenced):
        init(known(), asked((6, 3)))


def test_an_open_transaction_is_aborted_first() -> None:
    opened = known().with_partitions([PLACE], client_version=2, now_ms=1)
    fenced = init(opened, asked())
    assert (fenced.status, fenced.producer_epoch) == (TransactionState.PREPARE_ABORT, 4)
    with pytest.raises(ConcurrentTransactions):
        init(fenced, asked())
    assert init(fenced.completed(20), asked()).producer_epoch == 5


def test_used_up_epochs_give_a_new_id() -> None:
    with pytest.raises(ProducerIdRequired):
        init(known(LAST_EPOCH_SHOWN), asked())
    rotated = init(known(LAST_EPOCH_SHOWN), asked((7, LAST_EPOCH_SHOWN), new_id=8))
    assert (rotated.producer_id, rotated.producer_epoch, rotated.last_producer_epoch) == (8, 0, LAST_EPOCH_SHOWN)
    # The answer was lost: the producer asks again with its old id, and gets the new one.
    again = init(rotated, asked((7, LAST_EPOCH_SHOWN)))
    assert (again.producer_id, again.producer_epoch) == (8, 0)
    fenced = (
        known(LAST_EPOCH_SHOWN).with_partitions([PLACE], client_version=2, now_ms=1).fenced(client_version=2, now_ms=2)
    )
    assert fenced.producer_epoch == EPOCH_MAX
    assert init(fenced.completed(3), asked(new_id=9)).producer_id == 9
