"""Manage the logs of this node: create, open, move, repair and delete them as the metadata requires.

`LogManager.apply` applies a metadata image: a partition with a replica on this node gets a log and becomes leader or
follower; a log that is deleted or reassigned to other brokers is removed. `LogUpkeep` flushes, checks and cleans up the
existing logs.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import ApiError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.kernel.names import is_internal_topic
from millbeck.kernel.options import ConfigLayers
from millbeck.metadata.image.directories import LOST_DIRECTORY, is_reserved
from millbeck.replication.partition import Partition
from millbeck.server.local_topics import LocalTopic, rules_of
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.replicas.log_steps import truncate
from millbeck.server.replicas.log_upkeep import LogUpkeep
from millbeck.server.replicas.replica_manager import PartitionRoleChanges
from millbeck.storage.config import LogConfig

if TYPE_CHECKING:
    from millbeck.metadata.delta import MetadataDelta
    from millbeck.metadata.image import MetadataImage, PartitionRegistration
    from millbeck.server.replicas.context import ReplicationContext
    from millbeck.storage.directory import DirectoryDeletion, LogDirectory
    from millbeck.storage.log import Log

METADATA_TOPIC: Final = "__cluster_metadata"
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)

log = logging.getLogger(__name__)


class LogManager(LogUpkeep):
    def __init__(
        self, broker: ReplicationContext, directories: Sequence[LogDirectory], *, broker_defaults: Mapping[str, str]
    ) -> None:
        super().__init__(broker, directories)
        self._broker_defaults = broker_defaults
        self._on_disk: dict[TopicPartition, tuple[LogDirectory, Uuid]] = {}
        self._unopened: dict[TopicPartition, tuple[LogDirectory, Uuid]] = {}
        """Logs on disk that could not be opened. They are not replaced by new, empty logs."""
        self.interrupted_moves: dict[TopicPartition, tuple[LogDirectory, Uuid]] = {}
        """Directory moves that the previous process left unfinished: the target directory and the topic id."""
        self.on_placed: Callable[[PartitionRoleChanges], None] = lambda changes: None
        """Called for partitions whose logs could only be created later than the metadata image that assigned them."""
        self._failed_creations: dict[TopicPartition, LogDirectory] = {}
        """Logs that could not be created because the disk was full, with their directory."""
        self._repairing: dict[TopicPartition, asyncio.Event] = {}
        """Logs that a thread is repairing, with an event that is set when the repair ends."""
        self._is_repair_scheduled = False
        self._high_watermarks: dict[TopicPartition, int] = {}
        for directory in self.directories:
            directory.on_damage = self._damage_found

    # applying metadata

    def load_directories(self) -> None:
        """List the logs in the log directories, before the first metadata image is applied."""
        new_uuid = self._broker.environment.randomness.uuid
        for directory in self.directories:
            for name, topic_id in directory.partitions():
                if name.topic == METADATA_TOPIC:
                    continue
                unfinished = None if topic_id != ZERO_UUID else directory.delete_unfinished(name, new_uuid())
                if unfinished is not None:
                    log.info("%s was being created when this node crashed: deleting it", name)
                    self._remove_later(unfinished)
                elif name in self._on_disk:
                    # The node stopped while a directory move swapped the two logs: each of them is complete.
                    directory.mark_as_stray(name, new_uuid())
                else:
                    self._on_disk[name] = (directory, topic_id)
            self._high_watermarks |= directory.read_high_watermarks()
            for name, topic_id in directory.interrupted_moves():
                self.interrupted_moves[name] = (directory, topic_id)
            for removal in directory.leftovers():
                self._remove_later(removal)

    def mark_strays(self) -> None:
        """Rename the logs on disk that are not in the metadata; they are kept as strays."""
        for name, (directory, _) in sorted(self._on_disk.items()):
            path = directory.mark_as_stray(name, self._broker.environment.randomness.uuid())
            log.warning("%s is not in the metadata: its log is kept as %s", name, path)
        self._on_disk.clear()
        for each in self.directories:
            each.all_opened(keep=[name for name, (directory, _) in self._unopened.items() if directory is each])

    async def apply(self, image: MetadataImage, delta: MetadataDelta) -> PartitionRoleChanges:
        """Apply a committed metadata image; returns the partitions whose role has changed.

        Logs are created before clients can see the partitions. A delta with thousands of partitions yields to the event
        loop in between.
        """
        broker = self._broker
        changes = PartitionRoleChanges()
        turns = TimeSlices(broker.environment.clock)
        for topic_id in delta.topics.deleted:
            await self._delete(topic_id, turns)
        if delta.configs.changed:
            # Before the roles: whether a smaller ISR may commit depends on min.insync.replicas.
            await self._reconfigure(image, turns)
        for before, index, registration in delta.topics.changed_partitions():
            if broker.node_id in registration.replicas:
                await self._drop_checkpoint_entries(TopicPartition(before.name, index))
                partition = self._open_partition(image, before.name, before.topic_id, index, registration)
                if partition is not None:
                    changes.note(partition, registration, broker.node_id)
                    self._report_directory(partition, registration)
            else:
                await self._wait_for_repair(TopicPartition(before.name, index))
                self._remove_reassigned(before.topic_id, index, changes)
            await turns.yield_to_loop()
        broker.image = broker.topics.image = image
        await broker.replication.on_metadata_update(delta, changes, turns)
        return changes

    def _open_partition(
        self, image: MetadataImage, name: str, topic_id: Uuid, index: int, registration: PartitionRegistration
    ) -> Partition | None:
        """The local partition, whose log is opened or created if necessary; None when that fails."""
        broker = self._broker
        topic = broker.topics.by_id.get(topic_id)
        if topic is None:
            config = self.topic_config(image, name)
            topic = LocalTopic(
                name=name,
                topic_id=topic_id,
                config=config,
                rules=rules_of(config),
                is_internal=is_internal_topic(name),
            )
            broker.topics.add(topic)
        partition = topic.partitions.get(index)
        if partition is not None:
            return partition
        key = TopicPartition(name, index)
        try:
            opened = self._open_or_create(key, topic_id, topic.config, registration.directory(broker.node_id))
        except (OSError, ApiError) as error:
            log.error("the log of %s is not usable: %s", key, error)
            was_told = index in topic.unusable
            topic.unusable[index] = f"the log of {key} is not usable: {error}"
            # The controller already knows about offline directories. The only replica of a new topic waits until the
            # disk has room.
            is_news = len(registration.replicas) > 1 if key in self._failed_creations else isinstance(error, OSError)
            if is_news and not was_told:
                broker.replication.is_unusable(topic_id, index)
            return None
        topic.unusable.pop(index, None)
        partition = topic.partitions[index] = Partition(
            opened,
            broker.turn,
            written=self._written,
            context=broker.replication.context,
            isr_changes=broker.replication.isr_changes,
            high_watermark=self._high_watermarks.pop(key, 0),
        )
        return partition

    def _remove_reassigned(self, topic_id: Uuid, index: int, changes: PartitionRoleChanges) -> None:
        """Remove a partition that was reassigned to other brokers."""
        topic = self._broker.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.pop(index, None)
        if topic is None or partition is None:
            return
        if not topic.partitions:
            self._broker.topics.remove(topic)
        if partition.is_leader:
            changes.lost.append(partition)
        changes.gone.append(partition)
        self._remove_partition(partition, NotLeaderOrFollower(f"{partition.name} has moved to other brokers"))

    def _report_directory(self, partition: Partition, registration: PartitionRegistration) -> None:
        meta = self._directory_of[partition.name].meta
        registered = registration.directory(self._broker.node_id)
        if partition.log.is_offline:
            # Reporting its real directory would make it electable.
            return
        if registered == LOST_DIRECTORY:
            self._broker.replication.repair.was_lost(partition)
        elif meta is not None:
            is_choice = len(self.directories) > 1
            self._broker.replication.is_in(partition, meta.directory_id, registered, is_choice=is_choice)

    def _open_or_create(self, key: TopicPartition, topic_id: Uuid, config: LogConfig, registered: Uuid) -> Log:
        """Open the log on disk, or create it. ``registered`` is the replica's directory in the metadata."""
        now_ms = self._broker.now_ms()
        directory, found_id = self._on_disk.pop(key, None) or self._unopened.pop(key, None) or (None, None)
        if directory is not None and found_id == topic_id:
            self._directory_of[key] = directory
            try:
                return directory.open_log(key, topic_id, config, now_ms=now_ms)
            except OSError:
                self._unopened[key] = directory, found_id
                raise
        if directory is not None:
            path = directory.mark_as_stray(key, self._broker.environment.randomness.uuid())
            what = "has no topic id" if found_id == ZERO_UUID else "belongs to another topic of that name"
            log.warning("%s on disk %s: kept as %s", key, what, path)
        self._broker.cleaner.partition_gone(key)
        while True:
            directory = self._directory_for_new(registered)
            self._directory_of[key] = directory
            try:
                return directory.create_log(key, topic_id, config, now_ms=now_ms)
            except OSError as error:
                if error.errno in NO_ROOM:
                    self._failed_creations[key] = directory
                raise
            except KafkaStorageError:
                # If `create_log` found the directory missing, it is offline now and another one may be usable.
                if directory.offline_reason is None:
                    raise

    def _directory_for_new(self, registered: Uuid) -> LogDirectory:
        """The directory for a log that is created; raises `KafkaStorageError`."""
        online = [each for each in self.directories if each.offline_reason is None]
        if not online:
            raise KafkaStorageError("every log directory is offline")
        named = [each for each in online if each.meta is not None and each.meta.directory_id == registered]
        may_be_offline = registered == LOST_DIRECTORY or not is_reserved(registered)
        if not named and len(online) < len(self.directories) and may_be_offline:
            raise KafkaStorageError("the replica's log directory is offline")
        return min(named or online, key=lambda each: len(each.logs))

    def _free_bytes(self, directory: LogDirectory) -> int:
        """The free space of a directory's disk; 0 when the directory is offline or cannot be read."""
        try:
            return 0 if directory.offline_reason else self._broker.environment.files.free_bytes(directory.path)
        except OSError:
            return 0

    def retry_failed_creations(self, room_bytes: int) -> None:
        """Create the logs that did not fit on a full disk, in directories that now have at least ``room_bytes``
        free."""
        broker, changes = self._broker, PartitionRoleChanges()
        for key, directory in list(self._failed_creations.items()):
            topic = broker.topics.by_name.get(key.topic)
            registration = broker.image.topics.partition(*key)
            if (
                topic is None
                or key.partition not in topic.unusable
                or registration is None
                or broker.node_id not in registration.replicas
            ):
                del self._failed_creations[key]
            elif self._free_bytes(directory) >= room_bytes:
                del self._failed_creations[key]
                partition = self._open_partition(broker.image, key.topic, topic.topic_id, key.partition, registration)
                if partition is not None:
                    log.warning("created the log of %s, its disk has room again", key)
                    changes.note(partition, registration, broker.node_id)
                    self._report_directory(partition, registration)
        if changes.led or changes.followed:
            for partition in changes.followed:
                broker.replication.fetchers.follow(partition)
            self.on_placed(changes)

    async def _drop_checkpoint_entries(self, key: TopicPartition) -> None:
        """Remove the checkpoint entries of an earlier log with this name, before a new one is created."""
        for directory in self.directories:
            while (
                key not in directory.logs
                and key not in self._on_disk
                and key not in self._unopened
                and directory.offline_reason is None
                and (job := directory.creating_job(key)) is not None
            ):
                try:
                    await self._broker.in_thread(job)
                except OSError as error:
                    log.error("the checkpoints of %s could not be written: %s", directory.path, error)
                    break

    async def _delete(self, topic_id: Uuid, turns: TimeSlices) -> None:
        broker = self._broker
        topic = broker.topics.by_id.get(topic_id)
        if topic is None:
            return
        broker.topics.remove(topic)
        for index in list(topic.partitions):
            await turns.yield_to_loop()
            await self._wait_for_repair(TopicPartition(topic.name, index))
            # One by one: freeing thousands of partitions with their topic holds the loop for milliseconds.
            partition = topic.partitions.pop(index)
            self._remove_partition(partition, UnknownTopicOrPartition(f"{topic.name} was deleted"))

    def _remove_partition(self, partition: Partition, error: ApiError) -> None:
        """Fail the waiting requests of a partition with ``error`` and schedule the deletion of its files."""
        self._broker.replication.gone(partition)
        partition.close(error)
        self._broker.cleaner.partition_gone(partition.name)
        directory = self._directory_of.pop(partition.name)
        try:
            self._remove_later(directory.delete_log(partition.name, self._broker.environment.randomness.uuid()))
        except OSError as failure:
            log.error("could not rename the log of %s for deletion: %s", partition.name, failure)

    @property
    def offline_count(self) -> int:
        """The number of logs that went offline since the start; a counter."""
        return sum(directory.offline_count for directory in self.directories)

    def directory_of(self, name: TopicPartition) -> LogDirectory | None:
        return self._directory_of.get(name)

    def unusable_in(self, directory: LogDirectory) -> list[tuple[TopicPartition, str]]:
        """Logs that could not be opened or created in the directory, each with the reason."""
        found = [
            (TopicPartition(topic.name, index), reason)
            for topic in self._broker.topics.by_name.values()
            for index, reason in topic.unusable.items()
        ]
        return [(name, reason) for name, reason in sorted(found) if self._directory_of.get(name) is directory]

    def on_directory_offline(self) -> None:
        """Complete the requests that wait for a log in a failed directory."""
        for partition in self._broker.topics.all_partitions():
            if partition.log.is_offline:
                self._broker.replication.went_offline(partition)
                partition.flushed()

    # settings

    def layers(self, image: MetadataImage, overrides: Mapping[str, str]) -> ConfigLayers:
        return ConfigLayers(
            overrides=overrides,
            dynamic_broker=image.configs.of_broker(self._broker.node_id),
            dynamic_default=image.configs.of_all_brokers(),
            static=self._broker.config.texts,
            defaults=self._broker_defaults,
        )

    def topic_config(self, image: MetadataImage, name: str) -> LogConfig:
        return LogConfig.resolve(self.layers(image, image.configs.of_topic(name)))

    async def _reconfigure(self, image: MetadataImage, turns: TimeSlices) -> None:
        for topic in list(self._broker.topics.by_name.values()):
            await turns.yield_to_loop()
            config = self.topic_config(image, topic.name)
            if config != topic.config:
                topic.config = config
                topic.rules = rules_of(config)
                for partition in list(topic.partitions.values()):
                    partition.log.update_config(config)
                    await turns.yield_to_loop()

    # repair, truncation, moves

    def _damage_found(self) -> None:
        if not self._is_repair_scheduled:
            self._is_repair_scheduled = True
            self._broker.spawn(self._run_repair())

    async def _run_repair(self) -> None:
        """Run the repair check in a separate task: the code that found the damage may be serving a request."""
        self._is_repair_scheduled = False
        self._broker.replication.repair.check()

    async def truncate(
        self,
        partition: Partition,
        offset: int,
        *,
        starts_over: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Truncate a log to ``offset``, or delete all its records (``starts_over``); durable when this returns.

        Nothing may be appended to the log meanwhile. ``is_wanted`` is checked again just before the truncation, which
        is skipped when it returns False. Raises `KafkaStorageError`, OSError.
        """
        cleaner, lowest = self._broker.cleaner, 0 if starts_over else offset
        await cleaner.partition_truncated(partition.name, lowest)
        flush = partial(self.flush, partition)
        in_thread = self._broker.in_thread
        try:
            for removal in await truncate(
                partition.log, offset, in_thread, flush, starts_over=starts_over, is_wanted=is_wanted
            ):
                self._remove_later(removal)
        finally:
            partition.was_truncated()
            self._broker.replication.moves.truncated(partition)
            await cleaner.partition_truncated(partition.name, lowest)

    def swap(self, partition: Partition, future: Log, target: LogDirectory) -> None:
        """Replace a partition's log by its future log in the target directory; delete the old one. Raises OSError."""
        source = self._directory_of[partition.name]
        target.replace_current_with_future(future)
        self._directory_of[partition.name] = target
        self._broker.cleaner.partition_moved(partition.name, source, target)
        partition.swap_log(future)
        self._remove_later(source.delete_log(partition.name, self._broker.environment.randomness.uuid()))
        if target.meta is not None:
            self._broker.replication.is_in(partition, target.meta.directory_id, LOST_DIRECTORY, is_choice=True)

    def delete_directory_later(self, removal: DirectoryDeletion) -> None:
        self._remove_later(removal)

    async def repair_log(self, partition: Partition) -> bool:
        """Reopen a damaged log, truncated before its first bad batch; False when the partition now leads or is gone.

        Raises OSError, `KafkaStorageError`.
        """
        damaged, directory = partition.log, self._directory_of.get(partition.name)
        if directory is None:
            return False
        await self._broker.cleaner.partition_truncated(partition.name, damaged.damaged_offset)
        while (job := directory.lowering_job(damaged, damaged.damaged_offset)) is not None:
            await self._broker.in_thread(job)
        if partition.is_leader or directory.logs.get(partition.name) is not damaged:
            return False
        ended = self._repairing[partition.name] = asyncio.Event()
        try:
            repairing = directory.repair_job(damaged, now_ms=self._broker.now_ms())
            repaired = await self._broker.in_thread(repairing.run)
        finally:
            del self._repairing[partition.name]
            ended.set()
        if partition.is_leader or directory.logs.get(partition.name) is not damaged:
            return False
        log = directory.finish_repair(damaged, repaired, now_ms=self._broker.now_ms())
        if log is not damaged:
            partition.replace_log(log)
        return not log.is_offline

    async def _wait_for_repair(self, partition: TopicPartition) -> None:
        """Wait for a running repair of the log: its files must not be renamed while a thread works on them."""
        ended = self._repairing.get(partition)
        if ended is not None:
            await ended.wait()
