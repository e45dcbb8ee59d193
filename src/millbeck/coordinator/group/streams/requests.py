"""Checks of StreamsGroupHeartbeat requests that need no group, and the member that a request describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.streams.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    StreamsMember,
    endpoint_of,
    tags_of,
)
from millbeck.coordinator.group.streams.tasks import TaskSet
from millbeck.coordinator.group.streams.topology import check_topology
from millbeck.kernel import errors
from millbeck.wire.messages.streams_groups import StreamsGroupHeartbeatRequest, TaskIds


def validate(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise `InvalidRequest`, or `StreamsInvalidTopology` for a topology that is invalid on its own."""
    _refuse_unsupported(request)
    _require(request.member_id.strip() != "", "MemberId can't be empty.")
    _require(request.group_id.strip() != "", "GroupId can't be empty.")
    _require(request.rack_id is None or request.rack_id.strip() != "", "RackId can't be empty.")
    is_joining = request.member_epoch == JOIN_EPOCH
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if is_joining:
        _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        for name, each in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), tasks, strict=True):
            _require(not each, f"{name} must be empty when (re-)joining.")
        _require(request.topology is not None, "Topology must be non-null when (re-)joining.")
    else:
        _require(request.topology is None, "Topology can only be provided when (re-)joining.")
    if request.topology is not None:
        check_topology(request.topology)
    # -2 would be the temporary leave of a static member, which streams groups do not support.
    _require(request.member_epoch != LEAVE_STATIC_EPOCH, "InstanceId can't be null.")
    _require(
        request.member_epoch > LEAVE_STATIC_EPOCH,
        f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.",
    )
    is_all_or_none = len({each is None for each in tasks}) == 1
    _require(is_all_or_none, "If one task-type is non-null, all must be non-null.")


def _refuse_unsupported(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse fields of the messages that Kafka 4.3 does not support yet."""
    _require(request.instance_id is None, "Static membership is not yet supported.")
    _require(request.task_offsets is None, "TaskOffsets are not supported yet.")
    _require(request.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    _require(not request.warmup_tasks, "WarmupTasks are not supported yet.")
    for subtopology in () if request.topology is None else request.topology.subtopologies:
        _require(not subtopology.source_topic_regex, "Regular expressions for source topics are not supported yet.")


def _require(is_met: bool, message: str) -> None:
    if not is_met:
        raise errors.InvalidRequest(message)


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskSet | None:
    """The tasks that the member reports; None if they are unchanged."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TaskSet.of(request.active_tasks, request.standby_tasks, request.warmup_tasks)


def check_epoch(member: StreamsMember, epoch: int, owned: TaskSet | None) -> None:
    """Validate the member epoch. The previous one is accepted only if the response with the new one may have been lost:
    the member reports no tasks but its assigned ones."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    is_previous = epoch < member.epoch and epoch == member.previous_epoch
    if is_previous and owned is not None and owned.is_within(member.assigned):
        return
    size = "greater" if epoch > member.epoch else "smaller"
    raise errors.FencedMemberEpoch(
        f"The streams group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def check_tasks(request: StreamsGroupHeartbeatRequest, task_counts: Mapping[str, int]) -> None:
    """Raise `InvalidRequest` if the member reports tasks that do not exist."""
    tasks: list[TaskIds] = [*(request.active_tasks or ()), *(request.standby_tasks or ())]
    for each in tasks:
        count = task_counts.get(each.subtopology_id)
        if count is None:
            raise errors.InvalidRequest(f"Subtopology {each.subtopology_id} does not exist in the topology.")
        for partition in each.partitions:
            if not 0 <= partition < count:
                raise errors.InvalidRequest(
                    f"Task {partition} for subtopology {each.subtopology_id} is invalid. Number of tasks for this "
                    f"subtopology: {count}"
                )


def described_member(member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client) -> StreamsMember:
    """The member with the request's fields applied; null fields are unchanged."""
    topology, timeout_ms, tags = request.topology, request.rebalance_timeout_ms, request.client_tags
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=member.user_endpoint if request.user_endpoint is None else endpoint_of(request.user_endpoint),
        client_tags=member.client_tags if tags is None else tags_of(tags),
        client_id=client.client_id,
        client_host=client.host,
    )
