"""What a partition has for a reply: whether it is news, and whether it waits."""

from __future__ import annotations

from typing import Any, cast

import pytest
from standing_in import needs_sources

from millbeck.server.fetch_sessions import Wanted
from millbeck.server.handlers.fetch.found import Found, give_back
from millbeck.wire.fast_fetch import PartitionResult
from millbeck.wire.messages.fetch import AbortedTransaction, EpochEndOffset


class Slice:
    size = 5

    def __init__(self) -> None:
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


def found(slice_: Any = None, *, offset: int = 3, end_offset: int = 9, **result: Any) -> Found:
    wanted = Wanted("t", 0, offset, 100, -1, -1)
    return Found(wanted, PartitionResult(0, **result), None, end_offset, slice_)


def told(outcome: Found) -> Found:
    """Its reader knows the two offsets already."""
    outcome.wanted.told_high_watermark = outcome.result.high_watermark
    outcome.wanted.told_log_start_offset = outcome.result.log_start_offset
    return outcome


@pytest.mark.parametrize(
    "result",
    [{"error_code": 1}, {"diverging_epoch": EpochEndOffset(1, 2)}, {"preferred_read_replica": 2}],
)
def test_what_does_not_wait_for_data_is_news(result: dict[str, Any]) -> None:
    outcome = told(found(**result))
    assert (outcome.needs_answer, outcome.is_news) == (True, True)


def test_offsets_are_news_once_and_data_always_is() -> None:
    outcome = found(high_watermark=9, log_start_offset=1)
    assert (outcome.is_news, outcome.needs_answer) == (True, False)
    assert not told(outcome).is_news
    assert told(found(high_watermark=9, log_start_offset=1, records_size=3)).is_news


@needs_sources
def test_a_slice_is_news_and_is_given_back_or_left_out() -> None:
    outcome = told(found(Slice(), aborted_transactions=[AbortedTransaction(1, 2)]))
    assert (outcome.is_news, outcome.is_cut_short) == (True, False)
    give_back([outcome, found()])
    assert cast(Any, outcome.slice).is_released
    outcome.leave_out()
    assert (outcome.slice, outcome.result.aborted_transactions) == (None, [])


def test_only_limits_cut_short() -> None:
    assert found().is_cut_short
    assert not found(offset=9).is_cut_short
    assert not found(diverging_epoch=EpochEndOffset(1, 2)).is_cut_short
    assert not found(preferred_read_replica=2).is_cut_short
