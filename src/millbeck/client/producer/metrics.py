"""The producer's metrics, counted by batch and by request, never by record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from millbeck.client.metrics.registry import ClientMetrics
from millbeck.client.metrics.sampled import Average, Meter
from millbeck.client.producer.batch import ProducerBatch

_GROUP = "producer-metrics"
_TOPIC_GROUP = "producer-topic-metrics"
_TIMED = ("flush", "metadata-wait", "txn-abort", "txn-begin", "txn-commit", "txn-init", "txn-send-offsets")
"""The calls whose time is added up."""


class _TopicMetrics:
    __slots__ = ("bytes", "compression", "errors", "retries", "sends")

    def __init__(self, metrics: ClientMetrics, topic: str) -> None:
        tags = (("topic", topic),)
        self.sends = metrics.meter(_TOPIC_GROUP, "record-send", tags)
        self.bytes = metrics.meter(_TOPIC_GROUP, "byte", tags)
        self.retries = metrics.meter(_TOPIC_GROUP, "record-retry", tags)
        self.errors = metrics.meter(_TOPIC_GROUP, "record-error", tags)
        self.compression = Average(metrics.window)
        metrics.gauge(_TOPIC_GROUP, "compression-rate", self.compression.average, tags)


class ProducerMetrics:
    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics
        self._topics: dict[str, _TopicMetrics] = {}
        self.sends = metrics.meter(_GROUP, "record-send")
        self.errors = metrics.meter(_GROUP, "record-error")
        self.retries = metrics.meter(_GROUP, "record-retry")
        self.splits = metrics.meter(_GROUP, "batch-split")
        self.exhausted = metrics.meter(_GROUP, "buffer-exhausted")
        self.batch_size = metrics.average(_GROUP, "batch-size")
        self.record_size = metrics.average(_GROUP, "record-size")
        self.queue_time = metrics.average(_GROUP, "record-queue-time")
        self.records_per_request = metrics.average(_GROUP, "records-per-request", has_maximum=False)
        self.compression = metrics.average(_GROUP, "compression-rate", has_maximum=False)
        self.throttle_time = metrics.average(_GROUP, "produce-throttle-time")
        self._spent_s = dict.fromkeys(_TIMED, 0.0)
        for name in _TIMED:
            metrics.gauge(_GROUP, f"{name}-time-ns-total", partial(self._spent_ns, name))

    def _spent_ns(self, name: str, now_s: float) -> float:
        return self._spent_s[name] * 1e9

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a call to its total, however it ends."""
        began_s = self._metrics.now_s()
        try:
            yield
        finally:
            self._spent_s[name] += self._metrics.now_s() - began_s

    def _topic(self, name: str) -> _TopicMetrics:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = _TopicMetrics(self._metrics, name)
        return found

    def requested(self, batches: list[ProducerBatch], sizes: list[int], now_s: float) -> None:
        """These batches, of these encoded sizes, are sent in one request."""
        self.records_per_request.add(sum(batch.record_count for batch in batches), now_s)
        for batch, size_bytes in zip(batches, sizes, strict=True):
            count = batch.record_count
            topic = self._topic(batch.partition.topic)
            self.sends.add(count, now_s)
            self.batch_size.add(size_bytes, now_s)
            self.record_size.add(batch.encoded_size_bytes / max(count, 1), now_s, count)
            self.queue_time.add((now_s - batch.created_s) * 1000, now_s)
            ratio = size_bytes / max(batch.encoded_size_bytes, size_bytes, 1)
            self.compression.add(ratio, now_s)
            topic.sends.add(count, now_s)
            topic.bytes.add(size_bytes, now_s)
            topic.compression.add(ratio, now_s)

    def retried(self, batch: ProducerBatch, now_s: float) -> None:
        self._add("retries", batch, now_s)

    def failed(self, batch: ProducerBatch, now_s: float) -> None:
        self._add("errors", batch, now_s)

    def _add(self, what: str, batch: ProducerBatch, now_s: float) -> None:
        own: Meter = getattr(self, what)
        of_topic: Meter = getattr(self._topic(batch.partition.topic), what)
        own.add(batch.record_count, now_s)
        of_topic.add(batch.record_count, now_s)
