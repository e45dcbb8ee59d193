"""The group coordinator of this node: one shard for each partition of ``__consumer_offsets`` that it leads.

The node tells it which partitions it leads and which topics were deleted; the handlers ask it by group id.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from millbeck.coordinator.config import ClassicGroupOptions, OffsetOptions, OffsetsTopicOptions
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard, GroupShardOptions
from millbeck.coordinator.group.statistics import CommittedOffset, ShardStatistics
from millbeck.kernel.environment import Environment
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.records.compression import Codec
from millbeck.server.deadlines import Deadlines
from millbeck.server.drivers.coordinator import CoordinatorDriver, CoordinatorTopic


class GroupDriver(CoordinatorDriver[GroupShard, GroupRecord]):
    def __init__(
        self,
        environment: Environment,
        deadlines: Deadlines,
        *,
        classic: ClassicGroupOptions,
        offsets: OffsetOptions,
        topic: OffsetsTopicOptions,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[Exception], None],
    ) -> None:
        options = GroupShardOptions(classic=classic, offsets=offsets)
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
            lambda _, registry, timers: GroupShard(registry, timers, options),
            spawn=spawn,
            report=report,
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
