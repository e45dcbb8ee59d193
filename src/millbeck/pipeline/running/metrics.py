"""How a pipeline is doing, as Prometheus metrics: the figures of its progress line, and how often it was restarted.

Kafka has no names for these, so they begin with ``millbeck_``. The lag by partition is in the consumer group of the
pipeline, which brokers serve as ``kafka_consumergroup_lag``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry

if TYPE_CHECKING:
    from millbeck.pipeline.running.progress import Progress

LABELS = ("pipeline",)


class PipelineMetrics:
    """``restarts`` and ``is_running`` are asked when the metrics are; the rest is told after each batch."""

    def __init__(self, name: str, *, restarts: Callable[[], int], is_running: Callable[[], bool]) -> None:
        self.registry = Registry()
        make = self.registry
        self._rows = make.counter("millbeck_pipeline_rows_total", "Rows read from the sources.", LABELS).child(name)
        self._batches = make.counter(
            "millbeck_pipeline_batches_total", "Batches with rows that were written.", LABELS
        ).child(name)
        self._batch = make.gauge("millbeck_pipeline_batch", "The number of the last batch with rows.", LABELS).child(
            name
        )
        self._batch_ms = make.histogram(
            "millbeck_pipeline_batch_ms", "Milliseconds that a batch with rows takes.", LABELS
        ).child(name)
        self._rows_per_second = make.gauge(
            "millbeck_pipeline_rows_per_second", "Rows per second of the last batch with rows.", LABELS
        ).child(name)
        self._lag = make.gauge(
            "millbeck_pipeline_lag_records", "Records in the sources that were not read yet.", LABELS
        ).child(name)
        self._state_rows = make.gauge("millbeck_pipeline_state_rows", "Rows in the state stores.", LABELS).child(name)
        self._state_bytes = make.gauge(
            "millbeck_pipeline_state_bytes", "Bytes of memory that the state stores use.", LABELS
        ).child(name)
        make.counter_from(
            "millbeck_pipeline_restarts_total",
            "How often the pipeline was started again after a failure.",
            LABELS,
            lambda: [((name,), restarts())],
        )
        make.gauge_from(
            "millbeck_pipeline_running",
            "Whether the query runs: 0 while Spark starts and while a failure is waited out.",
            LABELS,
            lambda: [((name,), int(is_running()))],
        )

    def wrote(self, progress: Progress) -> None:
        """A batch with rows was written."""
        self._rows.value += progress.rows
        self._batches.value += 1
        self._batch.value = progress.batch
        self._batch_ms.record(progress.batch_seconds * 1000)
        self._rows_per_second.value = progress.rows_per_second
        self.looked(progress)

    def looked(self, progress: Progress) -> None:
        """Spark has looked for new records, whether it found some or not."""
        if progress.lag is not None:
            self._lag.value = progress.lag
        self._state_rows.value = progress.state_rows
        self._state_bytes.value = progress.state_bytes
