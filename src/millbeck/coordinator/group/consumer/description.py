"""ConsumerGroupDescribe: a group as of a committed offset of its ``__consumer_offsets`` partition."""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.coordinator.group.consumer.assignment import NOTHING, Assignment
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.consumer.target import preferred_assignor
from millbeck.kernel import errors
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupDescribeTopicPartitions,
    ConsumerGroupMember,
    DescribedConsumerGroup,
)
from millbeck.wire.messages.consumer_groups import DescribedConsumerAssignment as DescribedAssignment

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe(group: ConsumerGroup, cluster: ClusterView, offered: Sequence[str], at: int) -> DescribedConsumerGroup:
    epoch, assignment_epoch = group.epochs_at(at)
    members = group.members.copy_at(at)
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state_at(at).value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=preferred_assignor(members.values(), offered),
        members=[
            _member(member, group.targets.get_at(member.member_id, at, NOTHING), cluster) for member in members.values()
        ],
    )


def not_found(group_id: str, message: str) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=group_id, error_code=errors.GroupIdNotFound.code, error_message=message)


def _member(member: ConsumerMember, target: Assignment, cluster: ClusterView) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.regex or "",
        assignment=_assignment(member.assigned, cluster),
        target_assignment=_assignment(target, cluster),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(assigned: Assignment, cluster: ClusterView) -> DescribedAssignment:
    """Leave out deleted topics: their names are unknown."""
    return DescribedAssignment(
        [
            ConsumerGroupDescribeTopicPartitions(topic_id, name, list(partitions))
            for topic_id, partitions in assigned.items()
            if (name := cluster.name_of(topic_id)) is not None
        ]
    )
