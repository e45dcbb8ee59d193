"""Prometheus metrics of a pipeline: the figures of its progress line, and the number of restarts.

Kafka has no names for these, so they begin with ``millbeck_``. The lag by partition is in the consumer group of the
pipeline, which brokers serve as ``kafka_consumergroup_lag``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry

if TYPE_CHECKING:
    from millbeck.pipeline.running.progress import BatchProgress

LABELS = ("pipeline",)


class PipelineMetrics:
    """``restarts`` and ``is_running`` are called at each scrape; the other values are set after each batch."""

    def __init__(self, name: str, *, restarts: Callable[[], int], is_running: Callable[[], bool]) -> None:
        self.registry = Registry()
        make = self.registry
        self._rows = make.counter("millbeck_pipeline_rows_total", "Rows read from the sources.", LABELS).child(name)
        self._batches = make.counter("millbeck_pipeline_batches_total", "Batches with rows written.", LABELS).child(
            name
        )
        self._batch = make.gauge("millbeck_pipeline_batch", "The number of the last batch with rows.", LABELS).child(
            name
        )
        self._batch_ms = make.histogram(
            "millbeck_pipeline_batch_ms", "Duration of a batch with rows in milliseconds.", LABELS
        ).child(name)
        self._late = make.counter(
            "millbeck_pipeline_late_records_total", "Records dropped because their windows had closed.", LABELS
        ).child(name)
        self._rows_per_second = make.gauge(
            "millbeck_pipeline_rows_per_second", "Rows per second of the last batch with rows.", LABELS
        ).child(name)
        self._lag = make.gauge("millbeck_pipeline_lag_records", "Records in the sources not read yet.", LABELS).child(
            name
        )
        self._state_rows = make.gauge("millbeck_pipeline_state_rows", "Rows in the state stores.", LABELS).child(name)
        self._state_bytes = make.gauge(
            "millbeck_pipeline_state_bytes", "Memory used by the state stores in bytes.", LABELS
        ).child(name)
        make.callback_counter(
            "millbeck_pipeline_restarts_total",
            "Restarts of the pipeline after a failure.",
            LABELS,
            lambda: [((name,), restarts())],
        )
        make.callback_gauge(
            "millbeck_pipeline_running",
            "Whether the query runs: 1 while it runs, 0 while Spark starts and during restart backoff.",
            LABELS,
            lambda: [((name,), int(is_running()))],
        )

    def wrote(self, progress: BatchProgress) -> None:
        """Record a written batch with rows."""
        self._rows.value += progress.rows
        self._batches.value += 1
        self._late.value += progress.late
        self._batch.value = progress.batch
        self._batch_ms.record(progress.batch_seconds * 1000)
        self._rows_per_second.value = progress.rows_per_second
        self.looked(progress)

    def looked(self, progress: BatchProgress) -> None:
        """Record that Spark has polled the sources, with or without new records."""
        if progress.lag is not None:
            self._lag.value = progress.lag
        self._state_rows.value = progress.state_rows
        self._state_bytes.value = progress.state_bytes
