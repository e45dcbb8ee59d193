"""Describe groups of the consumer protocol (KIP-848): each member's epoch, current and target assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.client.admin.results import GroupDescription, MemberDescription
from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, GroupIdNotFound, UnsupportedVersion, from_code
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.wire.messages.consumer_groups import (
        ConsumerGroupMember,
        DescribedConsumerAssignment,
        DescribedConsumerGroup,
    )


async def describe_consumer_group(
    cluster: Cluster, node_id: int, group: str, *, include_authorized_operations: bool, deadline: Deadline
) -> GroupDescription | None:
    """The group, or None if it is of another type or the broker does not support the protocol."""
    from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

    request = ConsumerGroupDescribeRequest([group], include_authorized_operations=include_authorized_operations)
    try:
        response = await cluster.request(
            request, ConsumerGroupDescribeResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )
        found = next((entry for entry in response.groups if entry.group_id == group), None)
        if found is not None and found.error_code:
            raise from_code(found.error_code, found.error_message or "")
    except (GroupIdNotFound, UnsupportedVersion):
        return None
    except ApiError as error:
        if not error.retriable:
            return None
        raise
    return None if found is None else _description_of(found, node_id)


def _description_of(found: DescribedConsumerGroup, node_id: int) -> GroupDescription:
    return GroupDescription(
        group_id=found.group_id,
        state=found.group_state,
        protocol_type="consumer",
        protocol=found.assignor_name,
        coordinator_id=node_id,
        members=tuple(_member_of(member) for member in found.members),
        authorized_operations=found.authorized_operations,
        type="consumer",
        epoch=found.group_epoch,
        target_epoch=found.assignment_epoch,
    )


def _member_of(found: ConsumerGroupMember) -> MemberDescription:
    return MemberDescription(
        member_id=found.member_id,
        instance_id=found.instance_id,
        client_id=found.client_id,
        host=found.client_host,
        assignment=_partitions_of(found.assignment),
        metadata=b"",
        assignment_bytes=b"",
        epoch=found.member_epoch,
        target_assignment=_partitions_of(found.target_assignment),
        uses_classic_protocol=found.member_type == 0,
    )


def _partitions_of(assignment: DescribedConsumerAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )
