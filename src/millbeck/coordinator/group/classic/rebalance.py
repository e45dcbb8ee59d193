"""Rebalances of classic groups: the join phase, its delays and timeouts, the sync phase and session expiry.

Timers, one of a kind for each group or member:
    session  no heartbeat from a member within its session timeout; a pending member has not rejoined
    join     the join phase has timed out: complete it without the members that have not rejoined
    sync     the generation has started and some members have not sent SyncGroup

The first rebalance of an empty group waits ``group.initial.rebalance.delay.ms``, and again as long as new members
join, up to the rebalance timeout. Later ones last until all members have rejoined or the rebalance timeout expires.
Static members are never removed for not rejoining; only their session timeout removes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millbeck.coordinator.config import ClassicGroupOptions
from millbeck.coordinator.group.classic.group import ClassicGroup, complete_join, complete_sync
from millbeck.coordinator.group.classic.member import ClassicMember
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.statistics import Counters
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import TimerKey, Timers
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.classic_groups import JoinGroupResponse, SyncGroupResponse

GroupResult = Result[GroupRecord, Any]

NOTHING: GroupResult = Result()

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""Maximum time the JoinGroup of a new member stays pending: it cannot send heartbeats yet, and its client may be
gone."""


class Rebalancer:
    def __init__(
        self,
        groups: Mapping[str, object],
        timers: Timers[GroupRecord],
        options: ClassicGroupOptions,
        counters: Counters,
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._counters = counters
        self.options = options

    def _find(self, group_id: str) -> ClassicGroup | None:
        """Return the group, or None if it was deleted or no longer uses the classic protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # Sessions

    def keep_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Restart the member's session timeout."""
        group_id = group.group_id
        self._timers.schedule(
            _session_key(group_id, member_id),
            timeout_ms,
            lambda now_ms: self._expire_session(group_id, member_id, now_ms),
        )

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_session_key(group.group_id, member_id))

    def _expire_session(self, group_id: str, member_id: str, now_ms: int) -> GroupResult:
        group = self._find(group_id)
        if group is None or group.state is GroupState.DEAD:
            return NOTHING
        if member_id in group.pending_joins:
            group.remove(member_id)
            return self._complete_if_all_joined(group, now_ms)
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return NOTHING
        self._counters.expired_members += 1
        self.drop_member(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            return self._complete_if_all_joined(group, now_ms)
        return self.prepare_or_complete(group, now_ms)

    def drop_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove a member and complete its pending requests with an error: it has to join again."""
        complete_join(member, JoinGroupResponse(error_code=errors.UnknownMemberId.code))
        complete_sync(member, SyncGroupResponse(error_code=errors.UnknownMemberId.code))
        group.remove(member.member_id)
        self.end_session(group, member.member_id)

    def _complete_if_all_joined(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
            return self.complete_join_phase(group, now_ms)
        return NOTHING

    # The join phase

    def prepare_or_complete(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """After a membership change: start a rebalance, or check whether the one in progress can complete."""
        if group.can_rebalance:
            return self.prepare(group, now_ms)
        return self.try_complete_join_phase(group, now_ms)

    def prepare(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """Start a rebalance: members waiting for an assignment of the old generation must rejoin."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignments(group, errors.RebalanceInProgress())
        group.pending_syncs.clear()
        self._timers.cancel(_sync_key(group.group_id))
        is_initial = group.is_empty
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        if is_initial:
            group.has_new_member = False
            delay_ms = self.options.initial_rebalance_delay_ms
            self._delay_initial(group.group_id, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            return NOTHING
        if group.has_all_members_joined:
            return self.complete_join_phase(group, now_ms)
        self._schedule_join_timeout(group)
        return NOTHING

    def _delay_initial(self, group_id: str, delay_ms: int, remaining_ms: int) -> None:
        self._timers.schedule(
            _join_key(group_id),
            delay_ms,
            lambda now_ms: self._expire_initial_delay(group_id, delay_ms, remaining_ms, now_ms),
        )

    def _expire_initial_delay(self, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> GroupResult:
        group = self._find(group_id)
        if group is None or group.state is not GroupState.PREPARING_REBALANCE:
            return NOTHING
        if group.has_new_member and remaining_ms > 0:
            group.has_new_member = False
            next_delay_ms = min(self.options.initial_rebalance_delay_ms, remaining_ms)
            self._delay_initial(group_id, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return NOTHING
        return self.complete_join_phase(group, now_ms)

    def _schedule_join_timeout(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        self._timers.schedule(
            _join_key(group_id), group.rebalance_timeout_ms, lambda now_ms: self._expire_join(group_id, now_ms)
        )

    def _expire_join(self, group_id: str, now_ms: int) -> GroupResult:
        group = self._find(group_id)
        if group is None or group.state is not GroupState.PREPARING_REBALANCE:
            return NOTHING
        return self.complete_join_phase(group, now_ms)

    def try_complete_join_phase(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """End the join phase early once all members have joined; the initial one always lasts its delay."""
        if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
            return NOTHING
        return self._complete_if_all_joined(group, now_ms)

    def complete_join_phase(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """Remove the dynamic members that have not rejoined and start the next generation with the others."""
        self._timers.cancel(_join_key(group.group_id))
        for member in list(group.members.values()):
            if not member.is_awaiting_join and not member.is_static:
                self.drop_member(group, member)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has rejoined: wait for one, or until their sessions expire.
            self._schedule_join_timeout(group)
            return NOTHING
        group.start_generation(now_ms)
        if group.is_empty:
            return Result(records=[group.metadata_record({})], is_replayed=False)
        self._answer_joins(group)
        self._schedule_sync_timeout(group)
        return NOTHING

    def _answer_joins(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            complete_join(member, joined(group, member.member_id))
            member.is_new = False
            self.keep_session(group, member.member_id, member.session_timeout_ms)
            group.pending_syncs[member.member_id] = None

    # The sync phase

    def _schedule_sync_timeout(self, group: ClassicGroup) -> None:
        group_id, generation_id = group.group_id, group.generation_id
        self._timers.schedule(
            _sync_key(group_id),
            group.rebalance_timeout_ms,
            lambda now_ms: self._expire_sync(group_id, generation_id, now_ms),
        )

    def _expire_sync(self, group_id: str, generation_id: int, now_ms: int) -> GroupResult:
        group = self._find(group_id)
        if group is None or group.generation_id != generation_id or not group.pending_syncs:
            return NOTHING
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return NOTHING
        for member_id in list(group.pending_syncs):
            self.drop_member(group, group.members[member_id])
        return self.prepare(group, now_ms)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """Record that the member has sent SyncGroup."""
        group.pending_syncs.pop(member_id, None)
        if not group.pending_syncs:
            self._timers.cancel(_sync_key(group.group_id))

    def set_assignments(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Complete all pending SyncGroups, because the leader's assignment is committed."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if complete_sync(member, synced(group, member)):
                self.keep_session(group, member.member_id, member.session_timeout_ms)
        self._counters.completed_rebalances += 1

    def reset_assignments(self, group: ClassicGroup, error: ApiError) -> None:
        for member in group.members.values():
            member.assignment = b""
        self.fail_syncs(group, error)

    def fail_syncs(self, group: ClassicGroup, error: ApiError) -> None:
        """Complete all pending SyncGroups with an error."""
        for member in group.members.values():
            if complete_sync(member, SyncGroupResponse(error_code=error.code)):
                self.keep_session(group, member.member_id, member.session_timeout_ms)

    # The whole group

    def resume(self, group: ClassicGroup, now_ms: int) -> None:
        """Start the timers of a group that was just loaded; rebalance a group above its size limit."""
        for member in group.members.values():
            self.keep_session(group, member.member_id, member.session_timeout_ms)
        if len(group.members) > self.options.size_max:
            self.prepare(group, now_ms)

    def cancel_pending(self, group: ClassicGroup) -> None:
        """Complete the pending requests of a group that was upgraded to the consumer protocol, so that members rejoin,
        and cancel its timers."""
        code = errors.RebalanceInProgress.code
        for member in group.members.values():
            complete_join(member, JoinGroupResponse(error_code=code, member_id=member.member_id))
            complete_sync(member, SyncGroupResponse(error_code=code))
        for member_id in (*group.members, *group.pending_joins):
            self.end_session(group, member_id)
        self._timers.cancel(_join_key(group.group_id))
        self._timers.cancel(_sync_key(group.group_id))

    def fail_all(self, group: ClassicGroup, error: ApiError) -> None:
        """Complete all pending requests of an unloaded group with ``error``."""
        for member in group.members.values():
            complete_join(member, JoinGroupResponse(error_code=error.code, member_id=member.member_id))
            complete_sync(member, SyncGroupResponse(error_code=error.code))
        group.transition_to(GroupState.DEAD, group.state_timestamp_ms)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The JoinGroup response for a member of the current generation; the leader's includes all members."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=group.join_members() if group.is_leader(member_id) else [],
    )


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def _session_key(group_id: str, member_id: str) -> TimerKey:
    return ("session", group_id, member_id)


def _join_key(group_id: str) -> TimerKey:
    return ("join", group_id)


def _sync_key(group_id: str) -> TimerKey:
    return ("sync", group_id)
