"""The cleaner's metrics: Kafka's own under the names dashboards use, and what a look at the logs adds."""

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
        return [((name.topic, name.partition), run.share_done) for name, run in broker.cleaner.running.items()]

    def speed() -> Rows:
        return [((name.topic, name.partition), run.bytes_per_second) for name, run in broker.cleaner.running.items()]

    registry.gauge_from(
        "millbeck_log_cleaner_dirty_ratio",
        "Dirty bytes of what can be compacted, when the cleaner last looked.",
        labels,
        dirty_ratios,
    )
    registry.gauge_from("millbeck_log_cleaner_progress_ratio", "Done of a compaction under way.", labels, progress)
    registry.gauge_from(
        "millbeck_log_cleaner_bytes_per_second", "Source bytes a second of a compaction under way.", labels, speed
    )
    for name, help_text, read in (
        ("runs", "Compactions that came to their end.", lambda: broker.cleaner.statistics.run_count),
        ("bytes_read", "Bytes that compactions read.", lambda: broker.cleaner.statistics.bytes_read),
        ("bytes_written", "Bytes that compactions wrote.", lambda: broker.cleaner.statistics.bytes_written),
    ):
        registry.counter_from(f"millbeck_log_cleaner_{name}_total", help_text, [], _one_row(read))


def _declare_kafkas(registry: Registry, broker: Broker) -> None:
    single: tuple[tuple[str, str, Callable[[], float]], ...] = (
        (
            "logcleaner_cleaner_recopy_percent",
            "Of what the last runs read, how much they wrote again.",
            lambda: broker.cleaner.statistics.recopy_percent(),
        ),
        (
            "logcleaner_max_clean_time_secs",
            "How long the longest of the last runs took.",
            lambda: int(broker.cleaner.statistics.seconds_max()),
        ),
        (
            "logcleaner_max_compaction_delay_secs",
            "How far the last runs were behind max.compaction.lag.ms.",
            lambda: int(broker.cleaner.statistics.compaction_delay_seconds_max()),
        ),
        (
            "logcleaner_max_buffer_utilization_percent",
            "How full the memory for keys was in the last runs.",
            lambda: int(100 * broker.cleaner.statistics.buffer_utilization_max()),
        ),
        (
            "logcleaner_deadthreadcount",
            "Threads of the cleaner that ended although nobody asked them to, or fail whatever they try.",
            lambda: broker.cleaner.dead_thread_count,
        ),
        (
            "logcleanermanager_max_dirty_percent",
            "How dirty the dirtiest log was when the cleaner last looked.",
            lambda: int(100 * broker.cleaner.statistics.dirtiest_ratio),
        ),
        (
            "logcleanermanager_time_since_last_run_ms",
            "How long ago the cleaner last looked at the logs.",
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
    registry.gauge_from(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Partitions that cannot be compacted and are left alone.",
        labels,
        counts,
    )
    registry.gauge_from(
        "kafka_log_logcleanermanager_uncleanable_bytes",
        "Bytes of theirs that would be compacted.",
        labels,
        sizes,
    )


def _one_row(read: Callable[[], float]) -> Callable[[], Rows]:
    return lambda: [((), read())]
