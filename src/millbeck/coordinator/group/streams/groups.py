"""The streams groups of a shard: replays their records and describes them; `membership` handles their heartbeats.

They share one id space with classic and consumer groups: ``groups`` holds them all.
"""

from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.background import BackgroundExecutor
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.statistics import Counters
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.internal_topics import ConfiguredTopology, configure
from millbeck.coordinator.group.streams.membership import StreamsGroupMembership
from millbeck.coordinator.group.streams.records import StreamsGroupKey, StreamsGroupMetadataKey
from millbeck.coordinator.group.streams.topology import Topology
from millbeck.coordinator.protocol_config import StreamsProtocolOptions
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.timeline import TimelineDict
from millbeck.wire.messages.streams_groups import (
    DescribedStreamsGroup,
    DescribedSubtopology,
    DescribedTopology,
    Subtopology,
    TopicInfo,
)


class StreamsGroups:
    def __init__(
        self,
        groups: TimelineDict[str, Any],
        timers: Timers[GroupRecord],
        options: StreamsProtocolOptions,
        *,
        cluster: ClusterView,
        background: BackgroundExecutor,
        counters: Counters,
    ) -> None:
        self._groups = groups
        self._cluster = cluster
        self.membership = StreamsGroupMembership(groups, timers, options, cluster, background, counters)

    def replay(self, key: StreamsGroupKey, value: Any) -> None:
        """Replay a record; the value is of the class that matches the key, or None for a tombstone."""
        known = self._groups.get(key.group_id)
        group = known if isinstance(known, StreamsGroup) else None
        if isinstance(key, StreamsGroupMetadataKey) and value is None:
            if group is not None:
                del self._groups[key.group_id]
                self.membership.forget(key.group_id)
        elif group is not None or value is not None:
            # The group so far had only offsets, or there was none.
            self._groups[key.group_id] = (group or StreamsGroup(group_id=key.group_id)).replayed(key, value)

    def describe(self, group_id: str, at: int) -> DescribedStreamsGroup:
        group = self._groups.get_at(group_id, at)
        if not isinstance(group, StreamsGroup):
            reason = "not found" if group is None else "is not a streams group"
            return DescribedStreamsGroup(
                error_code=errors.GroupIdNotFound.code, error_message=f"Group {group_id} {reason}.", group_id=group_id
            )
        return DescribedStreamsGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=None if group.topology is None else self._described(group.topology),
            members=[member.described(group.target_of(member.member_id)) for member in group.members.values()],
        )

    def _described(self, topology: Topology) -> DescribedTopology:
        """The topology with the derived partition counts if all topics exist; otherwise as it was sent."""
        try:
            configured = configure(topology, self._cluster)
        except errors.StreamsInvalidTopology:
            configured = ConfiguredTopology()
        counts = configured.partition_counts if configured.is_ready else {}
        return DescribedTopology(
            topology.epoch, [_described_subtopology(each, counts) for each in topology.subtopologies.values()]
        )


def _described_subtopology(subtopology: Subtopology, counts: Any) -> DescribedSubtopology:
    def described(infos: list[TopicInfo]) -> list[TopicInfo]:
        found = [
            TopicInfo(
                info.name, info.partitions or counts.get(info.name, 0), info.replication_factor, info.topic_configs
            )
            for info in infos
        ]
        return sorted(found, key=lambda info: info.name)

    return DescribedSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=described(subtopology.state_changelog_topics),
        repartition_source_topics=described(subtopology.repartition_source_topics),
    )
