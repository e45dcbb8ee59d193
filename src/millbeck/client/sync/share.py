"""The synchronous `ShareConsumer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self

from millbeck.client.config import Value
from millbeck.client.consumer.decoding import ConsumerInterceptor
from millbeck.client.metrics.registry import MetricName
from millbeck.client.serialization import Deserializer
from millbeck.client.share import AcknowledgeType, AcquiredRecord, ShareConsumerConfig
from millbeck.client.share import ShareConsumer as AsyncShareConsumer
from millbeck.client.share.client import OnAcknowledged, Outcomes
from millbeck.client.sync.background import Background
from millbeck.kernel.environment import Environment
from millbeck.records.typevars import K, V


class ShareConsumer(Background, Generic[K, V]):
    """The synchronous share consumer; ``on_acknowledged`` runs in the thread of the event loop."""

    def __init__(
        self,
        settings: Mapping[str, object] | ShareConsumerConfig | None = None,
        *,
        on_acknowledged: OnAcknowledged | None = None,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        self._consumer: AsyncShareConsumer[K, V] = AsyncShareConsumer(
            settings,
            on_acknowledged=on_acknowledged,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            interceptors=interceptors,
            environment=environment,
            **named,
        )
        super().__init__()
        self.config = self._consumer.config

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, topics: Iterable[str]) -> None:
        self._call_plain(lambda: self._consumer.subscribe(topics))

    @property
    def subscription(self) -> list[str]:
        return self._consumer.subscription

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        return self._consumer.acquisition_lock_timeout_ms

    def unsubscribe(self) -> None:
        """Leave the group; records that are not acknowledged are delivered again."""
        self._call(self._consumer.unsubscribe)

    def poll(self, *, timeout_s: float = 1.0) -> list[AcquiredRecord[K, V]]:
        """Return some acquired records, or none if none arrive in time."""
        return self._call(lambda: self._consumer.poll(timeout_s=timeout_s))

    def acknowledge(self, delivery: AcquiredRecord[Any, Any], kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledge a record returned by poll."""
        self._call_plain(lambda: self._consumer.acknowledge(delivery, kind))

    def commit(self, *, timeout_s: float = 30.0) -> Outcomes:
        """Send acknowledgements and wait for the results; each partition's error, None for success."""
        return self._call(lambda: self._consumer.commit(timeout_s=timeout_s))

    def metrics(self) -> dict[MetricName, float]:
        return self._call_plain(self._consumer.metrics)

    def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        return self._call(lambda: self._consumer.client_instance_id(timeout_s=timeout_s))

    def _close_at_exit(self) -> None:
        self.close()

    def close(self) -> None:
        """Accept (implicit mode) or release (explicit mode) pending records, and leave the group."""
        self._close(self._consumer.close)
