"""State of one consumer group: epochs, members, target assignment, partition owners and resolved regular expressions.

Only `replay_*` changes it, from records, so that a failed write is reverted and reads see committed state. There are
three epochs. The group epoch is bumped whenever members or topics change; the assignment epoch is the group epoch the
target assignment was computed for; a member epoch is the assignment epoch the member has reconciled to. The attributes
at the end of the constructor are soft state: they control when something is checked again and are lost when the
coordinator moves.
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
    """States of a consumer group; values are the names shown to clients."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ResolvedRegex(NamedTuple):
    topics: tuple[str, ...]
    """The matching topic names, ascending."""
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
        """Member id by instance id."""
        self.targets: TimelineDict[str, Assignment] = TimelineDict(registry)
        self.regexes: TimelineDict[str, ResolvedRegex] = TimelineDict(registry)
        self.name_counts: TimelineDict[str, int] = TimelineDict(registry)
        """Number of members that subscribe to each topic by name."""
        self.regex_counts: TimelineDict[str, int] = TimelineDict(registry)
        self._owner_epochs: TimelineDict[tuple[Uuid, int], int] = TimelineDict(registry)
        self.seen_version = -1
        """Version of the cluster metadata the subscribed topics were last compared with."""
        self.assigned_at_ms: int | None = None
        """The time at which this coordinator last computed the target assignment."""
        self.is_assigning = False
        """Whether a target assignment is being computed off the event loop."""
        self.is_resolving = False
        """Whether regular expressions are being resolved off the event loop."""
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
        """The group epoch and the assignment epoch."""
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
        """Return the member. Raises UnknownMemberId, or FencedInstanceId if another member has the instance id."""
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
        """The topics a member subscribes to, including those its regular expression matches, ascending."""
        resolved = None if member.regex is None else self.regexes.get(member.regex)
        if resolved is None:
            return member.topic_names
        return tuple(sorted({*member.topic_names, *resolved.topics}))

    def is_subscribed_to(self, topic: str) -> bool:
        if topic in self.name_counts:
            return True
        return any(topic in self.regexes[regex].topics for regex in self.regex_counts if regex in self.regexes)

    def is_waiting_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether another member still owns partitions of the member's target assignment."""
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
        # Compaction may have kept this record before the member's metadata record.
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
                # Another member may own it now if this is an old record that is reverted late.
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
