"""Heartbeat and LeaveGroup of classic groups."""

from __future__ import annotations

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.rebalance import NOTHING, GroupResult, Rebalancer
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.runtime.result import Result
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def heartbeat(rebalancer: Rebalancer, group: ClassicGroup, request: HeartbeatRequest) -> GroupResult:
    if group.state is GroupState.DEAD:
        raise errors.CoordinatorNotAvailable()
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise errors.IllegalGeneration()
    if group.is_empty:
        raise errors.UnknownMemberId()
    rebalancer.keep_session(group, member.member_id, member.session_timeout_ms)
    is_rebalancing = group.state is GroupState.PREPARING_REBALANCE
    code = errors.RebalanceInProgress.code if is_rebalancing else errors.NONE
    return Result(response=HeartbeatResponse(error_code=code))


def leave(rebalancer: Rebalancer, group: ClassicGroup, request: LeaveGroupRequest, now_ms: int) -> GroupResult:
    """Remove each listed member, then rebalance once. ``members`` is filled in for every version."""
    if group.state is GroupState.DEAD:
        raise errors.CoordinatorNotAvailable()
    answers = [_leave_one(rebalancer, group, identity) for identity in request.members]
    result = NOTHING
    if any(answer.error_code == errors.NONE for answer in answers):
        if group.state is GroupState.PREPARING_REBALANCE:
            result = rebalancer.try_complete_join_phase(group, now_ms)
        elif group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            result = rebalancer.prepare_or_complete(group, now_ms)
    return Result(records=result.records, is_replayed=False, response=LeaveGroupResponse(members=answers))


def _leave_one(rebalancer: Rebalancer, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
    code = errors.NONE
    try:
        _remove(rebalancer, group, identity)
    except ApiError as error:
        # Keep only the code: an exception's traceback would keep the whole request in memory.
        code = error.code
    return MemberResponse(identity.member_id, identity.group_instance_id, code)


def _remove(rebalancer: Rebalancer, group: ClassicGroup, identity: MemberIdentity) -> None:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id == "":
        # An administrator removes a static member by instance id, without a member id.
        current = None if instance_id is None else group.static_members.get(instance_id)
        if current is None:
            raise errors.UnknownMemberId()
        rebalancer.drop_member(group, group.members[current])
    elif member_id in group.pending_joins:
        group.remove(member_id)
        rebalancer.end_session(group, member_id)
    else:
        rebalancer.drop_member(group, group.validate_member(member_id, instance_id))
