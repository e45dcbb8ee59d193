"""A consumer group: its epochs, members, their targets, who holds which partition, and what expressions stand for.

Only `replay_*` changes it, from records, so that a failed write is undone and reads see what is committed. Three epochs
matter. The group's goes up whenever members or topics change; the assignment's is the group epoch that the target was
computed for; a member's is the assignment epoch it has reconciled to. The attributes at the end of the constructor are
soft: they steer when something is looked at again and are lost with the coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.member import LEAVE_EPOCH, ConsumerMember, MemberState
from millbeck.coordinator.group.consumer.reconciliation import NO_OWNER
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from millbeck.kernel import errors
from millbeck.kernel.ids import Uuid
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict, TimelineValue

TYPE_NAME = "consumer"
PROTOCOL_TYPE = "consumer"


class ConsumerGroupState(Enum):
    """Values are the names clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ResolvedRegex(NamedTuple):
    topics: tuple[str, ...]
    """Ascending."""
    version: int
    timestamp_ms: int


class ConsumerGroup:
    def __init__(self, registry: SnapshotRegistry, group_id: str) -> None:
        self.group_id = group_id
        self._epoch = TimelineValue(registry, 0)
        self._metadata_hash = TimelineValue(registry, 0)
        self._assignment_epoch = TimelineValue(registry, 0)
        self.members: TimelineDict[str, ConsumerMember] = TimelineDict(registry)
        self.static_members: TimelineDict[str, str] = TimelineDict(registry)
        """Instance id to member id."""
        self.targets: TimelineDict[str, Assignment] = TimelineDict(registry)
        self.regexes: TimelineDict[str, ResolvedRegex] = TimelineDict(registry)
        self.name_counts: TimelineDict[str, int] = TimelineDict(registry)
        """How many members subscribe to a topic by its name."""
        self.regex_counts: TimelineDict[str, int] = TimelineDict(registry)
        self._owner_epochs: TimelineDict[tuple[Uuid, int], int] = TimelineDict(registry)
        self.seen_version = -1
        """Of the cluster's metadata that the topics were last compared with."""
        self.assigned_at_ms: int | None = None
        """When the target was last computed here."""
        self.is_assigning = False
        """A target is being computed off the loop."""
        self.is_resolving = False
        """Expressions are being looked up off the loop."""
        self.resolved_at_ms: int | None = None
        self.resolved_version = -1

    # Reading

    @property
    def epoch(self) -> int:
        return self._epoch.value

    @property
    def metadata_hash(self) -> int:
        return self._metadata_hash.value

    @property
    def assignment_epoch(self) -> int:
        return self._assignment_epoch.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    def epochs_at(self, at: int) -> tuple[int, int]:
        """The group's and the assignment's."""
        return self._epoch.value_at(at), self._assignment_epoch.value_at(at)

    def state_at(self, at: int) -> ConsumerGroupState:
        epoch, assignment_epoch = self.epochs_at(at)
        return _state(epoch, assignment_epoch, self.members.copy_at(at))

    @property
    def state(self) -> ConsumerGroupState:
        return _state(self.epoch, self.assignment_epoch, self.members)

    def owner_epoch(self, topic_id: Uuid, partition: int) -> int:
        return self._owner_epochs.get((topic_id, partition), NO_OWNER)

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise errors.UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return found

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def known_member(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """UnknownMemberId, or FencedInstanceId when another member has the instance id."""
        if instance_id is None:
            return self.member(member_id)
        found = self.static_member(instance_id)
        if found is None:
            raise errors.UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if found.member_id != member_id:
            raise errors.FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member {found.member_id}."
            )
        return found

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """The names a member subscribes to, those its expression stands for included, ascending."""
        resolved = None if member.regex is None else self.regexes.get(member.regex)
        if resolved is None:
            return member.topic_names
        return tuple(sorted({*member.topic_names, *resolved.topics}))

    def is_subscribed_to(self, topic: str) -> bool:
        if topic in self.name_counts:
            return True
        return any(topic in self.regexes[regex].topics for regex in self.regex_counts if regex in self.regexes)

    @property
    def classic_member_count(self) -> int:
        return sum(member.uses_classic_protocol for member in self.members.values())

    def is_waiting_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether somebody still holds what the member should have."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        missing = assignment.without(self.targets.get(member.member_id, {}), member.assigned)
        return any(self.owner_epoch(*place) != NO_OWNER for place in assignment.places_of(missing))

    # Replaying

    def replay_group(self, value: ConsumerGroupMetadataValue) -> None:
        self._epoch.value = value.epoch
        self._metadata_hash.value = value.metadata_hash

    def replay_target_epoch(self, epoch: int) -> None:
        self._assignment_epoch.value = epoch

    def replay_target(self, member_id: str, target: Assignment | None) -> None:
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def replay_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                self._forget_subscription(old)
                self._release(old)
                del self.members[member_id]
            return
        if old is not None:
            self._forget_subscription(old)
        new = (old or ConsumerMember(member_id=member_id)).with_metadata(value)
        self.members[member_id] = new
        self._count_subscription(new)

    def replay_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self._release(old)
        if value is None:
            if old is not None:
                gone = ConsumerGroupCurrentMemberAssignmentValue(LEAVE_EPOCH, LEAVE_EPOCH)
                self.members[member_id] = old.with_current(gone)
            return
        # Compaction may have left this record before the one that says who the member is.
        new = (old or ConsumerMember(member_id=member_id)).with_current(value)
        self.members[member_id] = new
        for held in (new.assigned, new.revoking):
            for place in assignment.places_of(held):
                self._owner_epochs[place] = new.epoch

    def replay_regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = ResolvedRegex(tuple(sorted(value.topics)), value.version, value.timestamp)

    def _release(self, member: ConsumerMember) -> None:
        for held in (member.assigned, member.revoking):
            for place in assignment.places_of(held):
                # Somebody else may hold it since, when this record is an old one that is taken back late.
                if self._owner_epochs.get(place) == member.epoch:
                    del self._owner_epochs[place]

    def _count_subscription(self, member: ConsumerMember) -> None:
        for name in member.topic_names:
            self.name_counts[name] = self.name_counts.get(name, 0) + 1
        if member.regex:
            self.regex_counts[member.regex] = self.regex_counts.get(member.regex, 0) + 1
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _forget_subscription(self, member: ConsumerMember) -> None:
        for name in member.topic_names:
            _decrease(self.name_counts, name)
        if member.regex:
            _decrease(self.regex_counts, member.regex)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]


def _decrease(counts: TimelineDict[str, int], key: str) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]


def _state(epoch: int, assignment_epoch: int, members: Mapping[str, ConsumerMember]) -> ConsumerGroupState:
    if not members:
        return ConsumerGroupState.EMPTY
    if epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in members.values()):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING
