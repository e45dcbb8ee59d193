"""SyncGroup: the leader submits the assignment and every member receives its part.

The assignment is written to the log before any member receives it. If the group has moved to another generation or
state when the record is committed, it is ignored; if the write fails, pending SyncGroups fail and the group rebalances;
if the commit times out, pending SyncGroups fail but the group keeps waiting, since the record may still be committed.
"""

from __future__ import annotations

from millbeck.coordinator.group.classic.group import NO_GENERATION, ClassicGroup, complete_sync
from millbeck.coordinator.group.classic.rebalance import NOTHING, GroupResult, Rebalancer, synced
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.classic_groups import SyncGroupRequest, SyncGroupResponse


def sync(
    rebalancer: Rebalancer, group: ClassicGroup, request: SyncGroupRequest, reply: ResponseCallback[SyncGroupResponse]
) -> GroupResult:
    try:
        _validate(group, request)
    except ApiError as error:
        reply.reply(SyncGroupResponse(error_code=error.code))
        return NOTHING
    member = group.members[request.member_id]
    if group.state is GroupState.STABLE:
        rebalancer.synced(group, member.member_id)
        reply.reply(synced(group, member))
        return NOTHING
    assert group.state is GroupState.COMPLETING_REBALANCE, group.state
    # The client retried on another connection: complete its earlier request.
    complete_sync(member, SyncGroupResponse(error_code=errors.RebalanceInProgress.code))
    member.sync_reply = reply
    rebalancer.synced(group, member.member_id)
    if not group.is_leader(member.member_id) or group.assigning_generation_id == group.generation_id:
        # The leader may retry before its assignment is committed. Two records of one generation could differ, and the
        # assignment sent to members need not be the one that is loaded after a restart.
        return NOTHING
    return _assign(rebalancer, group, request)


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.state is GroupState.DEAD:
        raise errors.CoordinatorNotAvailable()
    if group.is_empty:
        raise errors.UnknownMemberId()
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise errors.IllegalGeneration()
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        raise errors.InconsistentGroupProtocol()
    if group.state is GroupState.PREPARING_REBALANCE:
        raise errors.RebalanceInProgress()


def _differs(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known


def _assign(rebalancer: Rebalancer, group: ClassicGroup, request: SyncGroupRequest) -> GroupResult:
    given = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    # Members missing from the leader's assignment get an empty one; unknown member ids are ignored.
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation_id = group.assigning_generation_id = group.generation_id

    def is_current() -> bool:
        return group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation_id

    def committed(now_ms: int) -> None:
        if is_current():
            rebalancer.set_assignments(group, assignments)
            group.transition_to(GroupState.STABLE, now_ms)

    def failed(error: ApiError, now_ms: int) -> None:
        group.assigning_generation_id = NO_GENERATION
        if is_current():
            rebalancer.reset_assignments(group, error)
            rebalancer.prepare_or_complete(group, now_ms)

    def timed_out(error: ApiError) -> None:
        if is_current():
            rebalancer.fail_syncs(group, error)

    return Result(
        records=[group.metadata_record(assignments)],
        is_replayed=False,
        on_committed=committed,
        on_failed=failed,
        on_timeout=timed_out,
    )
