"""How far a node has followed the metadata, under Kafka's names.

Kafka tells how late a node is by the age of the last record, which works because its controller writes an empty record
twice a second. Here nothing is written when nothing happens, so lateness is measured: how long something committed has
waited to be applied, or how long no leader has been known from whom it could come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry
from millbeck.metadata.image import MetadataImage
from millbeck.server.metric_tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.drivers.quorum import QuorumDriver


class MetadataLag:
    """How late the applied image is. It is looked at by who asks: the first to see it late sees 0."""

    def __init__(self, quorum: QuorumDriver, image: Callable[[], MetadataImage]) -> None:
        self._quorum = quorum
        self._image = image
        self._late_since_s: float | None = None

    def read_ms(self) -> int:
        now_s = self._quorum.environment.clock.monotonic()
        if self._is_current():
            self._late_since_s = None
        elif self._late_since_s is None:
            self._late_since_s = now_s
        return 0 if self._late_since_s is None else int((now_s - self._late_since_s) * 1000)

    def _is_current(self) -> bool:
        return self._quorum.leader.is_known and self._image().offset + 1 >= self._quorum.high_watermark


def declare_metadata_metrics(registry: Registry, quorum: QuorumDriver) -> None:
    declare_single(
        registry,
        "kafka_server_metadataloader_",
        (
            ("currentcontrollerid", "The active controller; -1 for none.", lambda: quorum.leader.node_id),
            (
                "currentmetadataversion",
                "The level of metadata.version in force.",
                lambda: quorum.image.features.metadata_version,
            ),
        ),
    )


def declare_broker_metadata_metrics(registry: Registry, broker: Broker) -> None:
    quorum = broker.quorum
    lag = MetadataLag(quorum, lambda: broker.image)
    declare_single(
        registry,
        "kafka_server_brokermetadatametrics_",
        (
            (
                "last_applied_record_offset",
                "The last metadata record this broker has applied.",
                lambda: broker.image.offset,
            ),
            (
                "last_applied_record_timestamp",
                "When that record was written, in milliseconds.",
                lambda: broker.image.timestamp_ms,
            ),
            (
                "last_applied_record_lag_ms",
                "For how long something committed has waited here, or no controller has been known.",
                lag.read_ms,
            ),
            (
                "metadata_load_error_count",
                "Contradictions in the metadata, and failures of its log.",
                lambda: quorum.statistics.fault_count,
            ),
            (
                "metadata_apply_error_count",
                "Partitions that should be here and whose log could not be made or opened.",
                lambda: sum(len(topic.unusable) for topic in broker.topics.by_name.values()),
            ),
        ),
    )
