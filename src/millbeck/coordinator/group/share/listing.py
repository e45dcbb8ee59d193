"""ShareGroupDescribe and ListGroups for share groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millbeck.coordinator.group.share.context import Topics
from millbeck.coordinator.group.share.group import PROTOCOL_TYPE, TYPE_NAME, Assignment, ShareGroup
from millbeck.kernel import errors
from millbeck.wire.messages.groups import ListedGroup
from millbeck.wire.messages.share_groups import DescribedShareAssignment as DescribedAssignment
from millbeck.wire.messages.share_groups import DescribedShareGroup, ShareGroupDescribeTopicPartitions, ShareGroupMember


def list_groups(
    groups: Iterable[ShareGroup], states_filter: Sequence[str], types_filter: Sequence[str]
) -> list[ListedGroup]:
    """List the groups in any of the states and of any of the types; an empty filter matches all."""
    states = [state.lower() for state in states_filter]
    if types_filter and TYPE_NAME not in [each.lower() for each in types_filter]:
        return []
    return [
        ListedGroup(group.group_id, PROTOCOL_TYPE, group.state, TYPE_NAME)
        for group in groups
        if not states or group.state.lower() in states
    ]


def describe(group_id: str, group: ShareGroup | None, topics: Topics, assignor: str) -> DescribedShareGroup:
    if group is None:
        return DescribedShareGroup(
            error_code=errors.GroupIdNotFound.code,
            error_message=f"Group {group_id} not found.",
            group_id=group_id,
        )
    return DescribedShareGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[
            ShareGroupMember(
                member.member_id,
                member.rack_id,
                member.epoch,
                member.client_id,
                member.client_host,
                list(member.subscribed_names),
                DescribedAssignment(_described(member.assigned, topics)),
            )
            for member in group.members.values()
        ],
    )


def _described(assignment: Assignment, topics: Topics) -> list[ShareGroupDescribeTopicPartitions]:
    return [
        ShareGroupDescribeTopicPartitions(topic_id, name, list(found))
        for topic_id, found in assignment.items()
        if (name := topics.name_of(topic_id)) is not None
    ]
