"""The pending changes of one operation on a streams group: its records, and the group's state with them applied."""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.member import StreamsMember
from millbeck.coordinator.group.streams.records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupValue,
)
from millbeck.coordinator.group.streams.tasks import TaskSet, to_wire
from millbeck.coordinator.group.streams.topology import Topology
from millbeck.wire.messages.streams_groups import KeyValue


class Draft:
    def __init__(self, group: StreamsGroup, records: list[GroupRecord] | None = None) -> None:
        """``records`` are tombstones of the empty group of another type that ``group`` replaces."""
        self.group = group
        self.records: list[GroupRecord] = records or []

    def write(self, key: StreamsGroupKey, value: StreamsGroupValue | None) -> None:
        self.records.append(GroupRecord(key, value))
        self.group = self.group.replayed(key, value)

    def put_topology(self, topology: Topology) -> None:
        self.write(StreamsGroupTopologyKey(self.group.group_id), topology.record_value())

    def put_member(self, member: StreamsMember) -> None:
        self.write(StreamsGroupMemberMetadataKey(self.group.group_id, member.member_id), member.metadata_value())

    def put_current(self, member: StreamsMember) -> None:
        self.write(
            StreamsGroupCurrentMemberAssignmentKey(self.group.group_id, member.member_id), member.current_value()
        )

    def remove_member(self, member_id: str) -> None:
        group_id = self.group.group_id
        self.write(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        self.write(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), None)
        self.write(StreamsGroupMemberMetadataKey(group_id, member_id), None)

    def raise_epoch(
        self,
        *,
        metadata_hash: int | None = None,
        validated_topology_epoch: int | None = None,
        assignment_configs: tuple[tuple[str, str], ...] | None = None,
    ) -> None:
        """Raise the group epoch; fields that are None are unchanged."""
        group = self.group
        configs = group.assignment_configs if assignment_configs is None else assignment_configs
        self.write(
            StreamsGroupMetadataKey(group.group_id),
            StreamsGroupMetadataValue(
                group.epoch + 1,
                group.metadata_hash if metadata_hash is None else metadata_hash,
                group.validated_topology_epoch if validated_topology_epoch is None else validated_topology_epoch,
                [KeyValue(key, value) for key, value in configs],
            ),
        )

    def put_targets(self, epoch: int, targets: Mapping[str, TaskSet], now_ms: int) -> None:
        """Store the target assignment of a group epoch; unchanged members are not written again."""
        group = self.group
        for member_id, target in targets.items():
            if group.targets.get(member_id) != target:
                self.write(
                    StreamsGroupTargetAssignmentMemberKey(group.group_id, member_id),
                    StreamsGroupTargetAssignmentMemberValue(
                        to_wire(target.active), to_wire(target.standby), to_wire(target.warmup)
                    ),
                )
        self.write(
            StreamsGroupTargetAssignmentMetadataKey(group.group_id),
            StreamsGroupTargetAssignmentMetadataValue(epoch, now_ms),
        )


def group_tombstones(group: StreamsGroup) -> list[GroupRecord]:
    """Tombstones of a whole group."""
    group_id = group.group_id
    member_ids = dict.fromkeys([*group.members, *group.targets])
    found = [GroupRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, each), None) for each in member_ids]
    found += [GroupRecord(StreamsGroupTargetAssignmentMemberKey(group_id, each), None) for each in member_ids]
    found.append(GroupRecord(StreamsGroupTargetAssignmentMetadataKey(group_id), None))
    found += [GroupRecord(StreamsGroupMemberMetadataKey(group_id, each), None) for each in member_ids]
    found.append(GroupRecord(StreamsGroupMetadataKey(group_id), None))
    found.append(GroupRecord(StreamsGroupTopologyKey(group_id), None))
    return found
