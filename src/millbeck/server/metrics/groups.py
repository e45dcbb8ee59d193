"""Groups that this broker coordinates: their offsets, how far they are behind, and what states they are in.

Lag is served for groups without live members too. Where a partition ends is known here when this broker has a replica
of it; of the others their leaders are asked, and the next page shows what they said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.remote_ends import RemoteEnds

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

_TOTALS: Final = (
    ("offset_commit", "offset_commits", "Offsets committed."),
    ("offset_expiration", "offset_expirations", "Offsets that were dropped because of their age."),
    ("offset_deletion", "offset_deletions", "Offsets deleted by request."),
    ("group_completed_rebalance", "completed_rebalances", "Rebalances of classic groups that were completed."),
    ("consumer_group_rebalance", "consumer_rebalances", "New epochs of groups in which the broker assigns."),
)
"""Metric, counter of a shard and meaning; they begin anew when a shard is loaded."""


def declare_group_metrics(registry: Registry, broker: Broker) -> None:
    lags = GroupLags(broker)
    labels = ["consumergroup", "topic", "partition"]

    def offsets() -> Rows:
        return [
            ((each.group_id, each.topic, each.partition), each.offset) for each in broker.groups.committed_offsets()
        ]

    registry.gauge_from("kafka_consumergroup_current_offset", "The committed offset.", labels, offsets)
    registry.gauge_from(
        "kafka_consumergroup_lag", "Records between the committed offset and the end.", labels, lags.rows
    )

    def groups() -> Rows:
        totals: dict[str, int] = {}
        for statistics in broker.groups.statistics():
            for state, count in statistics.group_counts.items():
                totals[state] = totals.get(state, 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.gauge_from("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups by state.", ["state"], groups)
    _declare_coordinator_metrics(registry, broker)


def _declare_coordinator_metrics(registry: Registry, broker: Broker) -> None:
    """What Kafka's brokers have under group-coordinator-metrics."""
    prefix = "kafka_server_group_coordinator_metrics_"

    def by_protocol() -> Rows:
        found = broker.groups.statistics()
        classic = sum(sum(each.group_counts.values()) for each in found)
        consumer = sum(sum(each.consumer_group_counts.values()) for each in found)
        return [(("classic",), classic), (("consumer",), consumer)]

    def consumer_by_state() -> Rows:
        totals: dict[str, int] = {}
        for statistics in broker.groups.statistics():
            for state, count in statistics.consumer_group_counts.items():
                totals[state.lower()] = totals.get(state.lower(), 0) + count
        return [((state,), count) for state, count in totals.items()]

    def total(name: str) -> Callable[[], Rows]:
        return lambda: [((), sum(getattr(each.counters, name) for each in broker.groups.statistics()))]

    registry.gauge_from(prefix + "group_count", "Groups by the protocol they use.", ["protocol"], by_protocol)
    registry.gauge_from(
        prefix + "consumer_group_count", "Groups in which the broker assigns, by state.", ["state"], consumer_by_state
    )
    for name, attribute, text in _TOTALS:
        registry.counter_from(prefix + name + "_count", text, [], total(attribute))


class GroupLags:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._remote_ends = RemoteEnds(
            broker.environment,
            address_of=broker.replication.address_of,
            connection_settings=broker.replication.connection_settings,
            spawn=broker.spawn,
        )

    def rows(self) -> Rows:
        ends = self._ends()
        for each in self._broker.groups.committed_offsets():
            end_offset = ends.get(TopicPartition(each.topic, each.partition))
            if end_offset is not None:
                yield (each.group_id, each.topic, each.partition), max(0, end_offset - each.offset)

    def _ends(self) -> dict[TopicPartition, int]:
        """Of every partition that a group has committed and that there is."""
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
