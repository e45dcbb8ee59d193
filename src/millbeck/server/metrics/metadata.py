"""Metrics of a node's progress in applying the metadata log, under Kafka's names.

Kafka derives the lag from the age of the last record, which works because its controller writes an empty record twice a
second. Here an idle controller writes nothing, so the lag is measured: how long a committed record has waited to be
applied, or how long no quorum leader has been known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry
from millbeck.metadata.image import MetadataImage
from millbeck.server.metrics.tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.metadata.quorum_driver import QuorumDriver


class MetadataLag:
    """The lag of the applied image. It is measured from the first read that finds the image behind, which returns 0."""

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
                "Offset of the last metadata record applied by this broker.",
                lambda: broker.image.offset,
            ),
            (
                "last_applied_record_timestamp",
                "Timestamp in milliseconds of the last applied metadata record.",
                lambda: broker.image.timestamp_ms,
            ),
            (
                "last_applied_record_lag_ms",
                "Milliseconds that a committed record has waited to be applied, or that no controller has been known.",
                lag.read_ms,
            ),
            (
                "metadata_load_error_count",
                "Inconsistent metadata records and failures of the metadata log.",
                lambda: quorum.statistics.fault_count,
            ),
            (
                "metadata_apply_error_count",
                "Partitions assigned to this broker whose log could not be created or opened.",
                lambda: sum(len(topic.unusable) for topic in broker.topics.by_name.values()),
            ),
        ),
    )
