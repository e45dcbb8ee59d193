"""What the worker is told to do, as far as it can be seen without a log: whole runs are in `test_service`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any, cast

import pytest

from millbeck.kernel.environment import WorkerContext
from millbeck.kernel.ids import TopicPartition
from millbeck.server.cleaner import work
from millbeck.storage.compaction.job import CompactionJob, CompactionProgress, CompactionResult, CompactionStats


class Place:
    files = object()

    def __init__(self) -> None:
        self.now = 50.0
        self.reports: list[object] = []

    def monotonic(self) -> float:
        return self.now

    def report(self, progress: object) -> None:
        self.reports.append(progress)


def job() -> CompactionJob:
    return CompactionJob(
        topic_partition=TopicPartition("t", 0),
        directory="/data/t-0",
        sources=(),
        first_dirty_offset=0,
        upper_offset=0,
        aborted=(),
        producers={},
        now_ms=0,
        delete_retention_ms=0,
        segment_size_max=1,
        index_size_max=1,
        index_interval_bytes=1,
        map_bytes_max=1,
    )


def test_progress_is_passed_on_once_a_second() -> None:
    place = Place()
    reporter = work.Reporter(cast(WorkerContext, place))
    for step in range(25):
        place.now = 50.0 + step / 10
        reporter(CompactionProgress(bytes_done=step, bytes_total=25))
    assert [progress.bytes_done for progress in cast(list[CompactionProgress], place.reports)] == [10, 20]


def test_the_order_reaches_the_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    made = CompactionResult(segments=(), cleaned_offset=5)

    def compact(asked: CompactionJob, files: object, throttle: Any, on_progress: Any) -> CompactionResult:
        seen.update(job=asked, files=files, rate=throttle._rate)
        return made

    monkeypatch.setattr(work, "compact", compact)
    place = Place()
    order = work.CleanerJob(job=job(), bytes_per_second=123.0)
    assert work.run(cast(WorkerContext, place), order) is made
    assert seen == {"job": order.job, "files": place.files, "rate": 123.0}


def test_orders_and_outcomes_travel() -> None:
    order = work.CleanerJob(job=job(), bytes_per_second=1.5)
    assert pickle.loads(pickle.dumps(order)) == order
    outcome = CompactionResult(segments=(), cleaned_offset=9, statistics=CompactionStats(bytes_read=3))
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert pickle.loads(pickle.dumps(work.run)) is work.run


def test_the_worker_loads_little() -> None:
    program = (
        "import sys; import millbeck.server.cleaner.work; "
        "loaded = [name for name in sys.modules if name.startswith('millbeck.')]; "
        "print([name for name in loaded if name.split('.')[1] in ('wire', 'controller', 'coordinator', 'metadata')]); "
        "print('asyncio' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["[]", "False"]
