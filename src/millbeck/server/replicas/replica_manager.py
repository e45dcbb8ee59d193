"""Replication on this node: what partitions need to know of the cluster, their fetchers, and their ISR changes.

`Logs` tells it of every partition that leads or follows after a metadata image; handlers and partitions look things up
here. The node gives it a way to the controller and the epoch of its registration.
"""

from __future__ import annotations

import ssl
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
from millbeck.replication.in_sync import NO_BROKER_EPOCH, Surroundings
from millbeck.replication.partition import Partition
from millbeck.replication.selector import ReplicaView, selector_named
from millbeck.replication.throttle import Throttle, is_listed
from millbeck.server.drivers.directory_assignments import DirectoryAssignments, Replica
from millbeck.server.drivers.directory_assignments import Send as SendAssignments
from millbeck.server.drivers.isr_changes import IsrChangeDriver, Send
from millbeck.server.drivers.replica_fetchers import ReplicaFetchers
from millbeck.server.mending import Mending
from millbeck.server.moves import Moves
from millbeck.server.tls import peer_context
from millbeck.server.turns import Turns
from millbeck.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from millbeck.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


async def no_controller(request: AlterPartitionRequest) -> AlterPartitionResponse:
    raise NotController


async def no_controller_for_directories(request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    raise NotController


class RoleChanges:
    """What an image has made of the node's partitions."""

    __slots__ = ("followed", "gone", "led", "lost")

    def __init__(self) -> None:
        self.led: list[Partition] = []
        """Led by this node in a new epoch."""
        self.lost: list[Partition] = []
        """Led by it before, and not any more."""
        self.followed: list[Partition] = []
        """Followers with another leader, or in another epoch."""
        self.gone: list[Partition] = []
        """Moved to other brokers."""

    def note(self, partition: Partition, registration: PartitionRegistration, node_id: int) -> None:
        """Give a partition the role that the metadata has for it."""
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


class Replication:
    def __init__(
        self,
        broker: Broker,
        *,
        alter_partition: Send = no_controller,
        assign_directories: SendAssignments = no_controller_for_directories,
        broker_epoch: Callable[[], int] = lambda: NO_BROKER_EPOCH,
        connection_settings: Callable[[], ConnectionSettings] | None = None,
    ) -> None:
        """``alter_partition`` and ``assign_directories`` carry requests to the active controller. ``broker_epoch`` is
        that of the node's own registration. ``connection_settings`` are for connections to other brokers (TLS where
        their listener has it).
        """
        self._broker = broker
        self._connection_settings = connection_settings
        options = broker.config.replication
        self.around = Surroundings(
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
        self._selector = selector_named(options.replica_selector_class)
        self.around.wakes_followers = self._selector is not None
        self.bytes_out = 0
        """Given to followers since the node started."""
        self.isr_changes = IsrChangeDriver(
            broker.environment.clock,
            alter_partition,
            node_id=broker.node_id,
            broker_epoch=self.broker_epoch,
            partitions=broker.topics.all_partitions,
            lag_ms_max=lambda: self.around.lag_ms_max,
            looked=lambda: self.mending.look(),
            spawn=broker.spawn,
        )
        self.assignments = DirectoryAssignments(
            assign_directories, node_id=broker.node_id, broker_epoch=broker_epoch, spawn=broker.spawn
        )
        self.mending = Mending(broker, self.assignments)
        self.around.write_failed = self.mending.write_failed
        self.moves = Moves(broker)
        self.fetchers = ReplicaFetchers(
            broker.environment,
            broker.deadlines,
            self,
            self,
            node_id=broker.node_id,
            limits=self._limits,
            fetcher_count=lambda: broker.config.replication.num_replica_fetchers,
            request_timeout_ms=lambda: broker.config.replication.replica_socket_timeout_ms,
            spawn=broker.spawn,
            report=broker.report,
        )

    def _throttle(self, rate: Callable[[], int]) -> Throttle:
        windows = self._broker.config.quotas
        return Throttle(
            rate,
            self._broker.deadlines.now_ms,
            window_count=windows.replication_quota_window_num,
            window_ms=windows.replication_quota_window_size_seconds * 1000,
        )

    # The node's side.

    def start(self) -> None:
        """The node is registered: fetch, and look after followers, from now on."""
        self.fetchers.start()
        self.isr_changes.start()
        self.moves.resume()

    def close(self) -> None:
        """Fetch nothing more."""
        self.fetchers.close()

    # The logs' side.

    async def image_changed(self, delta: MetadataDelta, changes: RoleChanges, turns: Turns) -> None:
        """The node's partitions have their new roles, and the image is in force."""
        for partition in changes.led:
            self.fetchers.stop(partition)
        for partition in changes.followed:
            self.fetchers.follow(partition)
            await turns.give_way()
        self.fetchers.close_idle()
        self.mending.look()
        if any(registration is not None for registration in delta.cluster.brokers.changed.values()):
            # A broker that was fenced when its replicas had caught up may be in sync now.
            for partition in self._broker.topics.all_partitions():
                partition.consider_followers()
                await turns.give_way()

    def gone(self, partition: Partition) -> None:
        """It is deleted or moved away."""
        self.fetchers.stop(partition)
        self.mending.gone(partition)
        self.moves.cancel(partition)

    def is_in(self, partition: Partition, directory: Uuid, registered: Uuid, *, is_choice: bool) -> None:
        """A replica's log is in ``directory``; the controller is told when it should know and does not."""
        is_known = directory == registered or self.mending.is_lost(partition)
        if not is_known and (is_choice or registered not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)):
            self.assignments.assign(Replica(partition.topic_id, partition.name.partition), directory)

    def has_no_room(self, topic_id: Uuid, index: int) -> None:
        """A replica's log could not be made, for lack of room: others have to do without it until there is some."""
        self.assignments.assign(Replica(topic_id, index), LOST_DIRECTORY)

    def went_offline(self, partition: Partition) -> None:
        self.fetchers.stop(partition)

    # What fetchers and partitions ask.

    async def truncate(
        self, partition: Partition, offset: int, *, starts_over: bool, is_wanted: Callable[[], bool]
    ) -> None:
        """Cut a follower's log, or start it over; nothing when it has become something else before that."""
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
        config = self._broker.config
        return ConnectionSettings(
            client_id=f"broker-{self._broker.node_id}-fetcher",
            connect_timeout_s=max(config.socket.socket_connection_setup_timeout_ms, 1) / 1000,
            tls=self._tls(),
        )

    def _tls(self) -> ssl.SSLContext | None:
        config = self._broker.config
        name = config.inter_broker_listener
        protocols = {address.name: address.protocol for address in config.client_addresses()}
        return peer_context(config.ssl(name)) if protocols[name] == "SSL" else None

    def broker_epoch(self) -> int:
        return self.around.broker_epoch()

    def nearer_replica(self, partition: Partition, offset: int, rack: str, listener: str) -> int:
        """Another replica that a consumer in ``rack`` had better read from; -1 when it is right here.

        Only the leader knows, and only of in-sync replicas that have the offset and a listener of that name.
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

    # Throttles: only those are held back that are not in sync.

    def holds_back(self, partition: Partition, follower_id: int) -> bool:
        """Whether a follower has to wait for what it wants to copy from here."""
        replicas = partition.replicas
        return (
            self._is_throttled_leader(partition)
            and replicas is not None
            and follower_id not in replicas.isr
            and self._leader_throttle.is_exceeded
        )

    def sent(self, partition: Partition, size_bytes: int) -> None:
        """A follower was given this much."""
        self.bytes_out += size_bytes
        if self._is_throttled_leader(partition):
            self._leader_throttle.record(size_bytes)

    def is_held_back(self, partition: Partition) -> bool:
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
