"""What a partition has for a reply: whether it is news, and whether it waits."""

from __future__ import annotations

from typing import Any, cast

import pytest

from millbeck.replication.divergence import EpochEnd
from millbeck.replication.log_read import LogRead
from millbeck.server.fetch.partition_read import PartitionRead, release_unsent
from millbeck.server.fetch.sessions import CachedPartition
from millbeck.wire.messages.fetch import AbortedTransaction
from tests.unit.server.harness.method_patches import needs_sources


class Slice:
    size = 5

    def __init__(self) -> None:
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


def found(slice_: Any = None, *, offset: int = 3, end_offset: int = 9, **result: Any) -> PartitionRead:
    info = LogRead(result.pop("high_watermark", -1), result.pop("log_start_offset", -1))
    info.end_offset = end_offset
    info.diverging_epoch = result.pop("diverging_epoch", None)
    outcome = PartitionRead(CachedPartition("t", 0, offset, 100, -1, -1), None, info)
    outcome.slice = slice_
    for name, value in result.items():
        setattr(outcome, name, value)
    return outcome


def told(outcome: PartitionRead) -> PartitionRead:
    """Its reader knows the two offsets already."""
    outcome.wanted.last_sent_high_watermark = outcome.info.high_watermark
    outcome.wanted.last_sent_log_start_offset = outcome.info.log_start_offset
    return outcome


@pytest.mark.parametrize(
    "result",
    [{"error_code": 1}, {"diverging_epoch": EpochEnd(1, 2)}, {"preferred_read_replica": 2}],
)
def test_what_does_not_wait_for_data_is_news(result: dict[str, Any]) -> None:
    outcome = told(found(**result))
    assert (outcome.must_respond, outcome.is_changed) == (True, True)


def test_offsets_are_news_once_and_data_always_is() -> None:
    outcome = found(high_watermark=9, log_start_offset=1)
    assert (outcome.is_changed, outcome.must_respond) == (True, False)
    assert not told(outcome).is_changed
    assert told(found(high_watermark=9, log_start_offset=1, records_size=3)).is_changed


@needs_sources
def test_a_slice_is_news_and_is_given_back_or_left_out() -> None:
    outcome = told(found(Slice(), aborted_transactions=[AbortedTransaction(1, 2)]))
    assert (outcome.is_changed, outcome.is_size_limited) == (True, False)
    release_unsent([outcome, found()])
    assert cast(Any, outcome.slice).is_released
    outcome.drop_records()
    assert (outcome.slice, outcome.aborted_transactions) == (None, [])


def test_only_limits_cut_short() -> None:
    assert found().is_size_limited
    assert not found(offset=9).is_size_limited
    assert not found(diverging_epoch=EpochEnd(1, 2)).is_size_limited
    assert not found(preferred_read_replica=2).is_size_limited
