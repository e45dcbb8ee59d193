"""A coordinator on this node: one shard for each partition of its internal topic that the node leads.

Groups, transactions and the state of share groups are three of these, each with shards of its own kind. The node tells
it what it leads (`follow`); handlers ask it by key, and it finds the shard that the key hashes to.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from millbeck.coordinator.partitioner import partition_for
from millbeck.coordinator.runtime.host import Producer, ShardHost, State, TransactionEnd
from millbeck.coordinator.runtime.result import Reply, Result
from millbeck.coordinator.runtime.shard import Shard
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotCoordinator
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage
from millbeck.records.compression import Codec
from millbeck.replication.partition import Partition
from millbeck.server.deadlines import Deadlines
from millbeck.server.drivers.shard import ShardDriver
from millbeck.server.replication import RoleChanges

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTopic:
    """The internal topic that keeps a coordinator's state, and how it is written and loaded."""

    name: str
    partition_count: int
    """Of the topic that would be created; once there is one, its own counts."""
    commit_timeout_ms: int
    load_buffer_bytes: int
    codec: Codec = Codec.NONE
    is_compacted: bool = True
    """Whether of a key only the latest record counts."""


class CoordinatorDriver(Generic[S, R]):
    def __init__(
        self,
        environment: Environment,
        deadlines: Deadlines,
        topic: CoordinatorTopic,
        build: Callable[[Partition, SnapshotRegistry, Timers[R]], S],
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[Exception], None],
    ) -> None:
        """``build`` makes an empty shard for a partition; ``report`` gets the errors that nobody waits for."""
        self._environment = environment
        self._deadlines = deadlines
        self._build = build
        self._spawn = spawn
        self._report = report
        self._drivers: dict[int, ShardDriver[S, R]] = {}
        self.topic = topic
        self.partition_count = topic.partition_count
        """Of the topic as it is; of the one that would be created until there is one."""

    # The node's side

    def forget_deleted(self, delta: MetadataDelta) -> None:
        """Before the logs of deleted topics go: whoever waits for one of ours is told."""
        for topic in delta.topics.deleted.values():
            if topic.name == self.topic.name:
                for index in topic.partitions:
                    self.partition_lost(index)

    def follow(self, image: MetadataImage, changes: RoleChanges) -> None:
        """The node's partitions have taken the roles that an image gives them."""
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
        """This node leads the partition from now on: load its shard, unless it has it already.

        Leading on in a new epoch changes nothing; a shard that has failed is given another try.
        """
        index = partition.name.partition
        known = self._drivers.get(index)
        if known is not None and known.partition is partition and known.host.state is not State.FAILED:
            return
        self.partition_lost(index)
        driver: ShardDriver[S, R] = ShardDriver(
            partition,
            lambda registry, timers: self._build(partition, registry, timers),
            environment=self._environment,
            deadlines=self._deadlines,
            commit_timeout_ms=self.topic.commit_timeout_ms,
            load_size_bytes=self.topic.load_buffer_bytes,
            codec=self.topic.codec,
            is_compacted=self.topic.is_compacted,
        )
        self._drivers[index] = driver
        driver.start(self._spawn)

    def partition_lost(self, index: int) -> None:
        """The partition is led elsewhere or gone: whoever waits is told."""
        driver = self._drivers.pop(index, None)
        if driver is not None:
            driver.stop()

    def close(self) -> None:
        """The node stops: whoever waits is told to look for another coordinator."""
        for index in list(self._drivers):
            self.partition_lost(index)

    @property
    def is_loading(self) -> bool:
        return any(driver.host.state is State.LOADING for driver in self._drivers.values())

    # The handlers' side

    def partition_for(self, key: str) -> int:
        return partition_for(key, self.partition_count)

    def write(
        self, key: str, operation: Callable[[S], Result[R, T]], reply: Reply[T], producer: Producer | None = None
    ) -> None:
        """Run an operation of the key's shard; ``reply`` gets its response, or why there is none.

        With ``producer`` what it writes is part of that producer's transaction."""
        try:
            host = self._host(self.partition_for(key))
        except ApiError as error:
            reply.fail(error)
        else:
            host.write(operation, reply, self._environment.clock.wall_ms(), producer)

    def end_transaction(self, index: int, end: TransactionEnd, reply: Reply[bool]) -> None:
        """Write a transaction's marker into a partition, and apply or drop what the transaction has written there."""
        try:
            host = self._host(index)
        except ApiError as error:
            reply.fail(error)
        else:
            host.end_transaction(end, reply, self._environment.clock.wall_ms())

    def write_all(self, operation: Callable[[S], Result[R, None]]) -> None:
        """Run an operation of every shard that is loaded; what fails is reported."""
        for driver in self._active():
            reply: Reply[None] = Reply(lambda _: None, self._report)
            driver.host.write(operation, reply, self._environment.clock.wall_ms())

    def read(self, key: str, operation: Callable[[S, int], T], reply: Reply[T]) -> None:
        """Ask the key's shard about committed state."""
        try:
            host = self._host(self.partition_for(key))
        except ApiError as error:
            reply.fail(error)
        else:
            host.read(operation, reply)

    def read_all(self, operation: Callable[[S, int], Sequence[T]]) -> list[T]:
        """What every shard says, one after another; raises when one of them is still loading."""
        found: list[T] = []
        for driver in self._drivers.values():
            host = driver.host
            if host.state is State.LOADING:
                raise host.unavailable()
            if host.state is State.ACTIVE:
                found += operation(host.shard, host.committed_offset)
        return found

    def _host(self, index: int) -> ShardHost[S, R]:
        driver = self._drivers.get(index)
        if driver is None:
            raise NotCoordinator
        return driver.host

    def _active(self) -> list[ShardDriver[S, R]]:
        return [driver for driver in self._drivers.values() if driver.host.state is State.ACTIVE]
