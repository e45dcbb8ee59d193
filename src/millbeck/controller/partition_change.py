"""A change of one partition's ISR, leader and epochs, as one record or none.

A caller (fencing or unfencing a broker, AlterPartition, a reassignment, an election) sets the desired values on a
`PartitionChange`. Then `build` derives the rest, always in this order:

1. A reassignment whose new replicas are all in sync is complete: the replicas to be removed are removed.
2. Eligible leaders (KIP-966). While fewer than ``min.insync.replicas`` are in sync, nothing new is committed. So a
   replica that leaves the ISR without data loss still has everything committed and is recorded as eligible; a replica
   that lost unflushed data is not. With enough replicas in sync there are no eligible leaders.
3. Election. The leader stays if it still may lead. Otherwise the first replica in order of preference is elected that
   may lead and is in sync, or eligible if the ISR is empty. If there is neither, the last known leader may lead again;
   and where unclean elections are allowed, any live replica may. An unclean election loses the records that only other
   replicas had: the ISR is the new leader alone, and the partition is recovering until its leader reports otherwise.
4. Epochs. A record with a leader increments the leader epoch. So it contains the leader only when the leader changes,
   when replicas are removed (whose fetches must then be refused), and for old brokers when the ISR shrinks.

While the ISR is empty, the last leader is stored in the field of the last known eligible leaders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millbeck.controller.reassignment import Reassignment
from millbeck.kernel.ids import Uuid
from millbeck.metadata.features import DIRECTORY_ASSIGNMENT_FROM, ISR_SHRINK_KEEPS_LEADER_EPOCH_FROM
from millbeck.metadata.image import ClusterImage, PartitionRegistration
from millbeck.metadata.image.directories import UNASSIGNED_DIRECTORY
from millbeck.metadata.image.topics import RECOVERING
from millbeck.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

NO_RECOVERY_CHANGE: Final = -1


class ElectionMode(Enum):
    """The replicas that an election may choose."""

    PREFERRED = "preferred"
    """Like ONLINE, but elect the preferred replica even if another one leads now."""
    ONLINE = "online"
    """Keep the leader if it may lead; otherwise elect a replica that is in sync or eligible."""
    UNCLEAN = "unclean"
    """Like ONLINE, but elect any live replica if there is no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeContext:
    """The context shared by the changes of one decision. ``is_acceptable_leader`` ignores the state of directories."""

    cluster: ClusterImage
    metadata_version: int
    tracks_eligible_leaders: bool
    is_acceptable_leader: Callable[[int], bool]


class PartitionChange:
    """One partition change: set the attributes to change, then call `build` once."""

    __slots__ = (
        "_context",
        "adding",
        "directories",
        "election",
        "isr",
        "min_insync_replicas",
        "partition",
        "recovery_state",
        "removing",
        "replicas",
        "unclean_shutdown",
    )

    def __init__(
        self,
        partition: PartitionRegistration,
        context: ChangeContext,
        *,
        min_insync_replicas: int,
        election: ElectionMode,
    ) -> None:
        self.partition = partition
        self._context = context
        self.min_insync_replicas = min_insync_replicas
        self.election = election
        self.isr = partition.isr
        self.replicas = partition.replicas
        self.removing = partition.removing_replicas
        self.adding = partition.adding_replicas
        self.recovery_state = partition.leader_recovery_state
        self.directories: dict[int, Uuid] = {}
        self.unclean_shutdown: int | None = None

    def build(self, topic_id: Uuid, partition_id: int) -> PartitionChangeRecord | None:
        """The record of the change; None if nothing changes."""
        partition = self.partition
        record = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
        self._complete_reassignment()
        eligible = self._eligible()
        leader, is_unclean = self._elected(eligible)
        if leader != partition.leader:
            record.leader = leader
            if is_unclean:
                self.isr, eligible = (leader,), ()
                self.recovery_state = RECOVERING
            elif leader in eligible:
                # With the number of replicas that must be in sync lowered meanwhile, one may be enough already.
                self.isr = (leader,)
                eligible = self._eligible()
        elif self.replicas is not partition.replicas and any(
            replica not in self.replicas for replica in partition.replicas
        ):
            record.leader = partition.leader
        self._record_isr(record)
        if eligible != partition.eligible_leader_replicas:
            record.eligible_leader_replicas = list(eligible)
        self._record_last_leader(record)
        self._record_assignment(record)
        if self.recovery_state != partition.leader_recovery_state:
            record.leader_recovery_state = self.recovery_state
        return None if _changes_nothing(record) else record

    # The ISR and the eligible leaders.

    def _complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        completed = Reassignment(replicas=self.replicas, removing=self.removing, adding=self.adding).completed(self.isr)
        if completed is not None:
            self.replicas, self.isr = completed
            self.removing = self.adding = ()

    def _eligible(self) -> tuple[int, ...]:
        if not self._context.tracks_eligible_leaders:
            return ()
        if len(self.isr) >= self.min_insync_replicas:
            return ()
        partition = self.partition
        return tuple(
            replica
            for replica in dict.fromkeys(partition.eligible_leader_replicas + partition.isr)
            if replica not in self.isr and replica != self.unclean_shutdown and replica in self.replicas
        )

    # Who leads.

    def _elected(self, eligible: tuple[int, ...]) -> tuple[int, bool]:
        """The elected leader, and whether the election was unclean."""
        candidates = self.isr or eligible
        current = self.partition.leader
        preferred = self.replicas[0]
        if self.election is ElectionMode.PREFERRED and preferred in candidates and self._may_lead(preferred):
            return preferred, False
        if current in candidates and self._may_lead(current):
            return current, False
        for replica in self.replicas:
            if replica in candidates and self._may_lead(replica):
                return replica, False
        last_known = self.partition.last_known_elr
        if not candidates and self._context.tracks_eligible_leaders and len(last_known) == 1:
            [last_leader] = last_known
            if last_leader in self.replicas and self._may_lead(last_leader):
                return last_leader, True
        if self.election is ElectionMode.UNCLEAN:
            for replica in self.replicas:
                if self._may_lead(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_lead(self, replica: int) -> bool:
        if not self._context.is_acceptable_leader(replica):
            return False
        broker = self._context.cluster.brokers.get(replica)
        return broker is not None and broker.has_online(self._directory(replica))

    # Building the record.

    def _record_isr(self, record: PartitionChangeRecord) -> None:
        before = self.partition.isr
        # Without eligible leaders the last in-sync replica stays in the ISR: one replica must have the data.
        if self.isr == before or not (self.isr or self._context.tracks_eligible_leaders):
            return
        record.isr = list(self.isr)
        if (
            self._context.metadata_version < ISR_SHRINK_KEEPS_LEADER_EPOCH_FROM
            and record.leader == NO_LEADER_CHANGE
            and any(member not in self.isr for member in before)
        ):
            record.leader = self.partition.leader

    def _record_last_leader(self, record: PartitionChangeRecord) -> None:
        if not self._context.tracks_eligible_leaders:
            return
        partition = self.partition
        leader = partition.leader if record.leader == NO_LEADER_CHANGE else record.leader
        if record.isr is not None and not record.isr:
            last_leader = partition.leader
            if last_leader == NO_LEADER and len(partition.isr) == 1:
                last_leader = partition.isr[0]
            if last_leader != NO_LEADER and partition.last_known_elr != (last_leader,):
                record.last_known_elr = [last_leader]
        elif leader != NO_LEADER and partition.last_known_elr:
            record.last_known_elr = []

    def _record_assignment(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.replicas != partition.replicas:
            record.replicas = list(self.replicas)
        if self.removing != partition.removing_replicas:
            record.removing_replicas = list(self.removing)
        if self.adding != partition.adding_replicas:
            record.adding_replicas = list(self.adding)
        if (record.replicas is None and not self.directories) or (
            self._context.metadata_version < DIRECTORY_ASSIGNMENT_FROM
        ):
            return
        directories = [self._directory(replica) for replica in self.replicas]
        if tuple(directories) != partition.directories:
            record.directories = directories

    def _directory(self, replica: int) -> Uuid:
        directory = self.directories.get(replica)
        if directory is not None:
            return directory
        if replica in self.partition.replicas:
            return self.partition.directory(replica)
        broker = self._context.cluster.brokers.get(replica)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
