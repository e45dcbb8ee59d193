"""Replicas that cannot do their part for a while: damaged logs and full disks.

Theory of operation. The controller is told that such a replica is in a lost directory. It leaves the in-sync replicas
and those eligible to lead, and somebody else leads; nobody is elected who lacks what is committed. A damaged log is
then cut before its first bad batch, the rest is copied from the leader, and with its real directory the replica may
come back into the ISR, where only its progress brings it. A replica whose disk is full keeps its log, and comes back
when there is room again; one whose log could not even be made gets it then.

A replica that nobody could replace stays as it is: a damaged one offline, a full one refusing to write.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import ApiError
from millbeck.kernel.units import MIB
from millbeck.metadata.image.directories import LOST_DIRECTORY
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.server.drivers.directory_assignments import DirectoryAssignments, Replica

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

ROOM_BYTES: Final = 64 * MIB
"""Free space with which a disk counts as one that can be written again."""

log = logging.getLogger(__name__)


class Mending:
    def __init__(self, broker: Broker, assignments: DirectoryAssignments) -> None:
        self._broker = broker
        self._assignments = assignments
        self._reported: dict[Partition, bool] = {}
        """Replicas that the controller was told are lost: whether it knows."""
        self.mended = 0

    def look(self) -> None:
        """For damaged logs, and for room on disks that were full; every now and then, and after each image."""
        self._broker.logs.place_again(ROOM_BYTES)
        if not self._reported and not any(directory.offline_count for directory in self._broker.logs.directories):
            return
        for partition in self._broker.topics.all_partitions():
            if partition.log.damaged_offset >= 0:
                if self._reported.get(partition):
                    self._mend_if_led_elsewhere(partition)
                else:
                    self._report(partition, "its log is damaged")
        for partition in list(self._reported):
            if partition.log.damaged_offset < 0 and not partition.log.is_offline and self._has_room(partition):
                self._come_back(partition)

    def write_failed(self, partition: Partition) -> None:
        """For lack of room? Then another one had better lead, and nobody wait for what a follower cannot copy."""
        if partition not in self._reported and not partition.log.is_offline and not self._has_room(partition):
            self._report(partition, f"less than {ROOM_BYTES >> 20} MiB are free on its disk")

    def is_lost(self, partition: Partition) -> bool:
        """Whether the controller is told of another directory than the one the replica is in."""
        return partition in self._reported

    def gone(self, partition: Partition) -> None:
        self._reported.pop(partition, None)

    def _report(self, partition: Partition, reason: str) -> None:
        """Tell the controller, unless nobody else could take over."""
        if partition in self._reported or not self._has_others(partition):
            return
        self._reported[partition] = False
        log.warning("%s cannot do its part on this broker, others take over: %s", partition.name, reason)

        def known() -> None:
            if partition in self._reported:
                self._reported[partition] = True
                self.look()

        self._assignments.assign(_replica(partition), LOST_DIRECTORY, known)

    def _has_others(self, partition: Partition) -> bool:
        name = partition.name
        registration = self._broker.image.topics.partition(name.topic, name.partition)
        return registration is not None and any(
            member != self._broker.node_id for member in (*registration.isr, *registration.eligible_leader_replicas)
        )

    def _has_room(self, partition: Partition) -> bool:
        directory = self._broker.logs.directory_of(partition.name)
        try:
            return directory is not None and self._broker.environment.files.free_bytes(directory.path) >= ROOM_BYTES
        except OSError:
            return False

    def _mend_if_led_elsewhere(self, partition: Partition) -> None:
        if not partition.is_leader and partition.leader_id != NO_LEADER:
            # Until it is mended, nobody else begins to.
            self._reported[partition] = False
            self._broker.spawn(self._mend(partition))

    async def _mend(self, partition: Partition) -> None:
        try:
            is_mended = await self._broker.logs.mend(partition)
        except (OSError, ApiError) as error:
            log.error("%s cannot be mended: %s", partition.name, error)
            is_mended = False
        if partition not in self._reported:
            return
        if is_mended:
            self.mended += 1
            log.warning("%s was cut to %s and copies the rest anew", partition.name, partition.log.end_offset)
            self._broker.replication.fetchers.follow(partition)
            self._come_back(partition)
        else:
            self._reported[partition] = True

    def _come_back(self, partition: Partition) -> None:
        directory = self._broker.logs.directory_of(partition.name)
        if directory is not None and directory.meta is not None:
            del self._reported[partition]
            self._assignments.assign(_replica(partition), directory.meta.directory_id)


def _replica(partition: Partition) -> Replica:
    return Replica(partition.topic_id, partition.name.partition)
