"""State of one share group. Immutable: replaying a record makes a new value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from millbeck.coordinator.group.share.records import (
    DeletingTopic,
    SharedTopic,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
    StateTopic,
)
from millbeck.kernel.ids import Uuid

TYPE_NAME: Final = "share"
PROTOCOL_TYPE: Final = "share"
EMPTY: Final = "Empty"
STABLE: Final = "Stable"
DEAD: Final = "Dead"
STATES: Final = (EMPTY, STABLE, DEAD)

Assignment = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic id; topic ids and partitions ascend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_names: tuple[str, ...] = ()
    target: Assignment = field(default_factory=dict)
    assigned: Assignment = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopics:
    """The share partitions that have state in the share coordinator, by topic."""

    names: Mapping[Uuid, str] = field(default_factory=dict)
    initializing: Assignment = field(default_factory=dict)
    initialized: Assignment = field(default_factory=dict)
    deleting: Mapping[Uuid, str] = field(default_factory=dict)

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        return ShareGroupStatePartitionMetadataValue(
            [StateTopic(each, self.names[each], list(found)) for each, found in self.initializing.items()],
            [StateTopic(each, self.names[each], list(found)) for each, found in self.initialized.items()],
            [DeletingTopic(each, name) for each, name in self.deleting.items()],
        )

    @classmethod
    def of(cls, value: ShareGroupStatePartitionMetadataValue) -> StateTopics:
        topics = [*value.initializing_topics, *value.initialized_topics]
        return cls(
            names={each.topic_id: each.topic_name for each in topics},
            initializing={each.topic_id: tuple(sorted(each.partitions)) for each in value.initializing_topics},
            initialized={each.topic_id: tuple(sorted(each.partitions)) for each in value.initialized_topics},
            deleting={each.topic_id: each.topic_name for each in value.deleting_topics},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroup:
    group_id: str
    epoch: int = 0
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assigned_at_ms: int = 0
    members: Mapping[str, ShareMember] = field(default_factory=dict)
    topics: StateTopics = field(default_factory=StateTopics)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> str:
        return STABLE if self.members else EMPTY

    def subscribed_names(self) -> list[str]:
        return sorted({name for member in self.members.values() for name in member.subscribed_names})

    def replayed(self, key: Any, value: Any) -> ShareGroup:
        """Return the group after a record. Tombstones of the group itself are handled by the caller."""
        match key:
            case ShareGroupMetadataKey():
                return replace(self, epoch=value.epoch, metadata_hash=value.metadata_hash)
            case ShareGroupStatePartitionMetadataKey():
                return replace(self, topics=StateTopics() if value is None else StateTopics.of(value))
            case ShareGroupTargetAssignmentMetadataKey():
                return replace(
                    self,
                    assignment_epoch=0 if value is None else value.assignment_epoch,
                    assigned_at_ms=0 if value is None else value.assignment_timestamp,
                )
            case ShareGroupMemberMetadataKey():
                return self._with_member(key.member_id, value)
            case ShareGroupTargetAssignmentMemberKey():
                target = {} if value is None else assignment_of(value.topic_partitions)
                return self._changed(key.member_id, target=target)
            case ShareGroupCurrentMemberAssignmentKey():
                return self._with_current(key.member_id, value)
        raise AssertionError(f"not a share group record: {key}")

    def _with_member(self, member_id: str, value: ShareGroupMemberMetadataValue | None) -> ShareGroup:
        if value is None:
            return replace(self, members={each: one for each, one in self.members.items() if each != member_id})
        member = self.members.get(member_id) or ShareMember(member_id=member_id)
        known = replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_names=tuple(value.subscribed_topic_names),
        )
        return replace(self, members={**self.members, member_id: known})

    def _with_current(self, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareGroup:
        if value is None:
            return self._changed(member_id, epoch=0, previous_epoch=0, assigned={})
        return self._changed(
            member_id,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=assignment_of(value.assigned_partitions),
        )

    def _changed(self, member_id: str, **changes: Any) -> ShareGroup:
        member = self.members.get(member_id)
        if member is None:
            # Remaining tombstones of a member that was removed.
            return self
        return replace(self, members={**self.members, member_id: replace(member, **changes)})


def assignment_of(topics: list[SharedTopic]) -> Assignment:
    return {each.topic_id: tuple(sorted(each.partitions)) for each in topics}


def shared_topics(assignment: Assignment) -> list[SharedTopic]:
    return [SharedTopic(topic_id, list(partitions)) for topic_id, partitions in assignment.items()]
