"""Members of the classic protocol inside a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

During a migration the members of a group use both protocols. A classic member sees a classic group in which it is never
the leader: it sends its subscription and owned partitions in JoinGroup, gets its assignment from SyncGroup at once, and
its heartbeats fail with REBALANCE_IN_PROGRESS whenever the group's or its own assignment has changed. Its generation is
its member epoch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millbeck.coordinator.group.classic.join import MEMBER_ID_REQUIRED_VERSION, Client
from millbeck.coordinator.group.classic.member import protocols_of
from millbeck.coordinator.group.consumer import payloads
from millbeck.coordinator.group.consumer.coordination import ConsumerGroupLogic
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from millbeck.coordinator.group.consumer.heartbeat import joining_static_member, store_changes
from millbeck.coordinator.group.consumer.member import ClassicTerms, ConsumerMember, MemberState
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.runtime.result import Result
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

GroupResult = Result[GroupRecord, Any]


def join(
    coordination: ConsumerGroupLogic,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    *,
    version: int,
    client: Client,
    new_uuid: str,
    now_ms: int,
) -> Result[GroupRecord, JoinGroupResponse]:
    """Handle JoinGroup. Raises `ApiError`; `MemberIdRequired` is returned as a response that carries the id."""
    protocols = protocols_of(request.protocols)
    is_unknown = request.member_id == ""
    member_id = new_uuid if is_unknown else request.member_id
    size_max = coordination.options.size_max
    if len(group.members) >= size_max and member_id not in group.members:
        raise errors.GroupMaxSizeReached(f"The consumer group has reached its maximum capacity of {size_max} members.")
    _check_protocols(group, request.protocol_type, [name for name, _ in protocols])
    if is_unknown and request.group_instance_id is None and version >= MEMBER_ID_REQUIRED_VERSION:
        return Result(response=JoinGroupResponse(error_code=errors.MemberIdRequired.code, member_id=member_id))
    try:
        subscription = payloads.read_subscription(protocols[0][1])
    except DecodeError as error:
        raise errors.InconsistentGroupProtocol(f"cannot decode the subscription: {error}") from error
    draft = Draft(group)
    member = _joining(draft, request, member_id)
    updated = replace(
        member,
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            request.session_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        topic_names=tuple(sorted(set(subscription.topics))),
        regex=None,
        assignor=None,
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicTerms(session_timeout_ms=request.session_timeout_ms, protocols=protocols),
    )
    is_changed = store_changes(draft, member, updated)
    coordination.update_epoch(draft, is_changed=is_changed)
    coordination.update_target(draft, now_ms)
    owned = payloads.with_ids(subscription.owned_partitions, coordination.cluster)
    updated = coordination.reconcile(draft, updated, owned)
    response = JoinGroupResponse(
        generation_id=updated.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocols[0][0],
        member_id=member_id,
    )
    return Result(
        records=draft.records,
        response=response,
        on_committed=lambda _: coordination.joined(group.group_id, updated),
        on_failed=coordination.on_write_reverted(group.group_id),
    )


def _check_protocols(group: ConsumerGroup, protocol_type: str, names: list[str]) -> None:
    """Require a protocol shared with all other classic members: the group may be downgraded to a classic one."""
    classic = [member.classic for member in group.members.values() if member.classic is not None]
    is_supported = any(all(name in dict(terms.protocols) for terms in classic) for name in names)
    if protocol_type != PROTOCOL_TYPE or not is_supported:
        raise errors.InconsistentGroupProtocol("the member's protocols are not supported")


def _joining(draft: Draft, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
    group, instance_id = draft.group, request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)
    if request.member_id == "":
        return joining_static_member(draft, instance_id, member_id, uses_classic_protocol=True)
    return group.known_member(member_id, instance_id)


def sync(
    coordination: ConsumerGroupLogic, group: ConsumerGroup, request: SyncGroupRequest
) -> Result[GroupRecord, SyncGroupResponse]:
    member = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    assert member.classic is not None
    name = member.classic.protocol_name
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise errors.InconsistentGroupProtocol()
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        coordination.schedule_rejoin_timeout(group.group_id, member)
        raise errors.RebalanceInProgress()
    version = payloads.version_of(member.classic.protocols[0][1])
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=payloads.write_assignment(member.assigned, version, coordination.cluster),
    )
    return Result(response=response, on_committed=lambda _: coordination.synced(group.group_id, member))


def heartbeat(
    coordination: ConsumerGroupLogic, group: ConsumerGroup, request: HeartbeatRequest
) -> Result[GroupRecord, HeartbeatResponse]:
    member = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    assert member.classic is not None
    coordination.keep_session(group.group_id, member.member_id, member.classic.session_timeout_ms)
    can_take_more = member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_partitions(member)
    # If the epoch has no target assignment yet, do not ask the member to rejoin: it would only rejoin repeatedly.
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or can_take_more:
        coordination.schedule_rejoin_timeout(group.group_id, member)
        return Result(response=HeartbeatResponse(error_code=errors.RebalanceInProgress.code))
    return Result(response=HeartbeatResponse())


def leave(
    coordination: ConsumerGroupLogic, group: ConsumerGroup, request: LeaveGroupRequest, now_ms: int
) -> Result[GroupRecord, LeaveGroupResponse]:
    """Remove each listed member that uses the classic protocol."""
    leaving: dict[str, ConsumerMember] = {}
    answers: list[MemberResponse] = []
    for identity in request.members:
        code, member_id = errors.NONE, identity.member_id
        try:
            member = _leaving(group, identity)
            if member.member_id in leaving:
                raise errors.UnknownMemberId()
        except ApiError as error:
            code = error.code
        else:
            member_id = member.member_id
            leaving[member_id] = member
        answers.append(MemberResponse(member_id, identity.group_instance_id, code))
    draft = Draft(group)
    if leaving:
        coordination.remove(draft, list(leaving.values()), now_ms)

    def committed(_: int) -> None:
        for member_id in leaving:
            coordination.forget(group, member_id)

    return Result(
        records=draft.records,
        response=LeaveGroupResponse(members=answers),
        on_committed=committed,
        on_failed=coordination.on_write_reverted(group.group_id),
    )


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is not None and identity.member_id == "":
        # An administrator removes a static member by instance id, without a member id.
        found = group.static_member(instance_id)
        if found is None:
            raise errors.UnknownMemberId()
        member = found
    else:
        member = group.known_member(identity.member_id, instance_id)
    if not member.uses_classic_protocol:
        raise errors.UnknownMemberId()
    return member


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    member = group.known_member(member_id, instance_id)
    if not member.uses_classic_protocol:
        raise errors.UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
    return member


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if member.epoch != generation_id:
        raise errors.IllegalGeneration(
            f"The request generation id {generation_id} is not equal to the member epoch {member.epoch} "
            f"of member {member.member_id}."
        )
