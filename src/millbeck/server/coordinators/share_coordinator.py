"""The share coordinator of this node: one shard for each partition of ``__share_group_state`` that it leads.

Its topic is not compacted: every ``share.coordinator.state.topic.prune.interval.ms`` the beginning of each partition is
deleted, up to the oldest record that is still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from millbeck.coordinator.runtime.host import State
from millbeck.coordinator.share.records import ShareRecord
from millbeck.coordinator.share.shard import ShareKey, ShareShard, ShareShardOptions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.kernel.names import SHARE_GROUP_STATE_TOPIC
from millbeck.kernel.timer_wheel import Timer
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.config.sections.share_groups import ShareCoordinatorOptions
from millbeck.server.deadlines import Deadlines
from millbeck.server.drivers.coordinator import CoordinatorDriver, CoordinatorTopic

NOTHING_TO_PRUNE: Final = 0


def key_text(key: ShareKey) -> str:
    """As FindCoordinator has it; what decides which partition keeps the state."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


class ShareStateDriver(CoordinatorDriver[ShareShard, ShareRecord]):
    def __init__(
        self,
        environment: Environment,
        deadlines: Deadlines,
        options: ShareCoordinatorOptions,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[Exception], None],
    ) -> None:
        self._prune_interval_ms = options.prune_interval_ms
        self._prune_timer: Timer | None = None
        shard_options = ShareShardOptions(
            updates_per_snapshot=options.snapshot_update_records,
            cold_interval_ms=options.cold_partition_snapshot_interval_ms,
        )
        super().__init__(
            environment,
            deadlines,
            CoordinatorTopic(
                name=SHARE_GROUP_STATE_TOPIC,
                partition_count=options.partition_count,
                commit_timeout_ms=options.write_timeout_ms,
                load_buffer_bytes=options.load_buffer_bytes,
                codec=Codec(options.compression_codec),
                is_compacted=False,
            ),
            lambda _, registry, timers: ShareShard(registry, timers, shard_options),
            spawn=spawn,
            report=report,
        )

    def topics_deleted(self, deleted: Sequence[tuple[str, Uuid]]) -> None:
        """The state of what groups did with these topics, given as (name, id), is removed."""
        topic_ids = frozenset(topic_id for _, topic_id in deleted)
        self.write_all(lambda shard: shard.on_topics_deleted(topic_ids))

    # Keeping the logs short

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
        """Delete what no shard would need if it were loaded anew; how many records that were."""
        count = 0
        for driver in self._active():
            partition, host = driver.partition, driver.host
            offset = min(host.shard.redundant_offset(host.written_offset), host.committed_offset)
            before = partition.log.log_start_offset
            if not partition.is_leader or offset <= before:
                continue
            try:
                partition.log.delete_records(offset)
            except ApiError as error:
                self._report(error)
                continue
            partition.log_start_moved()
            count += partition.log.log_start_offset - before
        return count

    def close(self) -> None:
        if self._prune_timer is not None:
            self._prune_timer.cancel()
        super().close()

    # Metrics

    def write_count(self) -> int:
        return sum(driver.host.shard.write_count for driver in self._active())

    def shard_counts(self) -> dict[str, int]:
        """How many shards are in each state."""
        counts = dict.fromkeys((state.value for state in State), 0)
        for driver in self._drivers.values():
            counts[driver.host.state.value] += 1
        return counts
