"""The broker role of a node: its logs, coordinators, and registration in the cluster.

`BrokerRole.publish` passes each committed metadata image on to them, in the order of their dependencies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from millbeck.controller.nodes import NodeRegistration
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.coordinator.group.share.groups import ShareGroups
from millbeck.kernel.errors import from_code
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import Endpoint, MetadataImage, ResourceType
from millbeck.server.broker import Broker
from millbeck.server.broker_lifecycle import BrokerLifecycleManager
from millbeck.server.cleaner.service import Cleaner
from millbeck.server.coordinators.group_coordinator import GroupDriver, share_assignor
from millbeck.server.coordinators.internal_topics import internal_topics
from millbeck.server.coordinators.producer_ids import ProducerIds
from millbeck.server.coordinators.share_coordinator import ShareStateDriver
from millbeck.server.coordinators.transaction_coordinator import TransactionDriver
from millbeck.server.metadata.channels import ControllerChannels
from millbeck.server.network.broker_connections import BrokerConnections
from millbeck.server.network.listeners import Listeners
from millbeck.server.replicas.log_manager import LogManager
from millbeck.server.replicas.replica_manager import PartitionRoleChanges, ReplicaManager
from millbeck.server.schemas.validation import SchemaValidation
from millbeck.server.share.share_partition_manager import SharePartitionManager
from millbeck.server.share.state_initializer import ShareStateInitializer
from millbeck.server.transactions.write_verification import TransactionVerification
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory
from millbeck.wire.messages.nodes import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from millbeck.wire.messages.replicas import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

LARGE_CHANGE_PARTITIONS: Final = 200
MANY_CHANGES_PARTITIONS: Final = 2000
"""How many changed partitions add up to one call of ``settle_memory``: many small deltas, such as ISR expansions,
create as much garbage as one large delta."""
PRODUCER_IDS_SECONDS_MAX: Final = 30.0
REPLAY_POLL_SECONDS: Final = 0.01


class BrokerRole:
    def __init__(
        self,
        broker: Broker,
        listening: Listeners,
        directories: Sequence[LogDirectory],
        channels: ControllerChannels,
        *,
        settle_memory: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        """``settle_memory`` is called after a change that created many objects, ``fail`` when the node must stop."""
        config = broker.config
        self._broker = broker
        self._channels = channels
        self._listening = listening
        self._settle_memory = settle_memory
        self._changed = 0
        """Changed partitions since the last call of ``settle_memory``."""
        paths = set(config.directories)
        broker.replication = ReplicaManager(
            broker,
            alter_partition=self._alter_partition,
            assign_directories=self._assign_directories,
            broker_epoch=lambda: self.membership.epoch,
        )
        broker.logs = LogManager(
            broker,
            [each for each in directories if each.path in paths],
            broker_defaults=broker.default_texts,
        )
        broker.cleaner = Cleaner(broker)
        broker.internal_topics = internal_topics(config)
        broker.shares = SharePartitionManager(broker)
        broker.state_initializer = ShareStateInitializer(broker, broker.shares.persister)
        broker.share_state = ShareStateDriver(broker)
        assignor = share_assignor(config)
        broker.groups = GroupDriver(
            broker,
            share=lambda registry, timers, topics: ShareGroups(
                registry,
                timers,
                config.share_groups,
                topics,
                broker.state_initializer,
                broker.shares.membership,
                assignor,
            ),
        )
        broker.producer_ids = ProducerIds(
            self._allocate_producer_ids,
            broker.spawn,
            is_alone=lambda: broker.quorum.is_active and len(broker.quorum.voters.ids) == 1,
        )
        broker.peers = BrokerConnections(
            broker.environment,
            node_id=broker.node_id,
            address_of=broker.replication.address_of,
            connection_settings=broker.replication.connection_settings,
        )
        broker.schemas = SchemaValidation(broker, lambda: broker.peers)
        broker.verification = TransactionVerification(broker)
        broker.transactions = TransactionDriver(broker, broker.producer_ids)
        self.membership = BrokerLifecycleManager(
            broker,
            channels.membership,
            register_here=self._register_here if config.is_controller else None,
            on_unreported=lambda: fail(
                OSError("a log directory failed, and it could not be reported to the controller in time")
            ),
        )

    @property
    def epoch(self) -> int:
        """The broker epoch, `NO_BROKER_EPOCH` before registration."""
        return self.membership.epoch

    # starting

    def load_logs(self) -> None:
        """List the logs on disk before the first metadata image is applied."""
        self._broker.logs.load_directories()
        self._broker.logs.on_placed = self._placed

    async def join(self, endpoints: Sequence[Endpoint]) -> None:
        """Register the broker, catch up with the metadata and wait to be unfenced; raises `RegistrationFailed`."""
        broker = self._broker
        directories = [each for each in broker.logs.directories if each.meta is not None]
        previous = {
            each.previous_broker_epoch if each.had_clean_shutdown else NO_BROKER_EPOCH
            for each in broker.logs.directories
        }
        await self.membership.join(
            endpoints,
            sorted(each.meta.directory_id for each in directories if each.meta is not None),
            # No data of the previous process is lost only if it closed all directories cleanly.
            previous_epoch=previous.pop() if len(previous) == 1 else NO_BROKER_EPOCH,
        )
        # Logs on disk that are not in the metadata by now were deleted while this node was down.
        while broker.image.offset < self.epoch:
            await asyncio.sleep(REPLAY_POLL_SECONDS)
        broker.logs.mark_strays()
        broker.replication.start()
        await self.membership.wait_unfenced()
        # The heartbeat response may arrive before the metadata. Clients whose metadata lacks this broker, or has no
        # broker at all, retry late or never.
        while not self._is_known():
            await asyncio.sleep(REPLAY_POLL_SECONDS)
        broker.logs.start_upkeep()
        broker.cleaner.start()

    def _is_known(self) -> bool:
        own = self._broker.image.cluster.brokers.get(self._broker.node_id)
        return own is not None and own.epoch == self.epoch and not own.is_fenced

    async def _register_here(self, registration: NodeRegistration) -> int:
        broker = self._broker
        return await broker.quorum.submit(lambda image: broker.controller.register_broker(image, registration))

    async def _alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        timeout_s = self._broker.config.replication.request_timeout_ms / 1000
        return await self._channels.partitions.request(request, AlterPartitionResponse, timeout_s=timeout_s)

    async def _assign_directories(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        timeout_s = self._broker.config.replication.request_timeout_ms / 1000
        return await self._channels.directories.request(request, AssignReplicasToDirsResponse, timeout_s=timeout_s)

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        request = AllocateProducerIdsRequest(broker_id=self._broker.node_id, broker_epoch=self.epoch)
        answer = await self._channels.producer_ids.request(
            request, AllocateProducerIdsResponse, timeout_s=PRODUCER_IDS_SECONDS_MAX
        )
        if answer.error_code:
            raise from_code(answer.error_code)
        return ProducerIdBlock(first=answer.producer_id_start, size=answer.producer_id_len)

    # applying metadata

    async def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        broker = self._broker
        for coordinator in broker.coordinators:
            coordinator.forget_deleted(delta)
        changes = await broker.logs.apply(image, delta)
        broker.groups.publish(image, delta)
        for coordinator in broker.coordinators:
            coordinator.follow(image, changes)
        for partition in (*changes.lost, *changes.gone):
            broker.verification.partition_lost(partition)
        gone = sum(len(topic.partitions) for topic in delta.topics.deleted.values())
        changed = gone + sum(1 for _ in delta.topics.changed_partitions())
        self._changed += changed
        if changed or delta.configs.changed:
            broker.schemas.follow()
        if changed >= LARGE_CHANGE_PARTITIONS or self._changed >= MANY_CHANGES_PARTITIONS:
            self._changed = 0
            self._settle_memory()
        if delta.topics.deleted:
            deleted = [(topic.name, each) for each, topic in delta.topics.deleted.items()]
            broker.groups.topics_deleted(deleted)
            broker.share_state.topics_deleted(deleted)
        broker.shares.publish(delta)
        if delta.configs.changed:
            broker.config.apply_dynamic(image.configs.of_broker(broker.node_id), image.configs.of_all_brokers())
            broker.cleaner.apply_config()
            self._listening.apply_limits()
            if any(resource.type == ResourceType.BROKER for resource in delta.configs.changed):
                broker.tls.want_reload()

    def _placed(self, changes: PartitionRoleChanges) -> None:
        """Start the coordinators of partitions whose logs could be created only after disk space was freed."""
        for coordinator in self._broker.coordinators:
            coordinator.follow(self._broker.image, changes)

    # failures and shutdown

    def directory_failed(self) -> bool:
        """Fail the pending requests of a failed log directory and report it to the controller; True when no directory
        is left."""
        logs = self._broker.logs
        logs.on_directory_offline()
        self._broker.cleaner.on_directory_offline()
        lost = [each for each in logs.directories if each.offline_reason is not None]
        if len(lost) == len(logs.directories):
            return True
        for directory in lost:
            # Without the metadata log's directory nothing can be reported: the node stops at the next metadata record.
            if directory.meta is not None and directory.path != self._broker.config.metadata_directory:
                self.membership.directory_failed(directory.meta.directory_id)
        return False

    async def leave(self) -> None:
        """Controlled shutdown: move leadership to other brokers before the client connections are closed."""
        if self._broker.config.node.controlled_shutdown_enable:
            await self.membership.leave()

    def close_fetchers_and_coordinators(self) -> None:
        """Close the fetchers and coordinators. Pending requests fail, so that clients look up the new leaders and
        coordinators."""
        self._broker.replication.close()
        self._broker.shares.close()
        for coordinator in self._broker.coordinators:
            coordinator.close()
        self._broker.peers.close()

    async def stop(self) -> None:
        """Stop heartbeats, compactions and flushes; running compactions and flushes end first."""
        self.membership.stop()
        await self._broker.cleaner.stop()
        await self._broker.logs.stop_flushing()
