"""Replication on this node: fetchers, ISR changes, directory assignments and moves, repair, and throttles.

`LogManager` calls it with every partition that became leader or follower after a metadata image; request handlers and
partitions query it. The node provides the channel to the controller and the epoch of its registration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.client.addresses import Address
from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.errors import NotController
from millbeck.kernel.ids import Uuid
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import PartitionRegistration
from millbeck.metadata.image.directories import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from millbeck.replication.fetcher import FetchLimits
from millbeck.replication.isr import NO_BROKER_EPOCH, ReplicaContext
from millbeck.replication.partition import Partition
from millbeck.replication.selector import ReplicaView, make_replica_selector
from millbeck.replication.throttle import Throttle, is_listed
from millbeck.server.config.sections.replication import ReplicationOptions
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.replicas.directory_assignments import DirectoryAssignments, TopicIdPartition
from millbeck.server.replicas.directory_assignments import Send as SendAssignments
from millbeck.server.replicas.directory_moves import DirectoryMoves
from millbeck.server.replicas.isr_changes import IsrChangeDriver, Send
from millbeck.server.replicas.repair import ReplicaRepair
from millbeck.server.replicas.replica_fetchers import ReplicaFetchers
from millbeck.server.seams import load_seam
from millbeck.wire.messages.replicas import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from millbeck.server.replicas.context import ReplicationContext


async def no_controller(request: AlterPartitionRequest) -> AlterPartitionResponse:
    raise NotController


async def no_controller_for_directories(request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    raise NotController


class PartitionRoleChanges:
    """The role changes of the node's partitions after a metadata image."""

    __slots__ = ("followed", "gone", "led", "lost")

    def __init__(self) -> None:
        self.led: list[Partition] = []
        """Partitions that this node leads in a new leader epoch."""
        self.lost: list[Partition] = []
        """Partitions that this node no longer leads."""
        self.followed: list[Partition] = []
        """Followed partitions with a new leader or a new leader epoch."""
        self.gone: list[Partition] = []
        """Partitions that were reassigned to other brokers."""

    def note(self, partition: Partition, registration: PartitionRegistration, node_id: int) -> None:
        """Make a partition leader or follower as its registration says, and record the change."""
        was_leader = partition.is_leader
        leader_epoch, partition_epoch = registration.leader_epoch, registration.partition_epoch
        if registration.leader == node_id:
            lost: tuple[int, ...] = ()
            if LOST_DIRECTORY in registration.directories:
                lost = tuple(each for each in registration.replicas if registration.directory(each) == LOST_DIRECTORY)
            if partition.lead(leader_epoch, partition_epoch, registration.replicas, registration.isr, lost):
                self.led.append(partition)
            return
        if partition.follow(registration.leader, leader_epoch, partition_epoch):
            self.followed.append(partition)
        if was_leader and not partition.is_leader:
            self.lost.append(partition)


class ReplicaManager:
    def __init__(
        self,
        broker: ReplicationContext,
        *,
        alter_partition: Send = no_controller,
        assign_directories: SendAssignments = no_controller_for_directories,
        broker_epoch: Callable[[], int] = lambda: NO_BROKER_EPOCH,
        connection_settings: Callable[[], ConnectionSettings] | None = None,
    ) -> None:
        """``alter_partition`` and ``assign_directories`` carry requests to the active controller. ``broker_epoch`` is
        the epoch of this node's registration. ``connection_settings`` are for connections to other brokers (TLS if
        the inter-broker listener uses it).
        """
        self._broker = broker
        self._connection_settings = connection_settings
        options = broker.config.replication
        self.context = ReplicaContext(
            broker.node_id,
            broker.deadlines.now_ms,
            self._is_eligible,
            options.replica_lag_time_max_ms,
            broker_epoch,
        )
        self._leader_throttle = self._throttle(
            lambda: broker.config.replication_throttle.leader_replication_throttled_rate
        )
        self._follower_throttle = self._throttle(
            lambda: broker.config.replication_throttle.follower_replication_throttled_rate
        )
        selector = ReplicationOptions.replica_selector_class.name
        self._selector = make_replica_selector(
            options.replica_selector_class,
            lambda name: load_seam("millbeck.replica_selector", selector, name, broker.config.texts, method="select"),
            lambda error: broker.seam_failed(selector, error),
        )
        self.context.wakes_followers = self._selector is not None
        self.bytes_out = 0
        """The bytes sent to followers since the node started."""
        self.isr_changes = IsrChangeDriver(
            broker,
            alter_partition,
            broker_epoch=self.broker_epoch,
            lag_ms_max=lambda: self.context.lag_ms_max,
            checked=lambda: self.repair.check(),
        )
        self.assignments = DirectoryAssignments(
            assign_directories,
            node_id=broker.node_id,
            broker_epoch=broker_epoch,
            spawn=broker.spawn,
            isolation=broker.isolation,
        )
        self.repair = ReplicaRepair(broker, self.assignments)
        self.context.write_failed = self.repair.write_failed
        self.moves = DirectoryMoves(broker)
        self.fetchers = ReplicaFetchers(
            broker,
            self,
            self,
            limits=self._limits,
            fetcher_count=lambda: broker.config.replication.num_replica_fetchers,
            request_timeout_ms=lambda: broker.config.replication.replica_socket_timeout_ms,
        )

    def _throttle(self, rate: Callable[[], int]) -> Throttle:
        windows = self._broker.config.quotas
        return Throttle(
            rate,
            self._broker.deadlines.now_ms,
            window_count=windows.replication_quota_window_num,
            window_ms=windows.replication_quota_window_size_seconds * 1000,
        )

    # Called by the node.

    def start(self) -> None:
        """Start fetching, ISR checks and unfinished directory moves; called once the broker is registered."""
        self.fetchers.start()
        self.isr_changes.start()
        self.moves.resume()

    def close(self) -> None:
        """Close the fetchers."""
        self.fetchers.close()

    # Called by the log manager.

    async def on_metadata_update(self, delta: MetadataDelta, changes: PartitionRoleChanges, turns: TimeSlices) -> None:
        """Update the fetchers; called when the partitions have their new roles and the image is in force."""
        for partition in changes.led:
            self.fetchers.stop(partition)
            await turns.yield_to_loop()
        for partition in changes.followed:
            self.fetchers.follow(partition)
            await turns.yield_to_loop()
        self.fetchers.close_idle()
        self.repair.check()
        if any(registration is not None for registration in delta.cluster.brokers.changed.values()):
            # A broker that was fenced when its replicas caught up may join the ISR now.
            for partition in self._broker.topics.all_partitions():
                partition.maybe_expand_isr()
                await turns.yield_to_loop()

    def gone(self, partition: Partition) -> None:
        """Stop replicating a partition that was deleted or reassigned."""
        self.fetchers.stop(partition)
        self.repair.on_removed(partition)
        self.moves.cancel(partition)

    def is_in(self, partition: Partition, directory: Uuid, registered: Uuid, *, is_choice: bool) -> None:
        """Report to the controller that a replica's log is in ``directory``, unless the controller knows."""
        is_known = directory == registered or self.repair.is_lost(partition)
        if not is_known and (is_choice or registered not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)):
            self.assignments.assign(TopicIdPartition(partition.topic_id, partition.name.partition), directory)

    def is_unusable(self, topic_id: Uuid, index: int) -> None:
        """Report a replica whose log could not be opened or created as being in a lost directory."""
        self.assignments.assign(TopicIdPartition(topic_id, index), LOST_DIRECTORY)

    def went_offline(self, partition: Partition) -> None:
        self.fetchers.stop(partition)

    # Called by fetchers and partitions.

    async def truncate(
        self, partition: Partition, offset: int, *, starts_over: bool, is_wanted: Callable[[], bool]
    ) -> None:
        """Truncate a follower's log, or start it over; a no-op when ``is_wanted`` is False just before."""
        await self._broker.logs.truncate(partition, offset, starts_over=starts_over, is_wanted=is_wanted)

    async def flush(self, partition: Partition) -> None:
        await self._broker.logs.flush(partition)

    def address_of(self, broker_id: int) -> Address | None:
        registration = self._broker.image.cluster.broker(broker_id)
        if registration is None:
            return None
        endpoint = registration.endpoint(self._broker.config.inter_broker_listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def connection_settings(self) -> ConnectionSettings:
        if self._connection_settings is not None:
            return self._connection_settings()
        config, security = self._broker.config, self._broker.security.brokers
        return ConnectionSettings(
            client_id=f"broker-{self._broker.node_id}-fetcher",
            connect_timeout_s=max(config.socket.socket_connection_setup_timeout_ms, 1) / 1000,
            tls=security.tls,
            sasl=security.sasl,
        )

    def broker_epoch(self) -> int:
        return self.context.broker_epoch()

    def nearer_replica(self, partition: Partition, offset: int, rack: str, listener: str) -> int:
        """The preferred read replica for a consumer in ``rack`` (KIP-392); -1 when it should read from this broker.

        Only the leader chooses, among the in-sync replicas that have the offset and a listener of that name.
        """
        replicas = partition.replicas
        if self._selector is None or replicas is None or not partition.is_leader:
            return -1
        cluster, now_ms = self._broker.image.cluster, self._broker.deadlines.now_ms()
        own = cluster.broker(self._broker.node_id)
        views = [
            ReplicaView(self._broker.node_id, None if own is None else own.rack, partition.log.end_offset, 0, True)
        ]
        for follower in replicas.followers.values():
            registration = cluster.broker(follower.broker_id)
            if (
                registration is not None
                and registration.is_active
                and registration.endpoint(listener) is not None
                and follower.broker_id in replicas.isr
                and follower.log_start_offset <= offset <= follower.end_offset
            ):
                lag_ms = now_ms - follower.caught_up_ms
                views.append(ReplicaView(follower.broker_id, registration.rack, follower.end_offset, lag_ms, False))
        chosen = self._selector.select(rack, views)
        return -1 if chosen is None or chosen.is_leader else chosen.broker_id

    # Throttles apply only to replicas that are not in the ISR.

    def is_leader_throttled(self, partition: Partition, follower_id: int) -> bool:
        """Whether the leader throttle holds back a follower's fetch."""
        replicas = partition.replicas
        return (
            self._is_throttled_leader(partition)
            and replicas is not None
            and follower_id not in replicas.isr
            and self._leader_throttle.is_exceeded
        )

    def sent(self, partition: Partition, size_bytes: int) -> None:
        """Count the bytes sent to a follower."""
        self.bytes_out += size_bytes
        if self._is_throttled_leader(partition):
            self._leader_throttle.record(size_bytes)

    def is_throttled(self, partition: Partition) -> bool:
        if not self._is_throttled_follower(partition) or not self._follower_throttle.is_exceeded:
            return False
        registration = self._broker.image.topics.partition(partition.name.topic, partition.name.partition)
        return registration is not None and self._broker.node_id not in registration.isr

    def copied(self, partition: Partition, size_bytes: int) -> None:
        if self._is_throttled_follower(partition):
            self._follower_throttle.record(size_bytes)

    def _is_throttled_leader(self, partition: Partition) -> bool:
        entries = partition.log.config.leader_replication_throttled_replicas
        return is_listed(entries, partition.name.partition, self._broker.node_id)

    def _is_throttled_follower(self, partition: Partition) -> bool:
        entries = partition.log.config.follower_replication_throttled_replicas
        return is_listed(entries, partition.name.partition, self._broker.node_id)

    def _is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        registration = self._broker.image.cluster.broker(broker_id)
        return (
            registration is not None
            and registration.is_active
            and broker_epoch in (NO_BROKER_EPOCH, registration.epoch)
        )

    def _limits(self) -> FetchLimits:
        options = self._broker.config.replication
        return FetchLimits(
            wait_ms_max=options.replica_fetch_wait_max_ms,
            size_bytes_min=options.replica_fetch_min_bytes,
            partition_size_bytes_max=options.replica_fetch_max_bytes,
            size_bytes_max=options.replica_fetch_response_max_bytes,
            backoff_ms=options.replica_fetch_backoff_ms,
        )
