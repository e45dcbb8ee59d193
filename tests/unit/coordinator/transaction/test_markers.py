"""Markers say what the decision says."""

from __future__ import annotations

import pytest

from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition

OPEN = Transaction(transactional_id="x", producer_id=7, producer_epoch=3, timeout_ms=1).with_partitions(
    [TopicPartition("t", 1), TopicPartition("s", 0)], client_version=2, now_ms=1
)


def test_markers_carry_the_epoch_after_the_decision() -> None:
    markers = Markers.of(OPEN.prepared(is_committed=True, client_version=2, now_ms=2))
    assert (markers.producer_id, markers.producer_epoch, markers.is_committed) == (7, 4, True)
    assert markers.partitions == (TopicPartition("t", 1), TopicPartition("s", 0))
    assert markers.transaction_version == 2
    assert not Markers.of(OPEN.fenced(client_version=1, now_ms=2)).is_committed


def test_what_is_not_decided_has_none() -> None:
    with pytest.raises(AssertionError):
        Markers.of(OPEN)
