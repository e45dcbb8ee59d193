"""ListGroups, DescribeGroups and DeleteGroups: groups seen from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millbeck.coordinator.group.classic import group as classic
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.kernel import errors
from millbeck.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from millbeck.wire.messages.list_groups import ListedGroup

GROUP_NOT_FOUND_VERSION = 6


def list_groups(
    groups: Iterable[ClassicGroup], states_filter: Sequence[str], types_filter: Sequence[str]
) -> list[ListedGroup]:
    """The groups in one of the states and of one of the types; an empty filter lets everything through."""
    states = [state.lower() for state in states_filter]
    types = [group_type.lower() for group_type in types_filter]
    if types and classic.TYPE_NAME not in types:
        return []
    return [
        ListedGroup(group.group_id, group.protocol_type or "", group.state.value, classic.TYPE_NAME)
        for group in groups
        if not states or group.state.value.lower() in states
    ]


def describe(group_id: str, group: ClassicGroup | None, version: int) -> DescribedGroup:
    """A group and its members; their metadata only while the group is stable."""
    if group is None:
        described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= GROUP_NOT_FOUND_VERSION:
            described.error_code = errors.GroupIdNotFound.code
            described.error_message = f"There is no group {group_id}."
        return described
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol) if protocol is not None else b"",
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def validate_deletion(group: ClassicGroup | None) -> None:
    if group is None or group.state is GroupState.DEAD:
        raise errors.GroupIdNotFound()
    if not group.is_empty:
        raise errors.NonEmptyGroup()
