"""The pending changes of one operation on a share group: its records, and the group's state with them applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share.assignor import Assignor
from millbeck.coordinator.group.share.context import Topics
from millbeck.coordinator.group.share.group import ShareGroup, ShareMember, StateTopics, shared_topics
from millbeck.coordinator.group.share.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupValue,
)

STABLE_STATE: Final = 0


class Draft:
    def __init__(self, group: ShareGroup) -> None:
        self.group = group
        self.records: list[GroupRecord] = []
        self.has_new_beginnings = False

    def write(self, key: ShareGroupKey, value: ShareGroupValue | None) -> None:
        self.records.append(GroupRecord(key, value))
        self.group = self.group.replayed(key, value)

    def put_member(
        self,
        member: ShareMember | None,
        member_id: str,
        *,
        rack_id: str | None,
        client_id: str,
        client_host: str,
        subscribed_names: Sequence[str] | None,
    ) -> bool:
        """Store a member's metadata, None for unchanged fields; return whether the group must be reassigned."""
        known = member or ShareMember(member_id=member_id)
        names = known.subscribed_names if subscribed_names is None else tuple(sorted(set(subscribed_names)))
        rack = known.rack_id if rack_id is None else rack_id
        is_same = (known.rack_id, known.client_id, known.client_host) == (rack, client_id, client_host)
        if member is None or not is_same or names != known.subscribed_names:
            self.write(
                ShareGroupMemberMetadataKey(self.group.group_id, member_id),
                ShareGroupMemberMetadataValue(rack, client_id, client_host, list(names)),
            )
        return member is None or names != known.subscribed_names

    def remove_member(self, member_id: str) -> None:
        group_id = self.group.group_id
        self.write(ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        self.write(ShareGroupTargetAssignmentMemberKey(group_id, member_id), None)
        self.write(ShareGroupMemberMetadataKey(group_id, member_id), None)

    def raise_epoch(self, metadata_hash: int) -> None:
        self.write(
            ShareGroupMetadataKey(self.group.group_id), ShareGroupMetadataValue(self.group.epoch + 1, metadata_hash)
        )

    def put_topics(self, topics: StateTopics) -> None:
        self.write(ShareGroupStatePartitionMetadataKey(self.group.group_id), topics.value())

    def assign(self, topics: Topics, now_ms: int, assignor: Assignor) -> None:
        """Compute the target assignment from the partitions that are initialized in the share coordinator."""
        group = self.group
        ids = {name: shape.topic_id for name in group.subscribed_names() if (shape := topics.shape(name)) is not None}
        target = assignor(
            {
                member.member_id: [ids[name] for name in member.subscribed_names if name in ids]
                for member in group.members.values()
            },
            group.topics.initialized,
            {member.member_id: member.target for member in group.members.values()},
        )
        for member_id, assignment in target.items():
            if assignment != group.members[member_id].target:
                self.write(
                    ShareGroupTargetAssignmentMemberKey(group.group_id, member_id),
                    ShareGroupTargetAssignmentMemberValue(shared_topics(assignment)),
                )
        self.write(
            ShareGroupTargetAssignmentMetadataKey(group.group_id),
            ShareGroupTargetAssignmentMetadataValue(group.epoch, now_ms),
        )

    def move_to_target(self, member_id: str) -> bool:
        """Move the member to its target assignment; return whether its assignment changed."""
        group = self.group
        member = group.members[member_id]
        is_behind = member.epoch != group.assignment_epoch
        if not is_behind and member.assigned == member.target:
            return False
        self.write(
            ShareGroupCurrentMemberAssignmentKey(group.group_id, member_id),
            ShareGroupCurrentMemberAssignmentValue(
                group.assignment_epoch, member.epoch, STABLE_STATE, shared_topics(member.target)
            ),
        )
        return member.assigned != member.target

    def remove_group(self) -> None:
        """Write tombstones for the group and its members."""
        group_id = self.group.group_id
        for member_id in list(self.group.members):
            self.remove_member(member_id)
        self.records += [
            GroupRecord(ShareGroupTargetAssignmentMetadataKey(group_id), None),
            GroupRecord(ShareGroupStatePartitionMetadataKey(group_id), None),
            GroupRecord(ShareGroupMetadataKey(group_id), None),
        ]
