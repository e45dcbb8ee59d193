"""The logs' checker finds what should not be there."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch, control
from millbeck.records.record import Record
from millbeck.simulation.histories import transaction_log
from millbeck.simulation.histories.transaction_log import TransactionOutcomes, check_idle, check_partition

PLACE = TopicPartition("t", 0)


class Here:
    name = PLACE


def data(epoch: int, offset: int) -> bytes:
    return batch.build(
        [Record(-1, 0, None, b"x")],
        base_offset=offset,
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )


def marker(epoch: int, offset: int, committed: bool = True) -> bytes:
    end = control.EndTransaction(committed=committed, coordinator_epoch=0)
    return control.marker_batch(end, producer_id=7, producer_epoch=epoch, timestamp=0, base_offset=offset)


def decided(is_committed: bool = True, place: TopicPartition = PLACE) -> TransactionOutcomes:
    begun = Transaction(transactional_id="x", producer_id=7, producer_epoch=0, timeout_ms=1).with_partitions(
        [place], client_version=2, now_ms=1
    )
    decisions = TransactionOutcomes()
    for each in (begun, begun.prepared(is_committed=is_committed, client_version=2, now_ms=2)):
        decisions._see("x", each)
    return decisions


@pytest.mark.parametrize(
    ("batches", "decisions", "kinds"),
    [
        ([data(0, 0), marker(1, 1)], decided(), []),
        ([data(0, 0)], decided(), ["T8 hanging"]),
        ([data(0, 0), marker(2, 1)], decided(), ["T4 markers"]),
        ([data(0, 0), marker(1, 1)], decided(False), ["T4 markers"]),
        ([data(0, 0), marker(1, 1)], decided(place=TopicPartition("t", 1)), ["T4 markers"]),
        ([data(1, 0), marker(1, 1)], decided(), ["T4 markers"]),
        ([marker(1, 0), data(0, 1), marker(1, 2)], decided(), ["T5 fencing"]),
    ],
)
def test_what_is_wrong_is_found(
    batches: list[bytes], decisions: TransactionOutcomes, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_log, "batches_of", lambda _: iter(batches))
    here: Any = Here()
    assert [each.kind for each in check_partition(here, decisions, has_epochs=True)] == kinds


def test_a_decision_that_is_reversed_is_found() -> None:
    decisions = decided()
    assert [each.kind for each in check_idle(decisions)] == ["T8 hanging"]
    last = Transaction(
        transactional_id="x", producer_id=7, producer_epoch=1, timeout_ms=1, status=TransactionState.COMPLETE_ABORT
    )
    decisions._see("x", last)
    assert [each.kind for each in decisions.anomalies] == ["T7 decisions"]
    assert list(check_idle(decisions)) == []
