"""Fail over and repair replicas with a damaged log or a full disk.

Theory of operation. The broker reports such a replica to the controller as being in a lost directory. The controller
removes it from the ISR and the eligible leader replicas (ELR) and elects another leader, never one that lacks committed
records. A damaged log is then truncated before its first bad batch and copies the rest from the leader. Once its real
directory is reported again, the replica rejoins the ISR when it has caught up. A replica whose disk is full keeps its
log and returns once there is room again; one whose log could not be created gets its log then.

The only usable replica of a partition stays as it is: offline with a damaged log, refusing appends with a full disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from millbeck.kernel.errors import ApiError
from millbeck.metadata.image.directories import LOST_DIRECTORY
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.server.replicas.directory_assignments import DirectoryAssignments, TopicIdPartition
from millbeck.storage.room import ROOM_BYTES

if TYPE_CHECKING:
    from millbeck.server.replicas.context import ReplicationContext
    from millbeck.storage.directory import LogDirectory

log = logging.getLogger(__name__)


class ReplicaRepair:
    def __init__(self, broker: ReplicationContext, assignments: DirectoryAssignments) -> None:
        self._broker = broker
        self._assignments = assignments
        self._reported: dict[Partition, bool] = {}
        """Replicas reported to the controller as lost; True once the controller has accepted the report."""
        self._verifying: dict[Partition, None] = {}
        """Replicas that were already lost when this process started, while their logs are being verified."""
        self._full: dict[LogDirectory, None] = {}
        """Directories in which an append failed because the disk is full."""
        self.repaired = 0

    def check(self) -> None:
        """Check for damaged logs, and for free space on full disks; run periodically and after each metadata image."""
        self._broker.logs.retry_failed_creations(ROOM_BYTES)
        for directory in [each for each in self._full if self._has_room_in(each)]:
            del self._full[directory]
            log.warning("the disk of %s has room again", directory.path)
        if not self._reported and not any(directory.offline_count for directory in self._broker.logs.directories):
            return
        for partition in self._broker.topics.all_partitions():
            if partition.log.damaged_offset >= 0:
                if self._reported.get(partition):
                    self._repair_if_led_elsewhere(partition)
                else:
                    self._report(partition, f"the log is damaged: {partition.log.offline_reason}")
        for partition in list(self._reported):
            if partition in self._verifying or partition.log.is_offline:
                continue
            if partition.log.damaged_offset < 0 and self._has_room(partition):
                self._report_recovered(partition)

    def write_failed(self, partition: Partition) -> None:
        """Handle a failed append: if the disk is full, log it once and report the replica as lost.

        Another replica can then lead, and the high watermark does not wait for a follower that cannot copy.
        """
        directory = self._broker.logs.directory_of(partition.name)
        if directory is not None and directory not in self._full and not self._has_room_in(directory):
            self._full[directory] = None
            log.error(
                "the disk of %s is full: appends that do not fit are refused with KAFKA_STORAGE_ERROR until there is"
                " room; reads are still served",
                directory.path,
            )
        if (
            partition not in self._reported
            and not partition.log.is_offline
            and self._has_others(partition)
            and not self._has_room(partition)
        ):
            self._report(partition, f"less than {ROOM_BYTES >> 20} MiB are free on its disk")

    def is_lost(self, partition: Partition) -> bool:
        """Whether the replica was reported to the controller as being in a lost directory."""
        return partition in self._reported

    def on_removed(self, partition: Partition) -> None:
        self._reported.pop(partition, None)
        self._verifying.pop(partition, None)

    def was_lost(self, partition: Partition) -> None:
        """Verify the log of a replica that is in a lost directory according to the metadata, although its log is open
        here."""
        if partition not in self._reported:
            self._reported[partition] = True
            self._verifying[partition] = None
            self._broker.spawn(self._verify(partition))

    async def _verify(self, partition: Partition) -> None:
        try:
            await self._broker.logs.scrub(partition, pause_seconds=0)
        except OSError as error:
            partition.log.mark_offline(f"it cannot be read: {error}")
        if partition in self._verifying:
            del self._verifying[partition]
            self.check()

    def _report(self, partition: Partition, reason: str) -> None:
        """Tell the controller that this replica is offline."""
        if partition in self._reported:
            return
        self._reported[partition] = False

        def known() -> None:
            if partition in self._reported:
                # Not before: a node that starts does not know yet which replicas are in sync.
                self._log_lost(partition, reason)
                self._reported[partition] = True
                self.check()

        self._assignments.assign(_replica(partition), LOST_DIRECTORY, known)

    def _log_lost(self, partition: Partition, reason: str) -> None:
        if self._has_others(partition):
            log.warning(
                "the replica of %s on this broker is unusable, another replica takes over: %s", partition.name, reason
            )
        else:
            log.error("%s is unavailable, it has no other replica that could lead: %s", partition.name, reason)

    def _has_others(self, partition: Partition) -> bool:
        name = partition.name
        registration = self._broker.image.topics.partition(name.topic, name.partition)
        return registration is not None and any(
            member != self._broker.node_id for member in (*registration.isr, *registration.eligible_leader_replicas)
        )

    def _has_room(self, partition: Partition) -> bool:
        directory = self._broker.logs.directory_of(partition.name)
        return directory is not None and self._has_room_in(directory)

    def _has_room_in(self, directory: LogDirectory) -> bool:
        try:
            return self._broker.environment.files.free_bytes(directory.path) >= ROOM_BYTES
        except OSError:
            return False

    def _repair_if_led_elsewhere(self, partition: Partition) -> None:
        if not partition.is_leader and partition.leader_id != NO_LEADER:
            # False while the repair runs, so that no second one is started.
            self._reported[partition] = False
            self._broker.spawn(self._repair(partition))

    async def _repair(self, partition: Partition) -> None:
        try:
            is_mended = await self._broker.logs.repair_log(partition)
        except (OSError, ApiError) as error:
            log.error("cannot repair the log of %s: %s", partition.name, error)
            is_mended = False
        if partition not in self._reported:
            return
        if is_mended:
            self.repaired += 1
            log.warning(
                "%s was truncated to offset %s and copies the rest from its leader",
                partition.name,
                partition.log.end_offset,
            )
            self._broker.replication.fetchers.follow(partition)
            self._report_recovered(partition)
        else:
            self._reported[partition] = True

    def _report_recovered(self, partition: Partition) -> None:
        directory = self._broker.logs.directory_of(partition.name)
        if directory is not None and directory.meta is not None:
            del self._reported[partition]
            self._assignments.assign(_replica(partition), directory.meta.directory_id)


def _replica(partition: Partition) -> TopicIdPartition:
    return TopicIdPartition(partition.topic_id, partition.name.partition)
