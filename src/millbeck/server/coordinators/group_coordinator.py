"""The group coordinator of this node: one shard for each partition of ``__consumer_offsets`` that it leads.

The node tells it which partitions it leads, what the topics look like and which were deleted; the handlers ask it by
group id.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from millbeck.coordinator.config import ClassicGroupOptions, OffsetOptions, OffsetsTopicOptions
from millbeck.coordinator.group.consumer.cluster_view import ClusterView, GroupSettings
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard, GroupShardOptions
from millbeck.coordinator.group.share.groups import BuildShareGroups, without_coordinator
from millbeck.coordinator.group.statistics import CommittedOffset, ShardStatistics
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.environment import Environment
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage, ResourceType
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.config.sections.groups import ConsumerGroupOptions
from millbeck.server.deadlines import Deadlines
from millbeck.server.drivers.coordinator import CoordinatorDriver, CoordinatorTopic
from millbeck.server.drivers.shard_background import GroupHost, ShardBackground


class GroupDriver(CoordinatorDriver[GroupShard, GroupRecord]):
    def __init__(
        self,
        environment: Environment,
        deadlines: Deadlines,
        *,
        classic: ClassicGroupOptions,
        consumer: ConsumerProtocolOptions,
        offsets: OffsetOptions,
        topic: OffsetsTopicOptions,
        share: BuildShareGroups = without_coordinator,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[Exception], None],
    ) -> None:
        self._share = share
        self._options = GroupShardOptions(classic=classic, offsets=offsets, consumer=consumer)
        self.cluster = ClusterView(
            GroupSettings(consumer.session_timeout_ms, consumer.heartbeat_interval_ms, consumer.assignment_interval_ms)
        )
        super().__init__(
            environment,
            deadlines,
            CoordinatorTopic(
                name=CONSUMER_OFFSETS_TOPIC,
                partition_count=topic.partition_count,
                commit_timeout_ms=topic.commit_timeout_ms,
                load_buffer_bytes=topic.load_buffer_bytes,
                codec=Codec(topic.compression_codec),
            ),
            self._build_shard,
            spawn=spawn,
            report=report,
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
        """Let groups see what topics look like now, and what was set for single groups."""
        if delta.topics.deleted or delta.topics.changed_topic_ids or delta.cluster.brokers.changed:
            self.cluster.publish(image)
        if any(resource.type == ResourceType.GROUP for resource in delta.configs.changed):
            names = image.configs.names(ResourceType.GROUP)
            self.cluster.publish_settings({name: self._settings(image.configs.of_group(name)) for name in names})

    def _settings(self, texts: Mapping[str, str]) -> GroupSettings:
        """A group's own settings, within the bounds that this broker sets."""
        options = self._options.consumer

        def read(name: str, default: int, smallest: int, largest: int) -> int:
            return min(max(int(texts[name]), smallest), largest) if name in texts else default

        return GroupSettings(
            read(
                ConsumerGroupOptions.session_timeout_ms.name,
                options.session_timeout_ms,
                options.session_timeout_ms_min,
                options.session_timeout_ms_max,
            ),
            read(
                ConsumerGroupOptions.heartbeat_interval_ms.name,
                options.heartbeat_interval_ms,
                options.heartbeat_interval_ms_min,
                options.heartbeat_interval_ms_max,
            ),
            read(
                ConsumerGroupOptions.assignment_interval_ms.name,
                options.assignment_interval_ms,
                options.assignment_interval_ms_min,
                options.assignment_interval_ms_max,
            ),
        )

    def topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Offsets committed for these topics, given as (name, id), are removed."""
        self.write_all(lambda shard: shard.on_topics_deleted(deleted))

    # Metrics

    def statistics(self) -> list[ShardStatistics]:
        return [driver.host.shard.statistics() for driver in self._active()]

    def committed_offsets(self) -> Iterator[CommittedOffset]:
        for driver in self._active():
            yield from driver.host.shard.committed_offsets()
