"""The node's logs: opened and created as the metadata says, kept tidy in the background.

`Logs.apply` follows the metadata image: a partition that names this node gets a log, and leads or follows; one that is
deleted or lives elsewhere from now on loses it. Upkeep (retention, flushing, checkpoints, scrubbing) decides on the
loop and works on threads, one log at a time.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from millbeck.kernel.errors import ApiError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.kernel.names import is_internal_topic
from millbeck.kernel.options import Layers
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage, PartitionRegistration
from millbeck.metadata.image.directories import LOST_DIRECTORY, is_reserved
from millbeck.replication.partition import Partition
from millbeck.server.broker import Broker
from millbeck.server.log_steps import detach_old_segments, truncate
from millbeck.server.replication import RoleChanges
from millbeck.server.topics import LocalTopic, rules_of
from millbeck.server.turns import Turns
from millbeck.storage import retention
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory, TreeRemoval
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.log import Log
from millbeck.storage.retention import Removal
from millbeck.storage.scrub import Scrubber

SCRUB_PAUSE_SECONDS: Final = 1.0
STOP_POLL_SECONDS: Final = 0.01
METADATA_TOPIC: Final = "__cluster_metadata"
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)

log = logging.getLogger(__name__)


class Logs:
    def __init__(
        self, broker: Broker, directories: Sequence[LogDirectory], *, broker_defaults: Mapping[str, str]
    ) -> None:
        self.directories = list(directories)
        self._broker = broker
        self._broker_defaults = broker_defaults
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._on_disk: dict[TopicPartition, tuple[LogDirectory, Uuid]] = {}
        self.interrupted_moves: dict[TopicPartition, tuple[LogDirectory, Uuid]] = {}
        """Where logs were on their way to when the last process ended, and of which topic."""
        self.on_placed: Callable[[RoleChanges], None] = lambda changes: None
        """Told of partitions whose logs could be made at last, long after the image that has them."""
        self._unmade: dict[TopicPartition, LogDirectory] = {}
        """Logs for which there was no room, and where."""
        self._mending: dict[TopicPartition, asyncio.Event] = {}
        """Logs whose files a thread is at work on, and the end of that."""
        self._checkpointed: dict[LogDirectory, dict[TopicPartition, int]] = {}
        self._removing = asyncio.Lock()
        self._running_flushes = 0
        self._is_stopping = False
        self._high_watermarks: dict[TopicPartition, int] = {}
        for directory in self.directories:
            directory.on_flush_wanted = self._flush_wanted

    # following the metadata

    def find_on_disk(self) -> None:
        """Note which logs the directories hold, before the first image comes."""
        new_uuid = self._broker.environment.randomness.uuid
        for directory in self.directories:
            for name, topic_id in directory.partitions():
                if name.topic == METADATA_TOPIC:
                    continue
                unfinished = None if topic_id != ZERO_UUID else directory.discard_unfinished(name, new_uuid())
                if unfinished is not None:
                    log.info("%s was about to be made when this node died", name)
                    self._remove_later(unfinished)
                elif name in self._on_disk:
                    # A stop came while it changed places: either has everything.
                    directory.set_aside_as_stray(name, new_uuid())
                else:
                    self._on_disk[name] = (directory, topic_id)
            self._high_watermarks |= directory.read_high_watermarks()
            for name, topic_id in directory.interrupted_moves():
                self.interrupted_moves[name] = (directory, topic_id)
            for removal in directory.leftovers():
                self._remove_later(removal)

    def set_strays_aside(self) -> None:
        """Logs on disk that the metadata does not know are kept under another name."""
        for name, (directory, _) in sorted(self._on_disk.items()):
            path = directory.set_aside_as_stray(name, self._broker.environment.randomness.uuid())
            log.warning("%s is not in the metadata: its log is kept as %s", name, path)
        self._on_disk.clear()
        for each in self.directories:
            each.all_opened()

    async def apply(self, image: MetadataImage, delta: MetadataDelta) -> RoleChanges:
        """Make the node what a committed image says; which partitions have changed their roles by that.

        Logs are made before clients hear of them. A change that makes, moves or removes thousands gives way to the loop
        in between.
        """
        broker = self._broker
        changes = RoleChanges()
        turns = Turns(broker.environment.clock)
        for topic_id in delta.topics.deleted:
            await self._delete(topic_id, turns)
        if delta.configs.changed:
            # Before the roles: what a smaller set of in-sync replicas may commit depends on their minimum.
            self._reconfigure(image)
        for before, index, registration in delta.topics.changed_partitions():
            if broker.node_id in registration.replicas:
                await self._forget_checkpoints(TopicPartition(before.name, index))
                partition = self._place(image, before.name, before.topic_id, index, registration)
                if partition is not None:
                    changes.note(partition, registration, broker.node_id)
                    self._tell_directory(partition, registration)
            else:
                await self._untouched(TopicPartition(before.name, index))
                self._leave(before.topic_id, index, changes)
            await turns.give_way()
        broker.image = broker.topics.image = image
        await broker.replication.image_changed(delta, changes, turns)
        return changes

    def _place(
        self, image: MetadataImage, name: str, topic_id: Uuid, index: int, registration: PartitionRegistration
    ) -> Partition | None:
        """The partition with its log, which is opened or made when it is not there; None when that cannot be done."""
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
            log.error("%s has no usable log: %s", key, error)
            was_told = index in topic.unusable
            topic.unusable[index] = f"{key} has no usable log: {error}"
            if key in self._unmade and len(registration.replicas) > 1 and not was_told:
                broker.replication.has_no_room(topic_id, index)
            return None
        topic.unusable.pop(index, None)
        partition = topic.partitions[index] = Partition(
            key,
            topic_id,
            opened,
            broker.turn,
            leader_epoch=-1,
            partition_epoch=-1,
            written=self._written,
            around=broker.replication.around,
            isr_changes=broker.replication.isr_changes,
            leads=False,
            high_watermark=self._high_watermarks.pop(key, 0),
        )
        return partition

    def _leave(self, topic_id: Uuid, index: int, changes: RoleChanges) -> None:
        """The partition was moved away from this node."""
        topic = self._broker.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.pop(index, None)
        if topic is None or partition is None:
            return
        if not topic.partitions:
            self._broker.topics.remove(topic)
        if partition.is_leader:
            changes.lost.append(partition)
        changes.gone.append(partition)
        self._take_away(partition, NotLeaderOrFollower(f"{partition.name} has moved to other brokers"))

    def _tell_directory(self, partition: Partition, registration: PartitionRegistration) -> None:
        meta = self._directory_of[partition.name].meta
        if meta is not None:
            registered = registration.directory(self._broker.node_id)
            is_choice = len(self.directories) > 1
            self._broker.replication.is_in(partition, meta.directory_id, registered, is_choice=is_choice)

    def _open_or_create(self, key: TopicPartition, topic_id: Uuid, config: LogConfig, registered: Uuid) -> Log:
        """``registered`` is the directory that the metadata has the replica in."""
        now_ms = self._broker.now_ms()
        directory, found_id = self._on_disk.pop(key, (None, None))
        if directory is not None and found_id == topic_id:
            self._directory_of[key] = directory
            return directory.open_log(key, topic_id, config, now_ms=now_ms)
        if directory is not None:
            path = directory.set_aside_as_stray(key, self._broker.environment.randomness.uuid())
            what = "does not say whose it is" if found_id == ZERO_UUID else "belongs to another topic of that name"
            log.warning("%s on disk %s: kept as %s", key, what, path)
        online = [each for each in self.directories if each.offline_reason is None]
        if not online:
            raise KafkaStorageError("every log directory is offline")
        named = [each for each in online if each.meta is not None and each.meta.directory_id == registered]
        if not named and len(online) < len(self.directories) and not is_reserved(registered):
            raise KafkaStorageError("its log directory is offline")
        directory = min(named or online, key=lambda each: len(each.logs))
        self._broker.cleaner.partition_gone(key)
        self._directory_of[key] = directory
        try:
            return directory.create_log(key, topic_id, config, now_ms=now_ms)
        except OSError as error:
            if error.errno in NO_ROOM:
                self._unmade[key] = directory
            raise

    def _free_bytes(self, directory: LogDirectory) -> int:
        """0 as well when the disk does not answer, or is given up."""
        try:
            return 0 if directory.offline_reason else self._broker.environment.files.free_bytes(directory.path)
        except OSError:
            return 0

    def place_again(self, room_bytes: int) -> None:
        """Make the logs for which there was no room, where there is by now."""
        broker, changes = self._broker, RoleChanges()
        for key, directory in list(self._unmade.items()):
            topic = broker.topics.by_name.get(key.topic)
            registration = broker.image.topics.partition(*key)
            if (
                topic is None
                or key.partition not in topic.unusable
                or registration is None
                or broker.node_id not in registration.replicas
            ):
                del self._unmade[key]
            elif self._free_bytes(directory) >= room_bytes:
                del self._unmade[key]
                partition = self._place(broker.image, key.topic, topic.topic_id, key.partition, registration)
                if partition is not None:
                    log.warning("there is room for the log of %s now", key)
                    changes.note(partition, registration, broker.node_id)
                    self._tell_directory(partition, registration)
        if changes.led or changes.followed:
            for partition in changes.followed:
                broker.replication.fetchers.follow(partition)
            self.on_placed(changes)

    async def _forget_checkpoints(self, key: TopicPartition) -> None:
        """A log of this name may be created: what the checkpoints say of an earlier one must go first."""
        for directory in self.directories:
            while (
                key not in directory.logs
                and key not in self._on_disk
                and directory.offline_reason is None
                and (job := directory.creating_job(key)) is not None
            ):
                try:
                    await self._broker.in_thread(job)
                except OSError as error:
                    log.error("the checkpoints of %s could not be written: %s", directory.path, error)
                    break

    async def _delete(self, topic_id: Uuid, turns: Turns) -> None:
        broker = self._broker
        topic = broker.topics.by_id.get(topic_id)
        if topic is None:
            return
        broker.topics.remove(topic)
        for partition in topic.partitions.values():
            await turns.give_way()
            await self._untouched(partition.name)
            self._take_away(partition, UnknownTopicOrPartition(f"{topic.name} was deleted"))

    def _take_away(self, partition: Partition, error: ApiError) -> None:
        """Tell who waits, and let the files go."""
        self._broker.replication.gone(partition)
        partition.close(error)
        self._broker.cleaner.partition_gone(partition.name)
        directory = self._directory_of.pop(partition.name)
        try:
            self._remove_later(directory.delete_log(partition.name, self._broker.environment.randomness.uuid()))
        except OSError as failure:
            log.error("the log of %s could not be taken away: %s", partition.name, failure)

    @property
    def offline_count(self) -> int:
        """How many logs have gone offline since the start; it only rises."""
        return sum(directory.offline_count for directory in self.directories)

    def directory_of(self, name: TopicPartition) -> LogDirectory | None:
        return self._directory_of.get(name)

    def tell_of_offline_logs(self) -> None:
        """A directory failed: whoever waits for one of its logs is answered."""
        for partition in self._broker.topics.all_partitions():
            if partition.log.is_offline:
                self._broker.replication.went_offline(partition)
                partition.flushed()

    # settings

    def layers(self, image: MetadataImage, overrides: Mapping[str, str]) -> Layers:
        return Layers(
            overrides=overrides,
            dynamic_broker=image.configs.of_broker(self._broker.node_id),
            dynamic_default=image.configs.of_all_brokers(),
            static=self._broker.config.texts,
            defaults=self._broker_defaults,
        )

    def topic_config(self, image: MetadataImage, name: str) -> LogConfig:
        return LogConfig.resolve(self.layers(image, image.configs.of_topic(name)))

    def _reconfigure(self, image: MetadataImage) -> None:
        for topic in self._broker.topics.by_name.values():
            config = self.topic_config(image, topic.name)
            if config != topic.config:
                topic.config = config
                topic.rules = rules_of(config)
                for partition in topic.partitions.values():
                    partition.log.update_config(config)

    # upkeep

    def start_upkeep(self) -> None:
        options = self._broker.config.upkeep
        self._every(options.log_retention_check_interval_ms, self._apply_retention)
        self._every(options.log_flush_scheduler_interval_ms, self._flush_due)
        self._every(options.log_flush_offset_checkpoint_interval_ms, self._checkpoint)
        self._every(options.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks)
        self._every(options.log_scrub_interval_ms, self._scrub)

    def _every(self, interval_ms: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if interval_ms > 0:
            self._broker.spawn(self._repeat(interval_ms / 1000, work))

    async def _repeat(self, interval_seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            # The default of one interval is as good as never, and more than the loop can count.
            await asyncio.sleep(min(interval_seconds, 86_400.0 * 365))
            try:
                await work()
            except (OSError, ApiError) as error:
                log.error("log upkeep: %s", error)
            except Exception as error:
                self._broker.report(error)

    def _written(self, partition: Partition, now_ms: int) -> None:
        """After a write of a partition, on the loop: flush or start writeback, whichever it is time for."""
        if partition.log.flush_is_due(now_ms):
            self._broker.spawn(self.flush(partition))
        piece = partition.log.writeback_slice()
        if piece is not None:
            self._broker.spawn(self._write_back(piece.file.start_writeback, piece.position, piece.size, piece.release))

    async def _write_back(
        self, start: Callable[[int, int], None], position: int, size: int, release: Callable[[], None]
    ) -> None:
        try:
            await self._broker.in_thread(start, position, size)
        finally:
            release()

    async def flush(self, partition: Partition) -> None:
        """Make a partition's log durable up to its present end; one flush of a log runs at a time."""
        while not self._is_stopping and (job := partition.log.flush_job()) is not None:
            self._running_flushes += 1
            try:
                result = await self._broker.in_thread(job.run)
            finally:
                self._running_flushes -= 1
            partition.log.finish_flush(job, result)
            partition.flushed()
            is_more_due = job.cut_version is not None or partition.log.flush_is_due(self._broker.now_ms())
            if result.outcome is not FlushOutcome.DONE or not is_more_due:
                return

    def _flush_wanted(self, wanting: Log) -> None:
        """A log takes no writes until it is flushed; the metadata log's owner sees to that itself."""
        name = wanting.topic_partition
        topic = self._broker.topics.by_name.get(name.topic)
        partition = None if topic is None else topic.partitions.get(name.partition)
        if partition is not None and partition.log is wanting:
            self._broker.spawn(self.flush(partition))

    async def stop_flushing(self) -> None:
        """Begin no more flushes and let those on threads end: a log with one under way cannot be closed cleanly."""
        self._is_stopping = True
        while self._running_flushes:
            await asyncio.sleep(STOP_POLL_SECONDS)

    async def _apply_retention(self) -> None:
        expiration_ms = self._broker.config.upkeep.producer_id_expiration_ms
        detached: list[Log] = []
        for partition in self._broker.topics.all_partitions():
            now_ms = self._broker.now_ms()
            start_before = partition.log.log_start_offset
            try:
                if await detach_old_segments(
                    partition.log,
                    partial(self.flush, partition),
                    now_ms=now_ms,
                    high_watermark=partition.high_watermark,
                ):
                    detached.append(partition.log)
            except (OSError, ApiError) as error:
                log.error("retention of %s: %s", partition.name, error)
            partition.log.expire_producers(now_ms, expiration_ms)
            if partition.log.log_start_offset != start_before:
                partition.log_start_moved()
            await asyncio.sleep(0)
        await self._remove_detached(detached)

    async def _remove_detached(self, logs: Sequence[Log]) -> None:
        """The checkpoints learn of the new starts, once for all logs of a directory, and then the files go."""
        for directory in self.directories:
            if any(directory.logs.get(each.topic_partition) is each for each in logs):
                try:
                    await self._broker.in_thread(directory.checkpoint_job())
                except (OSError, KafkaStorageError) as error:
                    # The disk may be full, and what is about to go makes room.
                    log.error("the checkpoints of %s could not be written: %s", directory.path, error)
        for each in logs:
            for removal in retention.remove_detached(each):
                self._remove_later(removal)

    async def truncate(
        self,
        partition: Partition,
        offset: int,
        *,
        starts_over: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Cut a log's end off, or all of it, which nobody may write to meanwhile; durable when this returns.

        Nothing when it is no longer wanted just before the cut. Raises `KafkaStorageError`, OSError.
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
        """A replica has arrived in another directory: its old log goes. Raises OSError."""
        source = self._directory_of[partition.name]
        target.adopt_future(future)
        self._directory_of[partition.name] = target
        self._broker.cleaner.partition_moved(partition.name, source, target)
        partition.swap_log(future)
        self._remove_later(source.delete_log(partition.name, self._broker.environment.randomness.uuid()))
        if target.meta is not None:
            self._broker.replication.is_in(partition, target.meta.directory_id, LOST_DIRECTORY, is_choice=True)

    def remove_tree_later(self, removal: TreeRemoval) -> None:
        self._remove_later(removal)

    async def mend(self, partition: Partition) -> bool:
        """Open a damaged log anew, cut before its first bad batch; False when the partition leads by now, or is gone.

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
        ended = self._mending[partition.name] = asyncio.Event()
        try:
            mending = directory.mending_job(damaged, now_ms=self._broker.now_ms())
            mended = await self._broker.in_thread(mending.run)
        finally:
            del self._mending[partition.name]
            ended.set()
        if partition.is_leader or directory.logs.get(partition.name) is not damaged:
            return False
        log = directory.finish_mending(damaged, mended, now_ms=self._broker.now_ms())
        if log is not damaged:
            partition.replace_log(log)
        return not log.is_offline

    async def _untouched(self, partition: TopicPartition) -> None:
        """A thread may be at work on the log's files: they are not renamed before it has ended."""
        ended = self._mending.get(partition)
        if ended is not None:
            await ended.wait()

    async def _flush_due(self) -> None:
        for partition in self._broker.topics.all_partitions():
            if partition.log.flush_is_due(self._broker.now_ms()):
                await self.flush(partition)
            else:
                await asyncio.sleep(0)

    async def _checkpoint(self) -> None:
        """Flush what was written since the last time, then write down how far recovery may trust the logs."""
        for partition in self._broker.topics.all_partitions():
            if partition.log.end_offset > partition.log.flushed_offset and not partition.log.is_offline:
                await self.flush(partition)
        for directory in self.directories:
            if directory.offline_reason is None:
                await self._broker.in_thread(directory.checkpoint_job())

    async def _checkpoint_high_watermarks(self) -> None:
        watermarks: dict[LogDirectory, dict[TopicPartition, int]] = {}
        for partition in self._broker.topics.all_partitions():
            directory = self._directory_of.get(partition.name)
            if directory is not None and directory.offline_reason is None:
                watermarks.setdefault(directory, {})[partition.name] = partition.high_watermark
        for directory, offsets in watermarks.items():
            # An idle node leaves its disk alone.
            if self._checkpointed.get(directory) != offsets:
                await self._broker.in_thread(directory.write_high_watermarks, offsets)
                self._checkpointed[directory] = offsets

    async def _scrub(self) -> None:
        """Read everything durable again, slowly, once in a while; damage takes its partition offline."""
        for partition in self._broker.topics.all_partitions():
            try:
                await self._scrub_log(Scrubber(partition.log))
            except OSError as error:
                log.error("scrubbing %s: %s", partition.name, error)
            if partition.log.damaged_offset >= 0:
                self._broker.replication.mending.look()

    async def _scrub_log(self, scrubber: Scrubber) -> None:
        while (job := scrubber.next_job()) is not None:
            try:
                await self._broker.in_thread(job.run)
            finally:
                scrubber.finish(job)
            await asyncio.sleep(SCRUB_PAUSE_SECONDS)

    def remove_later(self, removals: Sequence[Removal]) -> None:
        """Delete files that are no longer part of a log, each after its delay."""
        for removal in removals:
            self._remove_later(removal)

    def _remove_later(self, removal: Removal | TreeRemoval) -> None:
        self._broker.spawn(self._remove(removal))

    async def _remove(self, removal: Removal | TreeRemoval) -> None:
        await asyncio.sleep(removal.delay_ms / 1000)
        try:
            # A deleted topic may have thousands: one at a time, so that they do not fill the queue of the threads.
            async with self._removing:
                await self._broker.in_thread(removal.run)
        except OSError as error:
            log.error("files of a deleted segment or log could not be removed: %s", error)
