"""Administration of consumer groups and their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from millbeck.client.admin.consumer_groups import describe_consumer_group
from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.results import GroupDescription, GroupListing, GroupOffset, MemberDescription
from millbeck.client.admin.routing import call_all_brokers, call_coordinators
from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, GroupIdNotFound, UnknownServerError, from_code
from millbeck.kernel.ids import TopicPartition

V = TypeVar("V")

DEAD = "Dead"
"""Errors of brokers for a group that does not exist or is of another type."""


async def list_groups(
    cluster: Cluster, *, states: Iterable[str], types: Iterable[str], timeout_s: float | None
) -> dict[str, GroupListing]:
    """The groups of all brokers, sorted by id; raises if a broker does not answer."""
    from millbeck.wire.messages.groups import ListGroupsRequest, ListGroupsResponse

    wanted_states, wanted_types = list(states), list(types)

    async def attempt(deadline: Deadline) -> dict[str, GroupListing]:
        async def ask(node_id: int) -> list[GroupListing]:
            request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)
            response = await cluster.request(request, ListGroupsResponse, deadline=deadline, node_id=node_id)
            if response.error_code:
                raise from_code(response.error_code)
            return [
                GroupListing(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    state=group.group_state,
                    type=group.group_type,
                )
                for group in response.groups
            ]

        answers = Outcomes(await call_all_brokers(cluster, ask, deadline)).all()
        listings = sorted((group for groups in answers.values() for group in groups), key=lambda group: group.group_id)
        return {listing.group_id: listing for listing in listings}

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_groups(
    cluster: Cluster, groups: Iterable[str], *, include_authorized_operations: bool, timeout_s: float | None
) -> Outcomes[str, GroupDescription]:
    """Describe classic and consumer groups: one that is not a classic group is then described as a consumer group."""
    from millbeck.wire.messages.classic_groups import (
        DescribedClassicGroup,
        DescribedGroupMember,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )

    def member_of(found: DescribedGroupMember, protocol_type: str) -> MemberDescription:
        return MemberDescription(
            member_id=found.member_id,
            instance_id=found.group_instance_id,
            client_id=found.client_id,
            host=found.client_host,
            assignment=_assignment_of(found.member_assignment, protocol_type),
            metadata=found.member_metadata,
            assignment_bytes=found.member_assignment,
        )

    def description_of(found: DescribedClassicGroup, node_id: int) -> GroupDescription:
        return GroupDescription(
            group_id=found.group_id,
            state=found.group_state,
            protocol_type=found.protocol_type,
            protocol=found.protocol_data,
            coordinator_id=node_id,
            members=tuple(member_of(member, found.protocol_type) for member in found.members),
            authorized_operations=found.authorized_operations,
        )

    async def attempt(pending: list[str], deadline: Deadline) -> Mapping[str, GroupDescription | ApiError]:
        async def ask(node_id: int, group: str) -> GroupDescription:
            request = DescribeGroupsRequest(groups=[group], include_authorized_operations=include_authorized_operations)
            response = await cluster.request(
                request, DescribeGroupsResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
            )
            found = next((entry for entry in response.groups if entry.group_id == group), None)
            if found is None:
                raise UnknownServerError(f"the broker did not describe group {group}")
            if found.error_code == GroupIdNotFound.code or found.group_state == DEAD:
                other = await describe_consumer_group(
                    cluster,
                    node_id,
                    group,
                    include_authorized_operations=include_authorized_operations,
                    deadline=deadline,
                )
                if other is not None:
                    return other
            if found.error_code:
                raise from_code(found.error_code, found.error_message or "")
            return description_of(found, node_id)

        return await call_coordinators(cluster, pending, ask, deadline)

    return await for_each(cluster, groups, attempt, timeout_s=timeout_s)


def _assignment_of(payload: bytes, protocol_type: str) -> tuple[TopicPartition, ...]:
    from millbeck.client.group_protocol import PROTOCOL_TYPE, decode_assignment
    from millbeck.wire.errors import DecodeError

    if protocol_type != PROTOCOL_TYPE:
        return ()
    try:
        return tuple(decode_assignment(payload))
    except DecodeError:
        # The assignment of another protocol type is opaque; its bytes are returned separately.
        return ()


async def delete_groups(cluster: Cluster, groups: Iterable[str], *, timeout_s: float | None) -> Outcomes[str, str]:
    """Delete groups; returns those deleted."""
    from millbeck.wire.messages.groups import DeleteGroupsRequest, DeleteGroupsResponse

    async def attempt(pending: list[str], deadline: Deadline) -> Mapping[str, str | ApiError]:
        async def ask(node_id: int, group: str) -> str:
            request = DeleteGroupsRequest(groups_names=[group])
            response = await cluster.request(
                request, DeleteGroupsResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
            )
            for result in response.results:
                if result.error_code:
                    raise from_code(result.error_code)
            return group

        return await call_coordinators(cluster, pending, ask, deadline)

    return await for_each(cluster, groups, attempt, timeout_s=timeout_s)


async def list_group_offsets(
    cluster: Cluster,
    groups: Mapping[str, Iterable[TopicPartition] | None],
    *,
    require_stable: bool,
    timeout_s: float | None,
) -> Outcomes[str, dict[TopicPartition, GroupOffset]]:
    """The committed offsets of each group, for all or the given partitions; partitions without one are omitted."""
    from millbeck.client.offset_requests import fetch_committed

    async def attempt(
        pending: list[str], deadline: Deadline
    ) -> Mapping[str, dict[TopicPartition, GroupOffset] | ApiError]:
        async def ask(node_id: int, group: str) -> dict[TopicPartition, GroupOffset]:
            partitions = groups[group]
            fetched = await fetch_committed(
                cluster,
                node_id,
                group,
                None if partitions is None else list(partitions),
                deadline=deadline,
                require_stable=require_stable,
            )
            committed: dict[TopicPartition, GroupOffset] = {}
            for partition, found in sorted(fetched.items()):
                if found.error_code:
                    raise from_code(found.error_code, f"{partition}: {from_code(found.error_code)}")
                if found.committed_offset >= 0:
                    committed[partition] = GroupOffset(
                        offset=found.committed_offset,
                        leader_epoch=found.committed_leader_epoch,
                        metadata=found.metadata or "",
                    )
            return committed

        return await call_coordinators(cluster, pending, ask, deadline)

    return await for_each(cluster, groups, attempt, timeout_s=timeout_s)


async def alter_group_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, GroupOffset], *, timeout_s: float | None
) -> Outcomes[TopicPartition, GroupOffset]:
    """Commit offsets for a group that has no members."""
    from millbeck.wire.messages.group_offsets import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetCommitResponse,
    )

    async def attempt(
        pending: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, GroupOffset | ApiError]:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for partition in pending:
            offset = offsets[partition]
            topics.setdefault(partition.topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            topics=[OffsetCommitRequestTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )

        async def ask(node_id: int, _: str) -> OffsetCommitResponse:
            return await cluster.request(
                request, OffsetCommitResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR, version_max=9
            )

        response = (await call_coordinators(cluster, [group], ask, deadline))[group]
        if isinstance(response, ApiError):
            raise response
        answers = {
            TopicPartition(topic.name, result.partition_index): result.error_code
            for topic in response.topics
            for result in topic.partitions
        }
        return _outcomes_of(cluster, group, answers, offsets)

    return await for_each(cluster, offsets, attempt, timeout_s=timeout_s)


async def delete_group_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition], *, timeout_s: float | None
) -> Outcomes[TopicPartition, TopicPartition]:
    """Delete committed offsets; those of a topic that the group subscribes to are refused."""
    from millbeck.wire.messages.group_offsets import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
        OffsetDeleteResponse,
    )

    wanted = {partition: partition for partition in partitions}

    async def attempt(
        pending: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, TopicPartition | ApiError]:
        topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for partition in pending:
            topics.setdefault(partition.topic, []).append(
                OffsetDeleteRequestPartition(partition_index=partition.partition)
            )
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[OffsetDeleteRequestTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )

        async def ask(node_id: int, _: str) -> OffsetDeleteResponse:
            response = await cluster.request(
                request, OffsetDeleteResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
            )
            if response.error_code:
                raise from_code(response.error_code)
            return response

        response = (await call_coordinators(cluster, [group], ask, deadline))[group]
        if isinstance(response, ApiError):
            raise response
        answers = {
            TopicPartition(topic.name, result.partition_index): result.error_code
            for topic in response.topics
            for result in topic.partitions
        }
        return _outcomes_of(cluster, group, answers, wanted)

    return await for_each(cluster, wanted, attempt, timeout_s=timeout_s)


def _outcomes_of(
    cluster: Cluster, group: str, answers: Mapping[TopicPartition, int], values: Mapping[TopicPartition, V]
) -> dict[TopicPartition, V | ApiError]:
    outcomes: dict[TopicPartition, V | ApiError] = {}
    for partition, error_code in answers.items():
        if not error_code:
            outcomes[partition] = values[partition]
            continue
        error = outcomes[partition] = from_code(error_code)
        if error.retriable:
            cluster.forget_coordinator(group)
    return outcomes


async def remove_members(
    cluster: Cluster, group: str, instance_ids: Iterable[str] | None, *, reason: str, timeout_s: float | None
) -> Outcomes[str, str]:
    """Remove static members from a classic group by their instance ids, or all members."""
    from millbeck.wire.messages.classic_groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

    if instance_ids is None:
        described = await describe_groups(cluster, [group], include_authorized_operations=False, timeout_s=timeout_s)
        members = [
            MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
            for each in described[group].members
        ]
    else:
        members = [MemberIdentity(member_id="", group_instance_id=name, reason=reason) for name in instance_ids]

    async def attempt(deadline: Deadline) -> Outcomes[str, str]:
        node_id = await cluster.coordinator(group, deadline=deadline)
        response = await cluster.request(
            LeaveGroupRequest(group_id=group, members=members),
            LeaveGroupResponse,
            deadline=deadline,
            node_id=node_id,
            purpose=COORDINATOR,
            version_min=3,
        )
        if response.error_code:
            error = from_code(response.error_code)
            if error.retriable:
                cluster.forget_coordinator(group)
            raise error
        return Outcomes(
            {
                each.group_instance_id or each.member_id: (
                    from_code(each.error_code) if each.error_code else each.member_id
                )
                for each in response.members
            }
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s) if members else Outcomes({})
