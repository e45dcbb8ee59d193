"""The group coordinator of this node: one shard for each partition of ``__consumer_offsets`` that it leads.

The node tells it which partitions it leads and which topics were deleted; the handlers ask it by group id.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from millbeck.coordinator.config import ClassicGroupOptions, OffsetOptions, OffsetsTopicOptions
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard, GroupShardOptions
from millbeck.coordinator.group.statistics import CommittedOffset, ShardStatistics
from millbeck.coordinator.partitioner import partition_for
from millbeck.coordinator.runtime.host import ShardHost, State
from millbeck.coordinator.runtime.result import Reply, Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotCoordinator
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.deadlines import Deadlines
from millbeck.server.drivers.shard import ShardDriver

T = TypeVar("T")

GroupHost = ShardHost[GroupShard, GroupRecord]


class GroupDriver:
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
        self._environment = environment
        self._deadlines = deadlines
        self._options = GroupShardOptions(classic=classic, offsets=offsets)
        self._spawn = spawn
        self._report = report
        self._drivers: dict[int, ShardDriver[GroupShard, GroupRecord]] = {}
        self.topic = topic
        self.partition_count = topic.partition_count
        """Of the topic as it is; of the one that would be created until there is one."""

    # The node's side

    def partition_led(self, partition: Partition) -> None:
        """This node leads the partition from now on: load its shard, unless it has it already.

        Leading on in a new epoch changes nothing; a shard that has failed is given another try.
        """
        index = partition.name.partition
        known = self._drivers.get(index)
        if known is not None and known.partition is partition and known.host.state is not State.FAILED:
            return
        self.partition_lost(index)
        driver: ShardDriver[GroupShard, GroupRecord] = ShardDriver(
            partition,
            lambda registry, timers: GroupShard(registry, timers, self._options),
            environment=self._environment,
            deadlines=self._deadlines,
            commit_timeout_ms=self.topic.commit_timeout_ms,
            load_size_bytes=self.topic.load_buffer_bytes,
            codec=Codec(self.topic.compression_codec),
        )
        self._drivers[index] = driver
        driver.start(self._spawn)

    def partition_lost(self, index: int) -> None:
        """The partition is led elsewhere or gone: whoever waits is told."""
        driver = self._drivers.pop(index, None)
        if driver is not None:
            driver.stop()

    def topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Offsets committed for these topics, given as (name, id), are removed."""
        for driver in self._active():
            reply: Reply[None] = Reply(lambda _: None, self._report)
            driver.host.write(lambda shard: shard.on_topics_deleted(deleted), reply, self._environment.clock.wall_ms())

    def close(self) -> None:
        """The node stops: whoever waits is told to look for another coordinator."""
        for index in list(self._drivers):
            self.partition_lost(index)

    @property
    def is_loading(self) -> bool:
        return any(driver.host.state is State.LOADING for driver in self._drivers.values())

    # The handlers' side

    def partition_for(self, group_id: str) -> int:
        return partition_for(group_id, self.partition_count)

    def write(self, group_id: str, operation: Callable[[GroupShard], Result[GroupRecord, T]], reply: Reply[T]) -> None:
        """Run an operation of the group's shard; ``reply`` gets its response, or why there is none."""
        try:
            host = self._host(self.partition_for(group_id))
        except ApiError as error:
            reply.fail(error)
        else:
            host.write(operation, reply, self._environment.clock.wall_ms())

    def read(self, group_id: str, operation: Callable[[GroupShard, int], T], reply: Reply[T]) -> None:
        """Ask the group's shard about committed state."""
        try:
            host = self._host(self.partition_for(group_id))
        except ApiError as error:
            reply.fail(error)
        else:
            host.read(operation, reply)

    def read_all(self, operation: Callable[[GroupShard, int], Sequence[T]]) -> list[T]:
        """What every shard says, one after another; raises when one of them is still loading."""
        found: list[T] = []
        for driver in self._drivers.values():
            host = driver.host
            if host.state is State.LOADING:
                raise host.unavailable()
            if host.state is State.ACTIVE:
                found += operation(host.shard, host.committed_offset)
        return found

    def _host(self, index: int) -> GroupHost:
        driver = self._drivers.get(index)
        if driver is None:
            raise NotCoordinator
        return driver.host

    # Metrics

    def statistics(self) -> list[ShardStatistics]:
        return [driver.host.shard.statistics() for driver in self._active()]

    def committed_offsets(self) -> Iterator[CommittedOffset]:
        for driver in self._active():
            yield from driver.host.shard.committed_offsets()

    def _active(self) -> list[ShardDriver[GroupShard, GroupRecord]]:
        return [driver for driver in self._drivers.values() if driver.host.state is State.ACTIVE]
