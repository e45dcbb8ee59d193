"""Transactions as administrators see them."""

from __future__ import annotations

import pytest

from millbeck.coordinator.transaction.listing import Filters, describe, list_all
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.errors import TransactionalIdNotFound
from millbeck.kernel.ids import TopicPartition

IDLE = Transaction(transactional_id="idle", producer_id=1, producer_epoch=0, timeout_ms=9)
OPEN = Transaction(transactional_id="open", producer_id=2, producer_epoch=4, timeout_ms=9).with_partitions(
    [TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("s", 1)], client_version=2, now_ms=100
)
DEAD = Transaction(transactional_id="dead", producer_id=3, producer_epoch=0, timeout_ms=9, status=TransactionState.DEAD)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["idle", "open"]),
        (Filters(statuses=frozenset([TransactionState.ONGOING])), ["open"]),
        (Filters(statuses=frozenset()), []),
        (Filters(producer_ids=frozenset([1, 9])), ["idle"]),
        (Filters(duration_ms=50), ["idle", "open"]),
        (Filters(duration_ms=100), ["idle"]),
        (Filters(matches=lambda text: text.startswith("o")), ["open"]),
        (Filters(producer_ids=frozenset([1]), matches=lambda text: text == "open"), []),
    ],
)
def test_filters_are_all_met(filters: Filters, expected: list[str]) -> None:
    assert [each.transactional_id for each in list_all([IDLE, OPEN, DEAD], filters, 200)] == expected


def test_a_description_has_the_partitions_by_topic() -> None:
    found = describe("open", OPEN)
    assert (found.error_code, found.transaction_state, found.producer_epoch) == (0, "Ongoing", 4)
    assert [(each.topic, each.partitions) for each in found.topics] == [("t", [0, 2]), ("s", [1])]
    for missing in (None, DEAD):
        assert describe("dead", missing).error_code == TransactionalIdNotFound.code
