"""Builds the records of consumer groups."""

from __future__ import annotations

from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.group import ConsumerGroup, ResolvedRegex
from millbeck.coordinator.group.consumer.member import ConsumerMember, wire_topics
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from millbeck.coordinator.group.records import GroupRecord


def group_record(group_id: str, *, epoch: int, metadata_hash: int) -> GroupRecord:
    return GroupRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), member.metadata_value())


def current_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), member.current_value())


def target_epoch_record(group_id: str, epoch: int, assigned_at_ms: int = 0) -> GroupRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, assigned_at_ms)
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def target_record(group_id: str, member_id: str, target: Assignment) -> GroupRecord:
    return GroupRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        ConsumerGroupTargetAssignmentMemberValue(wire_topics(target)),
    )


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> GroupRecord:
    value = ConsumerGroupRegularExpressionValue(list(resolved.topics), resolved.version, resolved.timestamp_ms)
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Tombstones of a member: current assignment, target assignment and metadata."""
    return [
        GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[GroupRecord]:
    """Tombstones of a whole group."""
    found: list[GroupRecord] = []
    for member_id in dict.fromkeys([*group.members, *group.targets]):
        found += member_tombstones(group.group_id, member_id)
    found += [regex_tombstone(group.group_id, regex) for regex in group.regexes]
    found.append(GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), None))
    found.append(GroupRecord(ConsumerGroupMetadataKey(group.group_id), None))
    return found
