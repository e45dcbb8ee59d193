"""The log cleaner's metrics: Kafka's metrics under their JMX-exporter names, and additional ones per log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry, Rows

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


def declare_cleaner_metrics(registry: Registry, broker: Broker) -> None:
    _declare_kafkas(registry, broker)
    _declare_uncleanable(registry, broker)
    labels = ["topic", "partition"]

    def dirty_ratios() -> Rows:
        return [((name.topic, name.partition), ratio) for name, ratio in broker.cleaner.dirty_ratios.items()]

    def progress() -> Rows:
        return [((name.topic, name.partition), run.progress_fraction) for name, run in broker.cleaner.running.items()]

    def speed() -> Rows:
        return [((name.topic, name.partition), run.bytes_per_second) for name, run in broker.cleaner.running.items()]

    registry.callback_gauge(
        "millbeck_log_cleaner_dirty_ratio",
        "Dirty ratio of a compacted log at the cleaner's last check.",
        labels,
        dirty_ratios,
    )
    registry.callback_gauge(
        "millbeck_log_cleaner_progress_ratio", "Progress of a running compaction, 0 to 1.", labels, progress
    )
    registry.callback_gauge(
        "millbeck_log_cleaner_bytes_per_second",
        "Source bytes per second processed by a running compaction.",
        labels,
        speed,
    )
    for name, help_text, read in (
        ("runs", "Completed compactions.", lambda: broker.cleaner.statistics.run_count),
        ("bytes_read", "Bytes read by compactions.", lambda: broker.cleaner.statistics.bytes_read),
        ("bytes_written", "Bytes written by compactions.", lambda: broker.cleaner.statistics.bytes_written),
    ):
        registry.callback_counter(f"millbeck_log_cleaner_{name}_total", help_text, [], _one_row(read))


def _declare_kafkas(registry: Registry, broker: Broker) -> None:
    single: tuple[tuple[str, str, Callable[[], float]], ...] = (
        (
            "logcleaner_cleaner_recopy_percent",
            "Percentage of the bytes read that were written back, over each thread's last run.",
            lambda: broker.cleaner.statistics.recopy_percent(),
        ),
        (
            "logcleaner_max_clean_time_secs",
            "Maximum duration in seconds of each thread's last run.",
            lambda: int(broker.cleaner.statistics.seconds_max()),
        ),
        (
            "logcleaner_max_compaction_delay_secs",
            "Maximum delay in seconds past max.compaction.lag.ms, over each thread's last run.",
            lambda: int(broker.cleaner.statistics.compaction_delay_seconds_max()),
        ),
        (
            "logcleaner_max_buffer_utilization_percent",
            "Maximum utilization of the dedupe buffer in percent, over each thread's last run.",
            lambda: int(100 * broker.cleaner.statistics.buffer_utilization_max()),
        ),
        (
            "logcleaner_deadthreadcount",
            "Cleaner threads that ended unexpectedly or whose last attempt failed with an unexpected error.",
            lambda: broker.cleaner.dead_thread_count,
        ),
        (
            "logcleanermanager_max_dirty_percent",
            "Dirty ratio in percent of the dirtiest log at the cleaner's last check.",
            lambda: int(100 * broker.cleaner.statistics.dirtiest_ratio),
        ),
        (
            "logcleanermanager_time_since_last_run_ms",
            "Milliseconds since the cleaner last checked the logs.",
            lambda: max(0, broker.now_ms() - broker.cleaner.statistics.looked_at_ms),
        ),
    )
    for name, help_text, read in single:
        registry.gauge(f"kafka_log_{name}", help_text).child().read = read


def _declare_uncleanable(registry: Registry, broker: Broker) -> None:
    def counts() -> Rows:
        return [((path,), len(names)) for path, names in broker.cleaner.uncleanable_by_directory().items()]

    def sizes() -> Rows:
        return [
            ((path,), sum(broker.cleaner.uncleanable_bytes(name) for name in names))
            for path, names in broker.cleaner.uncleanable_by_directory().items()
        ]

    labels = ["logdirectory"]
    registry.callback_gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Partitions marked as uncleanable: their compaction failed and is not retried.",
        labels,
        counts,
    )
    registry.callback_gauge(
        "kafka_log_logcleanermanager_uncleanable_bytes",
        "Dirty bytes of the uncleanable partitions.",
        labels,
        sizes,
    )


def _one_row(read: Callable[[], float]) -> Callable[[], Rows]:
    return lambda: [((), read())]
