"""Admin calls for share groups: describe members, and list, reset and delete start offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.routing import call_coordinators
from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberDescription:
    member_id: str
    client_id: str
    host: str
    epoch: int
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupDescription:
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    coordinator_id: int
    members: tuple[ShareMemberDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOffset:
    """A share group's start offset in a partition; -1 if it is not initialized or not known."""

    start_offset: int
    lag: int


async def describe_share_groups(
    cluster: Cluster, groups: Iterable[str], *, timeout_s: float | None
) -> Outcomes[str, ShareGroupDescription]:
    from millbeck.wire.messages.share_groups import ShareGroupDescribeRequest, ShareGroupDescribeResponse

    async def attempt(deadline: Deadline) -> Outcomes[str, ShareGroupDescription]:
        async def ask(node_id: int, group: str) -> ShareGroupDescription:
            response = await cluster.request(
                ShareGroupDescribeRequest([group]),
                ShareGroupDescribeResponse,
                deadline=deadline,
                node_id=node_id,
                purpose=COORDINATOR,
            )
            found = response.groups[0]
            if found.error_code:
                raise from_code(found.error_code, found.error_message or "")
            return ShareGroupDescription(
                group_id=found.group_id,
                state=found.group_state,
                epoch=found.group_epoch,
                assignment_epoch=found.assignment_epoch,
                assignor=found.assignor_name,
                coordinator_id=node_id,
                members=tuple(
                    ShareMemberDescription(
                        member_id=each.member_id,
                        client_id=each.client_id,
                        host=each.client_host,
                        epoch=each.member_epoch,
                        assignment=tuple(
                            TopicPartition(topic.topic_name, index)
                            for topic in each.assignment.topic_partitions
                            for index in topic.partitions
                        ),
                    )
                    for each in found.members
                ),
            )

        return Outcomes(await call_coordinators(cluster, groups, ask, deadline))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def list_share_offsets(
    cluster: Cluster, groups: Iterable[str], *, timeout_s: float | None
) -> Outcomes[str, dict[TopicPartition, ShareOffset]]:
    """The start offsets of groups in all partitions that they have initialized."""
    from millbeck.wire.messages.share_groups import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsResponse,
    )

    async def attempt(deadline: Deadline) -> Outcomes[str, dict[TopicPartition, ShareOffset]]:
        async def ask(node_id: int, group: str) -> dict[TopicPartition, ShareOffset]:
            response = await cluster.request(
                DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)]),
                DescribeShareGroupOffsetsResponse,
                deadline=deadline,
                node_id=node_id,
                purpose=COORDINATOR,
            )
            found = response.groups[0]
            if found.error_code:
                raise from_code(found.error_code, found.error_message or "")
            return {
                TopicPartition(topic.topic_name, each.partition_index): ShareOffset(
                    start_offset=each.start_offset, lag=each.lag
                )
                for topic in found.topics
                for each in topic.partitions
                if not each.error_code
            }

        return Outcomes(await call_coordinators(cluster, groups, ask, deadline))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def alter_share_offsets(
    cluster: Cluster, group: str, starts: Mapping[TopicPartition, int], *, timeout_s: float | None
) -> Outcomes[TopicPartition, int]:
    """Reset the start offsets of a group without members; returns the new start offset of each partition."""
    from millbeck.wire.messages.share_groups import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
        AlterShareGroupOffsetsResponse,
    )

    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for partition, offset in starts.items():
        topics.setdefault(partition.topic, []).append(
            AlterShareGroupOffsetsRequestPartition(partition.partition, offset)
        )
    request = AlterShareGroupOffsetsRequest(
        group, [AlterShareGroupOffsetsRequestTopic(name, found) for name, found in topics.items()]
    )

    async def attempt(deadline: Deadline) -> Outcomes[TopicPartition, int]:
        node_id = await cluster.coordinator(group, deadline=deadline)
        response = await cluster.request(
            request, AlterShareGroupOffsetsResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )
        if response.error_code:
            cluster.forget_coordinator(group)
            raise from_code(response.error_code, response.error_message or "")
        outcomes: dict[TopicPartition, int | ApiError] = {}
        for topic in response.responses:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic_name, each.partition_index)
                outcomes[partition] = (
                    from_code(each.error_code, each.error_message or "") if each.error_code else starts[partition]
                )
        return Outcomes(outcomes)

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def delete_share_offsets(
    cluster: Cluster, group: str, topics: Iterable[str], *, timeout_s: float | None
) -> Outcomes[str, str]:
    """Delete the state of a group without members for some topics."""
    from millbeck.wire.messages.share_groups import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsResponse,
    )

    request = DeleteShareGroupOffsetsRequest(group, [DeleteShareGroupOffsetsRequestTopic(name) for name in topics])

    async def attempt(deadline: Deadline) -> Outcomes[str, str]:
        node_id = await cluster.coordinator(group, deadline=deadline)
        response = await cluster.request(
            request, DeleteShareGroupOffsetsResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )
        if response.error_code:
            cluster.forget_coordinator(group)
            raise from_code(response.error_code, response.error_message or "")
        return Outcomes(
            {
                each.topic_name: from_code(each.error_code, each.error_message or "")
                if each.error_code
                else each.topic_name
                for each in response.responses
            }
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)
