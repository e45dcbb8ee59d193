"""Metrics of the groups that this broker coordinates: committed offsets, consumer lag, and group states.

Lag is exported for groups without live members too. The end offset of a partition with a local replica is known here.
For other partitions it is requested from their leaders, and the next scrape shows the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.ids import TopicPartition, holds_batch_notes
from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.replicas.remote_end_offsets import RemoteEndOffsets

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

_TOTALS: Final = (
    ("offset_commit", "offset_commits", "Offsets committed."),
    ("offset_expiration", "offset_expirations", "Offsets that expired."),
    ("offset_deletion", "offset_deletions", "Offsets deleted by OffsetDelete requests."),
    ("group_completed_rebalance", "completed_rebalances", "Completed rebalances of classic groups."),
    ("consumer_group_rebalance", "consumer_rebalances", "New group epochs of consumer groups (KIP-848)."),
    ("streams_group_rebalance", "streams_rebalances", "New group epochs of streams groups (KIP-1071)."),
)
"""Metric name, shard counter and help text; the counters restart at 0 when a shard is loaded."""


def declare_group_metrics(registry: Registry, broker: Broker) -> None:
    lags = GroupLags(broker)
    labels = ["consumergroup", "topic", "partition"]

    def offsets() -> Rows:
        return [
            ((each.group_id, each.topic, each.partition), each.offset)
            for each in broker.groups.committed_offsets()
            if not holds_batch_notes(each.group_id)
        ]

    registry.callback_gauge("kafka_consumergroup_current_offset", "The committed offset.", labels, offsets)
    registry.callback_gauge(
        "kafka_consumergroup_lag",
        "Records between the committed offset and the end of the partition.",
        labels,
        lags.rows,
    )

    def groups() -> Rows:
        totals: dict[str, int] = {}
        for statistics in broker.groups.statistics():
            for state, count in statistics.group_counts.items():
                totals[state] = totals.get(state, 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.callback_gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups by state.", ["state"], groups
    )
    _declare_coordinator_metrics(registry, broker)


def _declare_coordinator_metrics(registry: Registry, broker: Broker) -> None:
    """The metrics of Kafka's group-coordinator-metrics group."""
    prefix = "kafka_server_group_coordinator_metrics_"

    def by_protocol() -> Rows:
        found = broker.groups.statistics()
        classic = sum(sum(each.group_counts.values()) for each in found)
        consumer = sum(sum(each.consumer_group_counts.values()) for each in found)
        streams = sum(sum(each.streams_group_counts.values()) for each in found)
        return [(("classic",), classic), (("consumer",), consumer), (("streams",), streams)]

    def by_state(attribute: str) -> Callable[[], Rows]:
        def rows() -> Rows:
            totals: dict[str, int] = {}
            for statistics in broker.groups.statistics():
                for state, count in getattr(statistics, attribute).items():
                    totals[state.lower()] = totals.get(state.lower(), 0) + count
            return [((state,), count) for state, count in totals.items()]

        return rows

    def total(name: str) -> Callable[[], Rows]:
        return lambda: [((), sum(getattr(each.counters, name) for each in broker.groups.statistics()))]

    registry.callback_gauge(prefix + "group_count", "Groups by the protocol they use.", ["protocol"], by_protocol)
    for kind, text in (("consumer", "Consumer groups (KIP-848)"), ("streams", "Streams groups (KIP-1071)")):
        rows = by_state(f"{kind}_group_counts")
        registry.callback_gauge(prefix + f"{kind}_group_count", f"{text} by state.", ["state"], rows)
    for name, attribute, text in _TOTALS:
        registry.callback_counter(prefix + name + "_count", text, [], total(attribute))


class GroupLags:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._remote_ends = RemoteEndOffsets(
            broker.environment,
            address_of=broker.replication.address_of,
            connection_settings=broker.replication.connection_settings,
            spawn=broker.spawn,
        )

    def rows(self) -> Rows:
        ends = self._ends()
        for each in self._broker.groups.committed_offsets():
            end_offset = ends.get(TopicPartition(each.topic, each.partition))
            if end_offset is not None and not holds_batch_notes(each.group_id):
                yield (each.group_id, each.topic, each.partition), max(0, end_offset - each.offset)

    def _ends(self) -> dict[TopicPartition, int]:
        """The end offsets of all existing partitions with a committed offset."""
        broker = self._broker
        ends: dict[TopicPartition, int] = {}
        elsewhere: dict[TopicPartition, int] = {}
        for each in broker.groups.committed_offsets():
            name = TopicPartition(each.topic, each.partition)
            if name in ends or name in elsewhere:
                continue
            topic = broker.topics.by_name.get(each.topic)
            partition = None if topic is None else topic.partitions.get(each.partition)
            if partition is not None:
                ends[name] = partition.high_watermark
                continue
            registration = broker.image.topics.partition(each.topic, each.partition)
            if registration is not None and registration.has_leader:
                elsewhere[name] = registration.leader
        ends.update(self._remote_ends.read(elsewhere))
        return ends
