"""The client's cache of cluster metadata: brokers, topics, leaders. Pure: updated by responses.

A response may come from a broker with stale metadata. A partition's leader is therefore only replaced by one with the
same or a later leader epoch, as long as the topic id is the same; a topic that was deleted and created again has a new
id, so all its metadata is replaced. Leaders named in Produce and Fetch responses (KIP-951) follow the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from millbeck.client.addresses import Address
from millbeck.kernel.errors import ApiError, LeaderNotAvailable, UnknownTopicOrPartition, from_code
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_LEADER: Final = -1
NO_EPOCH: Final = -1


class BrokerMetadata(NamedTuple):
    node_id: int
    address: Address
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    partition: int
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error_code: int = 0


class TopicView(NamedTuple):
    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: dict[int, PartitionMetadata]

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


class Metadata:
    """The metadata cache of one client."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicView] = {}
        self.errors: dict[str, ApiError] = {}
        """The error of each requested topic that is not in `topics`."""
        self._names_by_id: dict[Uuid, str] = {}

    def update(self, response: MetadataResponse, *, is_complete: bool = False) -> None:
        """Apply a response; ``is_complete`` says that it lists all topics."""
        if response.cluster_id is not None:
            self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.brokers = {
                broker.node_id: BrokerMetadata(broker.node_id, Address(broker.host, broker.port), broker.rack)
                for broker in response.brokers
            }
        if is_complete:
            listed = {topic.name for topic in response.topics}
            for name in [name for name in self.topics if name not in listed]:
                self._forget(name)
            self.errors.clear()
        for topic in response.topics:
            self._update_topic(topic)

    def _update_topic(self, topic: MetadataResponseTopic) -> None:
        name = topic.name if topic.name is not None else self._names_by_id.get(topic.topic_id)
        if name is None:
            return
        if topic.error_code:
            self.errors[name] = from_code(topic.error_code)
            if topic.error_code == UnknownTopicOrPartition.code:
                self._forget(name)
            return
        self.errors.pop(name, None)
        known = self.topics.get(name)
        is_same = known is not None and (topic.topic_id == ZERO_UUID or known.topic_id in (ZERO_UUID, topic.topic_id))
        before = known.partitions if known is not None and is_same else {}
        partitions = {
            partition.partition_index: _newer(before.get(partition.partition_index), _view_of(partition))
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        }
        if known is not None:
            self._names_by_id.pop(known.topic_id, None)
        topic_id = known.topic_id if known is not None and topic.topic_id == ZERO_UUID else topic.topic_id
        self.topics[name] = TopicView(name, topic_id, topic.is_internal, partitions)
        if topic_id != ZERO_UUID:
            self._names_by_id[topic_id] = name

    def _forget(self, name: str) -> None:
        known = self.topics.pop(name, None)
        if known is not None:
            self._names_by_id.pop(known.topic_id, None)

    def forget_topics(self, names: Iterable[str]) -> None:
        for name in names:
            self._forget(name)
            self.errors.pop(name, None)

    def set_leader(self, topic: str, partition: int, leader_id: int, leader_epoch: int) -> bool:
        """Apply a leader named in another response; returns whether it is new."""
        known = self.topics.get(topic)
        view = known.partitions.get(partition) if known is not None else None
        if known is None or view is None or leader_id < 0 or leader_epoch <= view.leader_epoch:
            return False
        known.partitions[partition] = view._replace(leader_id=leader_id, leader_epoch=leader_epoch, error_code=0)
        return True

    def add_broker(self, broker: BrokerMetadata) -> None:
        self.brokers[broker.node_id] = broker

    def learn_broker(self, node_id: int, host: str, port: int, rack: str | None = None) -> None:
        """Add a broker named in another response, if it is not known yet."""
        self.brokers.setdefault(node_id, BrokerMetadata(node_id, Address(host, port), rack))

    def topic_name(self, topic_id: Uuid) -> str | None:
        return self._names_by_id.get(topic_id)

    def topic_id(self, name: str) -> Uuid:
        """The id of a topic; `ZERO_UUID` if it is not known."""
        known = self.topics.get(name)
        return ZERO_UUID if known is None else known.topic_id

    def partition(self, topic: str, partition: int) -> PartitionMetadata:
        """The metadata of a partition. Raises `UnknownTopicOrPartition`, or the error the broker returned for the
        topic."""
        known = self.topics.get(topic)
        if known is None:
            raise self.errors.get(topic) or UnknownTopicOrPartition(f"topic {topic} is not in the cluster metadata")
        view = known.partitions.get(partition)
        if view is None:
            raise UnknownTopicOrPartition(
                f"topic {topic} has {known.partition_count} partitions, no partition {partition}"
            )
        return view

    def leader(self, topic: str, partition: int) -> BrokerMetadata:
        """The leader. Raises like `partition`, and `LeaderNotAvailable` if there is no leader or it is unknown."""
        view = self.partition(topic, partition)
        broker = self.brokers.get(view.leader_id)
        if broker is None:
            raise LeaderNotAvailable(f"{topic}-{partition} has no leader now")
        return broker

    def without_leader(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The given partitions that have no leader at the moment; unknown partitions are omitted."""
        missing = []
        for partition in partitions:
            try:
                self.leader(*partition)
            except LeaderNotAvailable:
                missing.append(partition)
            except ApiError:
                pass
        return missing


def _view_of(partition: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        partition.error_code,
    )


def _newer(known: PartitionMetadata | None, told: PartitionMetadata) -> PartitionMetadata:
    if known is None or told.leader_epoch == NO_EPOCH or told.leader_epoch >= known.leader_epoch:
        return told
    return known
