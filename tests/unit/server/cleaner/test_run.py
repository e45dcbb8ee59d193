"""One compaction as the loop sees it."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB
from millbeck.server.cleaner.run import PROGRESS_LOG_SECONDS, CleanerRun
from millbeck.storage.compaction.job import CompactionProgress


class StandingIn:
    topic_partition = TopicPartition("orders", 3)


class FakeWorkerHandle:
    stops = 0

    def stop(self) -> None:
        self.stops += 1


def make(now: float = 1000.0) -> CleanerRun:
    return CleanerRun(0, cast(Any, StandingIn()), cast(Any, None), now)


def test_how_far_and_how_fast() -> None:
    run = make()
    assert (run.progress_fraction, run.bytes_per_second) == (0.0, 0.0)
    run.reported(CompactionProgress(bytes_done=40 * MIB, bytes_total=160 * MIB), 1010.0)
    assert run.progress_fraction == 0.25
    assert run.bytes_per_second == 4 * MIB
    run.reported("something else", 1011.0)
    assert run.progress_fraction == 0.25


def test_a_long_run_is_told_of_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = make(0.0)
    for second in range(1, int(PROGRESS_LOG_SECONDS) * 2 + 2):
        run.reported(CompactionProgress(bytes_done=second * MIB, bytes_total=120 * MIB), float(second))
    assert [record.getMessage() for record in caplog.records] == [
        "compacting orders-3: 25 % of 120 MiB, 1.0 MiB/s",
        "compacting orders-3: 50 % of 120 MiB, 1.0 MiB/s",
    ]


def test_it_can_be_stopped_before_and_after_the_worker_has_it() -> None:
    run = make()
    run.stop()
    assert run.is_stopped
    handle = FakeWorkerHandle()
    run.worker = cast(Any, handle)
    run.stop()
    assert handle.stops == 1
