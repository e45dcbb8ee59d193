"""The share coordinator of this node: one shard for each partition of ``__share_group_state`` that it leads.

Its topic is not compacted: every ``share.coordinator.state.topic.prune.interval.ms`` the beginning of each partition is
deleted, up to the oldest record that is still needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.coordinator.runtime.shard_runner import ShardState
from millbeck.coordinator.share.records import ShareRecord
from millbeck.coordinator.share.shard import ShareKey, ShareShard, ShareShardOptions
from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.kernel.names import SHARE_GROUP_STATE_TOPIC
from millbeck.kernel.timer_wheel import Timer
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.context import NodeContext
from millbeck.server.coordinators.coordinator import CoordinatorDriver
from millbeck.server.coordinators.shard_driver import CoordinatorTopic, ShardDriver

NOTHING_TO_PRUNE: Final = 0


def key_text(key: ShareKey) -> str:
    """The key as in FindCoordinator; its hash selects the partition that stores the state."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


class ShareStateDriver(CoordinatorDriver[ShareShard, ShareRecord]):
    def __init__(
        self,
        context: NodeContext,
    ) -> None:
        options = context.config.share_coordinator
        self._prune_interval_ms = options.prune_interval_ms
        self._prune_timer: Timer | None = None
        shard_options = ShareShardOptions(
            updates_per_snapshot=options.snapshot_update_records,
            cold_interval_ms=options.cold_partition_snapshot_interval_ms,
        )
        super().__init__(
            context,
            CoordinatorTopic(
                name=SHARE_GROUP_STATE_TOPIC,
                partition_count=options.partition_count,
                commit_timeout_ms=options.write_timeout_ms,
                load_buffer_bytes=options.load_buffer_bytes,
                codec=Codec(options.compression_codec),
                is_compacted=False,
            ),
            lambda _, registry, timers: ShareShard(registry, timers, shard_options),
        )

    def topics_deleted(self, deleted: Sequence[tuple[str, Uuid]]) -> None:
        """Remove the share state of these topics, given as (name, id)."""
        topic_ids = frozenset(topic_id for _, topic_id in deleted)
        self.write_all(lambda shard: shard.on_topics_deleted(topic_ids))

    # Pruning

    def partition_led(self, partition: Partition) -> None:
        super().partition_led(partition)
        if self._prune_timer is None:
            self._prune_timer = self._deadlines.after(self._prune_interval_ms, self._prune_due)

    def _prune_due(self) -> None:
        self._prune_timer = None
        if self._drivers:
            self._prune_timer = self._deadlines.after(self._prune_interval_ms, self._prune_due)
            self.prune()

    def prune(self) -> int:
        """Delete the records that a shard would not need to load again; returns the number of records."""
        count = 0
        for driver in self._active():
            try:
                count += self._prune(driver)
            except Exception as error:
                self._report(error)
        return count

    def _prune(self, driver: ShardDriver[ShareShard, ShareRecord]) -> int:
        partition, host = driver.partition, driver.host
        offset = min(host.shard.prunable_offset(host.written_offset), host.committed_offset)
        before = partition.log.log_start_offset
        if not partition.is_leader or offset <= before:
            return 0
        partition.log.delete_records(offset)
        partition.log_start_moved()
        return partition.log.log_start_offset - before

    def close(self) -> None:
        if self._prune_timer is not None:
            self._prune_timer.cancel()
        super().close()

    # Metrics

    def write_count(self) -> int:
        return sum(driver.host.shard.write_count for driver in self._active())

    def shard_counts(self) -> dict[str, int]:
        """The number of shards in each state."""
        counts = dict.fromkeys((state.value for state in ShardState), 0)
        for driver in self._drivers.values():
            counts[driver.host.state.value] += 1
        return counts
