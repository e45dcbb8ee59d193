"""The names of the cleaner's metrics, and where their values come from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.metrics import Registry
from millbeck.server.cleaner.metrics import declare_cleaner_metrics
from millbeck.server.cleaner.statistics import CleanerStatistics, LastRun

NAME = TopicPartition("t", 4)


def rendered(**parts: Any) -> dict[str, str]:
    statistics = CleanerStatistics(
        last_runs={
            0: LastRun(
                seconds=12.7, bytes_read=200, bytes_written=50, buffer_utilization=0.334, compaction_delay_ms=9100
            )
        },
        dirtiest_ratio=0.756,
        looked_at_ms=1000,
        run_count=7,
        bytes_read=20,
        bytes_written=10,
    )
    cleaner = SimpleNamespace(
        statistics=statistics,
        dead_thread_count=2,
        running={NAME: SimpleNamespace(progress_fraction=0.5, bytes_per_second=2048.0)},
        dirty_ratios={NAME: 0.25},
        uncleanable_by_directory=lambda: {"/a": [NAME, NAME], "/b": []},
        uncleanable_bytes=lambda name: 21,
    )
    broker = SimpleNamespace(cleaner=cleaner, now_ms=lambda: 4500)
    registry = Registry()
    declare_cleaner_metrics(registry, cast(Any, broker))
    lines = [line for line in registry.render().splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines if "logcleaner" in line or "log_cleaner" in line)


def test_every_metric_and_its_value() -> None:
    assert {name: float(value) for name, value in rendered().items()} == {
        "kafka_log_logcleaner_cleaner_recopy_percent": 25,
        "kafka_log_logcleaner_max_clean_time_secs": 12,
        "kafka_log_logcleaner_max_compaction_delay_secs": 9,
        "kafka_log_logcleaner_max_buffer_utilization_percent": 33,
        "kafka_log_logcleaner_deadthreadcount": 2,
        "kafka_log_logcleanermanager_max_dirty_percent": 75,
        "kafka_log_logcleanermanager_time_since_last_run_ms": 3500,
        'kafka_log_logcleanermanager_uncleanable_partitions_count{logdirectory="/a"}': 2,
        'kafka_log_logcleanermanager_uncleanable_partitions_count{logdirectory="/b"}': 0,
        'kafka_log_logcleanermanager_uncleanable_bytes{logdirectory="/a"}': 42,
        'kafka_log_logcleanermanager_uncleanable_bytes{logdirectory="/b"}': 0,
        'millbeck_log_cleaner_dirty_ratio{topic="t",partition="4"}': 0.25,
        'millbeck_log_cleaner_progress_ratio{topic="t",partition="4"}': 0.5,
        'millbeck_log_cleaner_bytes_per_second{topic="t",partition="4"}': 2048,
        "millbeck_log_cleaner_runs_total": 7,
        "millbeck_log_cleaner_bytes_read_total": 20,
        "millbeck_log_cleaner_bytes_written_total": 10,
    }
