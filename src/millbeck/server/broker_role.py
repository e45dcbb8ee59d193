"""What a node with the role broker is made of: its logs, its coordinators, and its place in the cluster.

`BrokerPart.publish` carries each committed metadata image to them, in the order in which they depend on each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from millbeck.controller.nodes import Registration
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.coordinator.group.share.groups import ShareGroups
from millbeck.kernel.errors import from_code
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import Endpoint, MetadataImage, ResourceType
from millbeck.server.broker import Broker
from millbeck.server.channels import Channels
from millbeck.server.cleaner.service import Cleaner
from millbeck.server.drivers.groups import GroupDriver
from millbeck.server.drivers.share_state import ShareStateDriver
from millbeck.server.drivers.transactions import TransactionDriver
from millbeck.server.internal_topics import internal_topics
from millbeck.server.listening import Listening
from millbeck.server.logs import Logs
from millbeck.server.membership import Membership
from millbeck.server.peers import Peers
from millbeck.server.producer_ids import ProducerIds
from millbeck.server.replication import Replication, RoleChanges
from millbeck.server.share.keeper import Keeper
from millbeck.server.share.shares import Shares
from millbeck.server.transaction_verification import TransactionVerification
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory
from millbeck.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from millbeck.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from millbeck.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

LARGE_CHANGE_PARTITIONS: Final = 200
PRODUCER_IDS_SECONDS_MAX: Final = 30.0
REPLAY_POLL_SECONDS: Final = 0.01


class BrokerPart:
    def __init__(
        self,
        broker: Broker,
        listening: Listening,
        directories: Sequence[LogDirectory],
        channels: Channels,
        *,
        settle_memory: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        """``settle_memory`` is called after a change that made many objects, ``fail`` when the node must end."""
        config = broker.config
        self._broker = broker
        self._channels = channels
        self._listening = listening
        self._settle_memory = settle_memory
        paths = set(config.directories)
        broker.replication = Replication(
            broker,
            alter_partition=self._alter_partition,
            assign_directories=self._assign_directories,
            broker_epoch=lambda: self.membership.epoch,
        )
        broker.logs = Logs(
            broker,
            [each for each in directories if each.path in paths],
            broker_defaults=broker.default_texts,
        )
        broker.cleaner = Cleaner(broker)
        broker.internal_topics = internal_topics(config)
        broker.shares = Shares(broker)
        broker.keeper = Keeper(broker)
        broker.share_state = ShareStateDriver(
            broker.environment,
            broker.deadlines,
            config.share_coordinator,
            spawn=broker.spawn,
            report=broker.report,
        )
        broker.groups = GroupDriver(
            broker.environment,
            broker.deadlines,
            classic=config.classic_groups,
            consumer=config.consumer_groups,
            offsets=config.offsets,
            topic=config.offsets_topic,
            share=lambda registry, timers, topics: ShareGroups(
                registry, timers, config.share_groups, topics, broker.keeper, broker.shares.membership
            ),
            spawn=broker.spawn,
            report=broker.report,
        )
        broker.producer_ids = ProducerIds(self._allocate_producer_ids, broker.spawn)
        broker.peers = Peers(
            broker.environment,
            node_id=broker.node_id,
            address_of=broker.replication.address_of,
            connection_settings=broker.replication.connection_settings,
        )
        broker.verification = TransactionVerification(broker)
        broker.transactions = TransactionDriver(broker)
        self.membership = Membership(
            broker.environment,
            channels.membership,
            config.membership,
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            rack=config.node.broker_rack or None,
            image=lambda: broker.image,
            spawn=broker.spawn,
            register_here=self._register_here if config.is_controller else None,
            supported_features=config.supported_features,
            directory_failure_timeout_ms=config.node.log_dir_failure_timeout_ms,
            on_untold=lambda: fail(OSError("a log directory is lost, and no controller could be told of it")),
        )

    @property
    def epoch(self) -> int:
        """The epoch of this process in the cluster, `NO_BROKER_EPOCH` before it is registered."""
        return self.membership.epoch

    # starting

    def find_logs(self) -> None:
        """Look at the disks before the first image says what should be there."""
        self._broker.logs.find_on_disk()
        self._broker.logs.on_placed = self._placed

    async def join(self, endpoints: Sequence[Endpoint]) -> None:
        """Become a broker of the cluster that clients are sent to; raises `RegistrationFailed`."""
        broker = self._broker
        directories = [each for each in broker.logs.directories if each.meta is not None]
        previous = {
            each.previous_broker_epoch if each.had_clean_shutdown else NO_BROKER_EPOCH
            for each in broker.logs.directories
        }
        await self.membership.join(
            endpoints,
            sorted(each.meta.directory_id for each in directories if each.meta is not None),
            # Only when all of them were closed by the same process is nothing lost of what it had.
            previous_epoch=previous.pop() if len(previous) == 1 else NO_BROKER_EPOCH,
        )
        # What is on disk and not in the metadata by now was deleted while this node was away.
        while broker.image.offset < self.epoch:
            await asyncio.sleep(REPLAY_POLL_SECONDS)
        broker.logs.set_strays_aside()
        broker.replication.start()
        await self.membership.wait_let_in()
        # The answer may be faster than the metadata. Clients that are told of a cluster without this broker, or without
        # any, come back late or never.
        while not self._is_known():
            await asyncio.sleep(REPLAY_POLL_SECONDS)
        broker.logs.start_upkeep()
        broker.cleaner.start()

    def _is_known(self) -> bool:
        own = self._broker.image.cluster.brokers.get(self._broker.node_id)
        return own is not None and own.epoch == self.epoch and not own.is_fenced

    async def _register_here(self, registration: Registration) -> int:
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

    # following the metadata

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
        if len(changes.led) + len(changes.followed) >= LARGE_CHANGE_PARTITIONS:
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
                self._listening.renew_certificates()

    def _placed(self, changes: RoleChanges) -> None:
        """Partitions have their logs now, for which there was no room when their image came."""
        for coordinator in self._broker.coordinators:
            coordinator.follow(self._broker.image, changes)

    # trouble and the end

    def directory_failed(self) -> bool:
        """One of the directories is lost: tell who waits for its logs, and the controller. Whether none is left."""
        logs = self._broker.logs
        logs.tell_of_offline_logs()
        self._broker.cleaner.look_for_offline_logs()
        lost = [each for each in logs.directories if each.offline_reason is not None]
        if len(lost) == len(logs.directories):
            return True
        for directory in lost:
            # Without the metadata log nothing can be said or heard: the node ends with the next record of it.
            if directory.meta is not None and directory.path != self._broker.config.metadata_directory:
                self.membership.directory_failed(directory.meta.directory_id)
        return False

    async def leave(self) -> None:
        """Hand over what others can take over, before clients are sent away."""
        if self._broker.config.node.controlled_shutdown_enable:
            await self.membership.leave()

    def let_go(self) -> None:
        """Coordinate nothing any more; whoever waits is told to look elsewhere."""
        self._broker.replication.close()
        self._broker.shares.close()
        for coordinator in self._broker.coordinators:
            coordinator.close()
        self._broker.peers.close()

    async def stop(self) -> None:
        """Be heard no more; compact and flush nothing more, what is under way ends first."""
        self.membership.stop()
        await self._broker.cleaner.stop()
        await self._broker.logs.stop_flushing()
