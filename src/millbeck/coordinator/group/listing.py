"""ListGroups, DescribeGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millbeck.coordinator.group.classic import group as classic
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.consumer import group as consumer
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.streams import group as streams
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.kernel import errors
from millbeck.wire.messages.classic_groups import DescribedClassicGroup, DescribedGroupMember
from millbeck.wire.messages.groups import ListedGroup

GROUP_NOT_FOUND_VERSION = 6


def list_groups(
    groups: Iterable[ClassicGroup | ConsumerGroup | StreamsGroup],
    states_filter: Sequence[str],
    types_filter: Sequence[str],
    at: int,
) -> list[ListedGroup]:
    """List the groups in any of the states and of any of the types; an empty filter matches all."""
    states = [_filter_name(state) for state in states_filter]
    types = [group_type.lower() for group_type in types_filter]
    listed = [_listed(group, at) for group in groups]
    return [
        group
        for group in listed
        if (not types or group.group_type.lower() in types)
        and (not states or _filter_name(group.group_state) in states)
    ]


def _filter_name(state: str) -> str:
    """The state's name in a filter; clients write ``not_ready`` too, as Kafka's broker does."""
    return state.lower().replace("_", "")


def _listed(group: ClassicGroup | ConsumerGroup | StreamsGroup, at: int) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return _listed_consumer(group, at)
    if isinstance(group, StreamsGroup):
        return ListedGroup(group.group_id, streams.PROTOCOL_TYPE, group.state.value, streams.TYPE_NAME)
    return _listed_classic(group)


def _listed_classic(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, classic.TYPE_NAME)


def _listed_consumer(group: ConsumerGroup, at: int) -> ListedGroup:
    return ListedGroup(group.group_id, consumer.PROTOCOL_TYPE, group.state_at(at).value, consumer.TYPE_NAME)


def describe(
    group_id: str, group: ClassicGroup | ConsumerGroup | StreamsGroup | None, version: int
) -> DescribedClassicGroup:
    """Describe a classic group; member metadata is included only while the group is stable. Other groups are errors."""
    if not isinstance(group, ClassicGroup):
        described = DescribedClassicGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= GROUP_NOT_FOUND_VERSION:
            described.error_code = errors.GroupIdNotFound.code
            reason = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
            described.error_message = reason
        return described
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedClassicGroup(
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


def validate_deletion(group: ClassicGroup | ConsumerGroup | StreamsGroup | None) -> None:
    if group is None or group.state is GroupState.DEAD:
        raise errors.GroupIdNotFound()
    if not group.is_empty:
        raise errors.NonEmptyGroup()
