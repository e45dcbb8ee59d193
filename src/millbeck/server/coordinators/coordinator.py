"""A coordinator on this node, with one shard for each partition of its internal topic that the node leads.

The group, transaction and share coordinators are its subclasses, each with its own type of shard. The node reports
leadership changes to it (`follow`); handlers call it with a key, and it finds the shard that the key hashes to.

A new coordinator is a function that builds its shard (`coordinator.runtime.shard.Shard`), an entry in
`Broker.coordinators`, its internal topic in `internal_topics`, and its type of key in `find_coordinator.TOPICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from millbeck.coordinator.partitioner import partition_for
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard import Shard
from millbeck.coordinator.runtime.shard_runner import ProducerIdAndEpoch, ShardRunner, ShardState, TransactionEnd
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.errors import ApiError, NotCoordinator
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage
from millbeck.replication.partition import Partition
from millbeck.server.context import NodeContext
from millbeck.server.coordinators.shard_driver import CoordinatorTopic, ShardDriver
from millbeck.server.replicas.replica_manager import PartitionRoleChanges

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])
T = TypeVar("T")


class CoordinatorDriver(Generic[S, R]):
    def __init__(
        self,
        context: NodeContext,
        topic: CoordinatorTopic,
        build: Callable[[Partition, SnapshotRegistry, Timers[R]], S],
    ) -> None:
        """``build`` creates an empty shard for a partition."""
        self._environment = context.environment
        self._deadlines = context.deadlines
        self._build = build
        self._spawn = context.spawn
        self._report: Callable[[Exception], None] = context.report
        self._isolation = context.isolation
        self._drivers: dict[int, ShardDriver[S, R]] = {}
        self.topic = topic
        self.partition_count = topic.partition_count
        """The topic's number of partitions; the configured one until the topic exists."""

    # Called by the node

    def forget_deleted(self, delta: MetadataDelta) -> None:
        """Unload the shards of a deleted internal topic before its logs are deleted; pending requests fail."""
        for topic in delta.topics.deleted.values():
            if topic.name == self.topic.name:
                for index in topic.partitions:
                    self.partition_lost(index)

    def follow(self, image: MetadataImage, changes: PartitionRoleChanges) -> None:
        """Load and unload shards after a new image has made partitions leaders or followers."""
        topic = image.topics.named(self.topic.name)
        if topic is not None:
            self.partition_count = len(topic.partitions)
        for partition in changes.lost:
            if partition.name.topic == self.topic.name:
                self.partition_lost(partition.name.partition)
        for partition in changes.led:
            if partition.name.topic == self.topic.name:
                self.partition_led(partition)

    def partition_led(self, partition: Partition) -> None:
        """Load the shard of a partition that this node leads now, unless it is already loaded.

        A new epoch of the same leader changes nothing; a shard that failed to load is loaded again.
        """
        index = partition.name.partition
        known = self._drivers.get(index)
        if known is not None and known.partition is partition and known.host.state is not ShardState.FAILED:
            return
        self.partition_lost(index)
        driver: ShardDriver[S, R] = ShardDriver(
            partition,
            lambda registry, timers: self._build(partition, registry, timers),
            self.topic,
            environment=self._environment,
            deadlines=self._deadlines,
            isolation=self._isolation,
        )
        self._drivers[index] = driver
        driver.start(self._spawn)

    def partition_lost(self, index: int) -> None:
        """Unload the shard of a partition that this node no longer leads; pending requests fail with
        NOT_COORDINATOR."""
        driver = self._drivers.pop(index, None)
        if driver is not None:
            driver.stop()

    def close(self) -> None:
        """Unload all shards at shutdown; pending requests fail with NOT_COORDINATOR."""
        for index in list(self._drivers):
            self.partition_lost(index)

    @property
    def is_loading(self) -> bool:
        return any(driver.host.state is ShardState.LOADING for driver in self._drivers.values())

    # Called by handlers

    def partition_for(self, key: str) -> int:
        return partition_for(key, self.partition_count)

    def write(
        self,
        key: str,
        operation: Callable[[S], Result[R, T]],
        reply: ResponseCallback[T],
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """Run an operation on the key's shard; ``reply`` gets its response or its error.

        With ``producer`` the records it writes are part of that producer's transaction."""
        try:
            host = self._host(self.partition_for(key))
        except ApiError as error:
            reply.fail(error)
        else:
            host.write(operation, reply, self._environment.clock.wall_ms(), producer)

    def end_transaction(self, index: int, end: TransactionEnd, reply: ResponseCallback[bool]) -> None:
        """Write a transaction marker to a partition, and commit or discard the transaction's pending records there."""
        try:
            host = self._host(index)
        except ApiError as error:
            reply.fail(error)
        else:
            host.end_transaction(end, reply, self._environment.clock.wall_ms())

    def write_all(self, operation: Callable[[S], Result[R, None]]) -> None:
        """Run an operation on every loaded shard; errors are reported."""
        for driver in self._active():
            reply: ResponseCallback[None] = ResponseCallback(lambda _: None, self._report)
            driver.host.write(operation, reply, self._environment.clock.wall_ms())

    def read(self, key: str, operation: Callable[[S, int], T], reply: ResponseCallback[T]) -> None:
        """Read the committed state of the key's shard."""
        try:
            host = self._host(self.partition_for(key))
        except ApiError as error:
            reply.fail(error)
        else:
            host.read(operation, reply)

    def read_all(self, operation: Callable[[S, int], Sequence[T]]) -> list[T]:
        """The results of a read on every shard; raises COORDINATOR_LOAD_IN_PROGRESS when one is still loading."""
        found: list[T] = []
        for driver in self._drivers.values():
            host = driver.host
            if host.state is ShardState.LOADING:
                raise host.unavailable()
            if host.state is ShardState.ACTIVE:
                found += operation(host.shard, host.committed_offset)
        return found

    def _host(self, index: int) -> ShardRunner[S, R]:
        driver = self._drivers.get(index)
        if driver is None:
            raise NotCoordinator
        return driver.host

    def _active(self) -> list[ShardDriver[S, R]]:
        return [driver for driver in self._drivers.values() if driver.host.state is ShardState.ACTIVE]
