"""What a node with the role broker is made of: its logs, its coordinators, and its place in the cluster.

`BrokerPart.publish` carries each committed metadata image to them, in the order in which they depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from millbeck.controller.nodes import Registration
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.kernel.ids import TopicPartition
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import Endpoint, MetadataImage, ResourceType
from millbeck.server.broker import Broker
from millbeck.server.cleaner.service import Cleaner
from millbeck.server.drivers.groups import GroupDriver
from millbeck.server.internal_topics import OFFSETS_TOPIC, internal_topics
from millbeck.server.listening import Listening
from millbeck.server.logs import Logs
from millbeck.server.producer_ids import ProducerIds
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory

LARGE_CHANGE_PARTITIONS: Final = 200


class BrokerPart:
    def __init__(
        self,
        broker: Broker,
        listening: Listening,
        directories: Sequence[LogDirectory],
        *,
        settle_memory: Callable[[], None],
    ) -> None:
        """``settle_memory`` is called after a change that made many objects."""
        config = broker.config
        self.epoch = NO_BROKER_EPOCH
        self._broker = broker
        self._listening = listening
        self._settle_memory = settle_memory
        paths = set(config.directories)
        broker.logs = Logs(
            broker,
            [each for each in directories if each.path in paths],
            broker_defaults=config.option_set.default_texts(),
        )
        broker.cleaner = Cleaner(broker)
        broker.internal_topics = internal_topics(config)
        broker.groups = GroupDriver(
            broker.environment,
            broker.deadlines,
            classic=config.classic_groups,
            offsets=config.offsets,
            topic=config.offsets_topic,
            spawn=broker.spawn,
            report=broker.report,
        )
        broker.producer_ids = ProducerIds(self._allocate_producer_ids, broker.spawn)

    # starting

    def find_logs(self) -> None:
        """Look at the disks before the first image says what should be there."""
        self._broker.logs.find_on_disk()

    async def join(self, endpoints: Sequence[Endpoint]) -> None:
        """Become a broker of the cluster that clients are sent to."""
        broker = self._broker
        broker.logs.set_strays_aside()
        directories = [each.meta.directory_id for each in broker.logs.directories if each.meta is not None]
        registration = Registration(
            node_id=broker.node_id,
            incarnation_id=broker.environment.randomness.uuid(),
            endpoints=tuple(endpoints),
            rack=broker.config.node.broker_rack or None,
            directories=tuple(sorted(directories)),
        )
        quorum, controller = broker.quorum, broker.controller
        epoch = await quorum.submit(lambda image: controller.register_broker(image, registration))
        self.epoch = epoch
        await quorum.submit(lambda image: controller.unfence_broker(image, broker.node_id, epoch))
        broker.logs.start_upkeep()
        broker.cleaner.start()

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        broker = self._broker
        return await broker.quorum.submit(
            lambda image: broker.controller.allocate_producer_ids(image, broker.node_id, self.epoch)
        )

    # following the metadata

    async def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        broker = self._broker
        for topic in delta.topics.deleted.values():
            if topic.name == OFFSETS_TOPIC:
                for index in topic.partitions:
                    broker.groups.partition_lost(index)
            for index in topic.partitions:
                broker.cleaner.partition_gone(TopicPartition(topic.name, index))
        placed = await broker.logs.apply(image, delta)
        offsets_topic = image.topics.named(OFFSETS_TOPIC)
        if offsets_topic is not None:
            broker.groups.partition_count = len(offsets_topic.partitions)
        for partition in placed:
            if partition.name.topic == OFFSETS_TOPIC:
                broker.groups.partition_led(partition)
        if len(placed) >= LARGE_CHANGE_PARTITIONS:
            self._settle_memory()
        if delta.topics.deleted:
            broker.groups.topics_deleted([(topic.name, each) for each, topic in delta.topics.deleted.items()])
        if delta.configs.changed:
            broker.config.apply_dynamic(image.configs.of_broker(broker.node_id), image.configs.of_all_brokers())
            broker.cleaner.apply_config()
            self._listening.apply_limits()
            if any(resource.type == ResourceType.BROKER for resource in delta.configs.changed):
                self._listening.renew_certificates()

    # trouble and the end

    def directory_failed(self) -> bool:
        """One of the directories is lost: tell who waits for its logs. Whether none is left."""
        logs = self._broker.logs
        logs.tell_of_offline_logs()
        self._broker.cleaner.look_for_offline_logs()
        return all(directory.offline_reason is not None for directory in logs.directories)

    def let_go(self) -> None:
        """Coordinate nothing any more; whoever waits is told to look elsewhere."""
        self._broker.groups.close()

    async def stop(self) -> None:
        """Compact and flush nothing more; what is under way ends first."""
        await self._broker.cleaner.stop()
        await self._broker.logs.stop_flushing()
