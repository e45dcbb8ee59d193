"""The group coordinator of this node: one shard for each partition of ``__consumer_offsets`` that it leads.

The node reports leadership changes, topic metadata and deleted topics to it; the handlers call it with a group id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millbeck.coordinator.config import GroupShardOptions
from millbeck.coordinator.group.assignors import ASSIGNORS, Assignor
from millbeck.coordinator.group.assignors.guarded import GuardedAssignor, GuardedShareAssignor
from millbeck.coordinator.group.consumer.cluster_view import ClusterView, GroupSettings, StreamsSettings
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard
from millbeck.coordinator.group.share.assignor import Assignor as ShareAssignor
from millbeck.coordinator.group.share.assignor import assign
from millbeck.coordinator.group.share.groups import BuildShareGroups, without_coordinator
from millbeck.coordinator.group.statistics import CommittedOffset, ShardStatistics
from millbeck.coordinator.protocol_config import SHARE_ASSIGNORS, ConsumerProtocolOptions, StreamsProtocolOptions
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage, ResourceType
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.config import NodeConfig
from millbeck.server.config.sections.groups import ConsumerGroupOptions, StreamsGroupOptions
from millbeck.server.context import NodeContext
from millbeck.server.coordinators.coordinator import CoordinatorDriver
from millbeck.server.coordinators.shard_background import GroupHost, ShardBackground
from millbeck.server.coordinators.shard_driver import CoordinatorTopic
from millbeck.server.seams import load_seam


def consumer_assignors(config: NodeConfig) -> dict[str, Assignor]:
    """The assignors of consumer groups that the node's file names; raises `InvalidConfig`."""
    options = config.consumer_groups
    setting = type(options).assignors.name

    def made(name: str) -> Assignor:
        group = "millbeck.consumer_assignor"
        seam = load_seam(group, setting, name, config.texts, method="assign", built_in=ASSIGNORS)
        return GuardedAssignor(name, seam)

    return {name: ASSIGNORS.get(name) or made(name) for name in options.assignor_names}


def share_assignor(config: NodeConfig) -> ShareAssignor:
    """The assignor of share groups; raises `InvalidConfig`."""
    options = config.share_groups
    name = options.assignor_name
    if name in SHARE_ASSIGNORS:
        return assign
    group, setting = "millbeck.share_assignor", type(options).assignors.name
    return GuardedShareAssignor(
        name, load_seam(group, setting, name, config.texts, method="assign", built_in=SHARE_ASSIGNORS)
    )


class GroupDriver(CoordinatorDriver[GroupShard, GroupRecord]):
    def __init__(
        self,
        context: NodeContext,
        share: BuildShareGroups = without_coordinator,
    ) -> None:
        config = context.config
        consumer, topic = config.consumer_groups, config.offsets_topic
        self._share = share
        self._options = GroupShardOptions(
            classic=config.classic_groups,
            offsets=config.offsets,
            consumer=consumer,
            streams=config.streams_groups,
            assignors=consumer_assignors(config),
        )
        self.cluster = ClusterView(self._settings({}), self._streams_settings({}))
        super().__init__(
            context,
            CoordinatorTopic(
                name=CONSUMER_OFFSETS_TOPIC,
                partition_count=topic.partition_count,
                commit_timeout_ms=topic.commit_timeout_ms,
                load_buffer_bytes=topic.load_buffer_bytes,
                codec=Codec(topic.compression_codec),
            ),
            self._build_shard,
        )

    def _build_shard(self, partition: Partition, registry: SnapshotRegistry, timers: Timers[GroupRecord]) -> GroupShard:
        index = partition.name.partition

        def host_of() -> GroupHost | None:
            driver = self._drivers.get(index)
            return driver.host if driver is not None and driver.host.shard is shard else None

        background = ShardBackground(self._environment, self._spawn, host_of)
        shard = GroupShard(
            registry, timers, self._options, cluster=self.cluster, background=background, share=self._share
        )
        return shard

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Pass changed topic metadata and group configurations on to the groups."""
        if delta.topics.deleted or delta.topics.changed_topic_ids or delta.cluster.brokers.changed:
            self.cluster.publish(image)
        if any(resource.type == ResourceType.GROUP for resource in delta.configs.changed):
            names = image.configs.names(ResourceType.GROUP)
            texts = {name: image.configs.of_group(name) for name in names}
            self.cluster.publish_settings(
                {name: self._settings(own) for name, own in texts.items()},
                {name: self._streams_settings(own) for name, own in texts.items()},
            )

    def _settings(self, texts: Mapping[str, str]) -> GroupSettings:
        """The configuration of a consumer group, clamped to this broker's limits."""
        return GroupSettings(*_membership(texts, ConsumerGroupOptions, self._options.consumer))

    def _streams_settings(self, texts: Mapping[str, str]) -> StreamsSettings:
        """The configuration of a streams group, clamped to this broker's limits."""
        options, names = self._options.streams, StreamsGroupOptions
        delay_ms = texts.get(names.initial_rebalance_delay_ms.name, options.initial_rebalance_delay_ms)
        standbys = int(texts.get(names.standby_replica_count.name, options.standby_replica_count))
        return StreamsSettings(
            *_membership(texts, names, options), int(delay_ms), min(standbys, options.standby_replica_count_max)
        )

    def topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Remove the offsets committed for these topics, given as (name, id)."""
        self.write_all(lambda shard: shard.on_topics_deleted(deleted))

    # Metrics

    def statistics(self) -> list[ShardStatistics]:
        return [driver.host.shard.statistics() for driver in self._active()]

    def committed_offsets(self) -> Iterator[CommittedOffset]:
        for driver in self._active():
            yield from driver.host.shard.committed_offsets()


def _membership(
    texts: Mapping[str, str],
    names: type[ConsumerGroupOptions | StreamsGroupOptions],
    options: ConsumerProtocolOptions | StreamsProtocolOptions,
) -> tuple[int, int, int]:
    """Session timeout, heartbeat interval and assignment interval of a group, within the broker's limits."""

    def read(name: str, default: int, smallest: int, largest: int) -> int:
        return min(max(int(texts[name]), smallest), largest) if name in texts else default

    return (
        read(
            names.session_timeout_ms.name,
            options.session_timeout_ms,
            options.session_timeout_ms_min,
            options.session_timeout_ms_max,
        ),
        read(
            names.heartbeat_interval_ms.name,
            options.heartbeat_interval_ms,
            options.heartbeat_interval_ms_min,
            options.heartbeat_interval_ms_max,
        ),
        read(
            names.assignment_interval_ms.name,
            options.assignment_interval_ms,
            options.assignment_interval_ms_min,
            options.assignment_interval_ms_max,
        ),
    )
