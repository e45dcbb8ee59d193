"""ConsumerGroupHeartbeat: handles joining, heartbeats, reporting of owned partitions and leaving.

A field that is null is unchanged. A member sends its owned partitions when they have changed, and all fields after an
error. The response contains the assignment if it has changed, or if the member sent all fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.consumer import assignment, regular_expressions
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.coordination import ConsumerGroupLogic
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
)
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.runtime.result import Result
from millbeck.kernel import errors
from millbeck.wire.messages.consumer_groups import ConsumerAssignment as AnsweredAssignment
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

MEMBER_ID_GIVEN_VERSION = 1
"""The first version in which clients generate their member ids."""

HeartbeatResult = Result[GroupRecord, ConsumerGroupHeartbeatResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    client: Client
    version: int
    new_uuid: str
    """A new random UUID in text form, for a member without an id."""


def validate(request: ConsumerGroupHeartbeatRequest, version: int, offered_assignors: tuple[str, ...]) -> None:
    """Validate the request independently of any group."""
    _require(request.group_id != "", "GroupId can't be empty.")
    _require(request.instance_id != "", "InstanceId can't be empty.")
    _require(request.rack_id != "", "RackId can't be empty.")
    _require(request.member_epoch >= LEAVE_STATIC_EPOCH, "MemberEpoch is invalid.")
    if request.member_epoch != JOIN_EPOCH or version >= MEMBER_ID_GIVEN_VERSION:
        _require(request.member_id != "", "MemberId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
        _require(
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    if request.member_epoch == LEAVE_STATIC_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    if request.server_assignor is not None and request.server_assignor not in offered_assignors:
        raise errors.UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(offered_assignors)}."
        )
    if request.subscribed_topic_regex:
        regular_expressions.check(request.subscribed_topic_regex)


def _require(is_met: bool, message: str) -> None:
    if not is_met:
        raise errors.InvalidRequest(message)


def heartbeat(
    coordination: ConsumerGroupLogic,
    draft_for: Callable[[], Draft],
    request: ConsumerGroupHeartbeatRequest,
    sender: Sender,
    now_ms: int,
) -> HeartbeatResult:
    """Handle a join or a heartbeat. ``draft_for`` finds the group, or creates it for a joining member."""
    draft = draft_for()
    group = draft.group
    member_id = request.member_id or sender.new_uuid
    owned = None if request.topic_partitions is None else assignment.from_wire(request.topic_partitions)
    _check_size(coordination, draft, member_id)
    member = _member(draft, request, member_id, owned)
    updated = _with_changes(member, request, sender.client)
    is_changed = store_changes(draft, member, updated)
    coordination.update_epoch(draft, is_changed=is_changed)
    coordination.resolve_regexes(draft, now_ms)
    coordination.update_target(draft, now_ms)
    updated = coordination.reconcile(draft, updated, owned)
    coordination.keep_session(group.group_id, member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=coordination.heartbeat_interval_ms(draft, updated),
    )
    if _is_full(request) or updated.assigned != member.assigned:
        response.assignment = _answered(updated.assigned)
    return Result(records=draft.records, response=response, on_failed=coordination.on_write_reverted(group.group_id))


def _check_size(coordination: ConsumerGroupLogic, draft: Draft, member_id: str) -> None:
    members = draft.group.members
    if len(members) >= coordination.options.size_max and member_id not in members:
        raise errors.GroupMaxSizeReached(
            f"The consumer group has reached its maximum capacity of {coordination.options.size_max} members."
        )


def _member(
    draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str, owned: Assignment | None
) -> ConsumerMember:
    """Return the known or a new member; raises if its epoch is not valid."""
    group = draft.group
    is_joining = request.member_epoch == JOIN_EPOCH
    if request.instance_id is None:
        known = group.members.get(member_id)
        if known is None and is_joining:
            return ConsumerMember(member_id=member_id)
        member = group.member(member_id) if known is None else known
    elif is_joining:
        return joining_static_member(draft, request.instance_id, member_id, uses_classic_protocol=False)
    else:
        member = group.known_member(member_id, request.instance_id)
    check_epoch(member, request.member_epoch, owned)
    return member


def joining_static_member(
    draft: Draft, instance_id: str, member_id: str, *, uses_classic_protocol: bool
) -> ConsumerMember:
    """Return the joining static member: a new one, or one that replaces the member with the same instance id."""
    known = draft.group.static_member(instance_id)
    if known is None:
        return draft.group.members.get(member_id) or ConsumerMember(member_id=member_id)
    if not uses_classic_protocol and not known.uses_classic_protocol and known.epoch != LEAVE_STATIC_EPOCH:
        if known.member_id == member_id and known.previous_epoch == JOIN_EPOCH:
            # A retry: the response to its first request was lost.
            return known
        raise errors.UnreleasedInstanceId(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {known.member_id} member."
        )
    replacement = replace(known, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    target = draft.target_of(known.member_id)
    draft.remove_member(known.member_id)
    draft.store_member(replacement)
    draft.store_target(member_id, target)
    draft.store_current(replacement)
    return replacement


def check_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    """Validate the member epoch; the previous epoch is accepted only if the response with the new one may have been
    lost."""
    if epoch == member.epoch:
        return
    is_previous = epoch < member.epoch and epoch == member.previous_epoch
    if is_previous and owned is not None and assignment.is_within(owned, member.assigned):
        return
    size = "greater" if epoch > member.epoch else "smaller"
    raise errors.FencedMemberEpoch(
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def _with_changes(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client) -> ConsumerMember:
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    is_silent = names is None and regex is None and request.rack_id is None and request.server_assignor is None
    if (
        is_silent
        and request.rebalance_timeout_ms == -1
        and (member.client_id, member.client_host, member.classic)
        == (
            client.client_id,
            client.host,
            None,
        )
    ):
        # Most heartbeats change nothing.
        return member
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else tuple(sorted(set(names))),
        regex=member.regex if regex is None else regex or None,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


def store_changes(draft: Draft, member: ConsumerMember, updated: ConsumerMember) -> bool:
    """Write the member's changes; return whether the group needs a new assignment."""
    is_new = not draft.has_member(updated.member_id)
    if not is_new and (updated is member or updated == member):
        return False
    draft.store_member(updated)
    return is_new or _assignable(updated) != _assignable(member)


def _assignable(member: ConsumerMember) -> tuple[object, ...]:
    return member.topic_names, member.regex, member.rack_id, member.assignor


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    if request.member_epoch == JOIN_EPOCH:
        return True
    is_subscribing = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and is_subscribing and request.topic_partitions is not None


def _answered(assigned: Assignment) -> AnsweredAssignment:
    return AnsweredAssignment(
        [ConsumerGroupHeartbeatTopicPartitions(topic_id, list(partitions)) for topic_id, partitions in assigned.items()]
    )


def leave(
    coordination: ConsumerGroupLogic, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now_ms: int
) -> HeartbeatResult:
    """Remove a member, or with epoch -2 let a static member leave temporarily and keep its assignment."""
    member = group.known_member(request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEAVE_EPOCH:
        return coordination.fence(group, member, now_ms, response)
    draft = Draft(group)
    draft.store_current(replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=assignment.NOTHING))
    return Result(records=draft.records, response=response)
