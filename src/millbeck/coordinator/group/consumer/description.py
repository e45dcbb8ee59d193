"""ConsumerGroupDescribe: a group as it was when what is committed was written."""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.coordinator.group.consumer.assignment import NOTHING, Assignment
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.consumer.target import preferred_assignor
from millbeck.kernel import errors
from millbeck.wire.messages.consumer_group_describe import Assignment as DescribedAssignment
from millbeck.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeTopicPartitions,
    DescribedGroup,
    Member,
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe(group: ConsumerGroup, cluster: ClusterView, offered: Sequence[str], at: int) -> DescribedGroup:
    epoch, assignment_epoch = group.epochs_at(at)
    members = group.members.copy_at(at)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_at(at).value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=preferred_assignor(members.values(), offered),
        members=[
            _member(member, group.targets.get_at(member.member_id, at, NOTHING), cluster) for member in members.values()
        ],
    )


def not_found(group_id: str, message: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id, group_state="Dead", error_code=errors.GroupIdNotFound.code, error_message=message
    )


def _member(member: ConsumerMember, target: Assignment, cluster: ClusterView) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, cluster),
        target_assignment=_assignment(target, cluster),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(assigned: Assignment, cluster: ClusterView) -> DescribedAssignment:
    """Topics that were deleted since have no name to be shown under."""
    return DescribedAssignment(
        [
            ConsumerGroupDescribeTopicPartitions(topic_id, name, list(partitions))
            for topic_id, partitions in assigned.items()
            if (name := cluster.name_of(topic_id)) is not None
        ]
    )
