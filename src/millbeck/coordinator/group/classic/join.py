"""JoinGroup: validates a join, assigns the member id and decides whether a rebalance starts.

From version 4 on, a dynamic member without a member id first gets MEMBER_ID_REQUIRED with a new id, so that a client
that retries leaves no stale members behind. A static member replaces the member that has its instance id; in a stable
group, if the chosen protocol stays the same, this happens without a rebalance and the assignment is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.coordinator.group.classic.group import ClassicGroup, complete_join
from millbeck.coordinator.group.classic.member import ClassicMember, Protocols, protocols_of, size_of
from millbeck.coordinator.group.classic.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    NOTHING,
    GroupResult,
    Rebalancer,
    joined,
)
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.classic_groups import JoinGroupRequest, JoinGroupResponse

MEMBER_BYTES_MAX: Final = 4 << 20
GROUP_BYTES_MAX: Final = 64 << 20
"""The maximum size of a member, and of all members of a group. A generation has to fit into one record, of 1 MiB in
``__consumer_offsets`` unless it is configured otherwise; until then a group is in memory only."""
PENDING_JOINS_MAX: Final = 10_000
"""The maximum number of members that have a member id and have not joined with it."""
CLIENT_ID_LENGTH_MAX: Final = 255
"""The part of a client id that is used in member ids."""
MEMBER_ID_REQUIRED_VERSION = 4
SKIP_ASSIGNMENT_VERSION = 9
REBALANCE_TIMEOUT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Client id and host of a request, as stored with the member."""

    client_id: str
    host: str
    """The client's address with a leading slash, as in Kafka."""


class JoinGroupHandler:
    """Handles one JoinGroup request; created per request."""

    __slots__ = ("client", "group", "new_uuid", "now_ms", "protocols", "rebalancer", "reply", "request", "version")

    def __init__(
        self,
        rebalancer: Rebalancer,
        group: ClassicGroup,
        request: JoinGroupRequest,
        *,
        version: int,
        client: Client,
        new_uuid: str,
        reply: ResponseCallback[JoinGroupResponse],
        now_ms: int,
    ) -> None:
        self.rebalancer = rebalancer
        self.group = group
        self.request = request
        self.version = version
        self.client = client
        self.new_uuid = new_uuid
        self.reply = reply
        self.now_ms = now_ms
        self.protocols: Protocols = protocols_of(request.protocols)

    def run(self) -> GroupResult:
        group, request = self.group, self.request
        if not self._is_accepted():
            surplus = group.members.get(request.member_id)
            if surplus is not None:
                self.rebalancer.drop_member(group, surplus)
            group.pending_joins.pop(request.member_id, None)
            self._refuse(errors.GroupMaxSizeReached(), member_id="")
            return self.rebalancer.try_complete_join_phase(group, self.now_ms)
        if group.state is GroupState.DEAD:
            return self._refuse(errors.CoordinatorNotAvailable(), member_id=request.member_id)
        if not group.supports_protocols(request.protocol_type, (name for name, _ in self.protocols)):
            return self._refuse(errors.InconsistentGroupProtocol(), member_id=request.member_id)
        if request.member_id == "":
            return self._join_new()
        if request.member_id in group.pending_joins:
            if request.group_instance_id is not None:
                # Only dynamic members are ever pending: a pending id with an instance id is invalid.
                return self._refuse(errors.UnknownMemberId(), member_id=request.member_id)
            return self._add(request.member_id)
        return self._rejoin()

    def _is_accepted(self) -> bool:
        """Whether ``group.max.size`` and the bounds on memory permit the join. During a rebalance, the members that
        rejoin first are accepted."""
        group, member_id = self.group, self.request.member_id
        size_max = self.rebalancer.options.size_max
        if not self._is_small_enough():
            return False
        if len(group.members) < size_max or group.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            return (member is not None and member.is_awaiting_join) or group.awaiting_join_count < size_max
        return member is not None

    def _is_small_enough(self) -> bool:
        group, instance_id, client_id = self.group, self.request.group_instance_id, self.client.client_id
        size = size_of(self.protocols, client_id, client_id, instance_id, instance_id)
        known = group.members.get(self.request.member_id)
        others = group.size_bytes - (0 if known is None else known.size_bytes)
        return size <= MEMBER_BYTES_MAX and others + size <= GROUP_BYTES_MAX

    def _refuse(self, error: ApiError, *, member_id: str) -> GroupResult:
        self.reply.reply(JoinGroupResponse(error_code=error.code, member_id=member_id))
        return NOTHING

    # Members without a member id

    def _join_new(self) -> GroupResult:
        instance_id = self.request.group_instance_id
        if instance_id is not None:
            member_id = f"{instance_id}-{self.new_uuid}"
            if instance_id in self.group.static_members:
                return self._replace_static(instance_id, member_id)
            return self._add(member_id)
        member_id = f"{self.client.client_id[:CLIENT_ID_LENGTH_MAX]}-{self.new_uuid}"
        if self.version < MEMBER_ID_REQUIRED_VERSION:
            return self._add(member_id)
        if len(self.group.pending_joins) >= PENDING_JOINS_MAX:
            return self._refuse(errors.GroupMaxSizeReached(), member_id="")
        self.group.pending_joins[member_id] = None
        self.rebalancer.keep_session(self.group, member_id, self.request.session_timeout_ms)
        return self._refuse(errors.MemberIdRequired(), member_id=member_id)

    def _add(self, member_id: str) -> GroupResult:
        group, request = self.group, self.request
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=self.client.client_id,
            client_host=self.client.host,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=self.protocols,
            is_new=True,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        self._park(member)
        self.rebalancer.keep_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self.rebalancer.prepare_or_complete(group, self.now_ms)

    @property
    def _rebalance_timeout_ms(self) -> int:
        if self.version < REBALANCE_TIMEOUT_VERSION:
            return self.request.session_timeout_ms
        return self.request.rebalance_timeout_ms

    def _park(self, member: ClassicMember) -> None:
        # The client retried on another connection: complete its earlier request.
        complete_join(member, JoinGroupResponse(error_code=errors.RebalanceInProgress.code, member_id=member.member_id))
        member.join_reply = self.reply

    # Known members

    def _rejoin(self) -> GroupResult:
        group, request = self.group, self.request
        try:
            member = group.validate_member(request.member_id, request.group_instance_id)
        except ApiError as error:
            return self._refuse(error, member_id=request.member_id)
        is_unchanged = member.protocols == self.protocols
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                return self._update(member)
            case GroupState.COMPLETING_REBALANCE if is_unchanged:
                # A retry: the member may not have received the response to its first JoinGroup.
                return self._answer_now(member)
            case GroupState.STABLE if is_unchanged and not group.is_leader(member.member_id):
                return self._answer_now(member)
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                # The metadata changed, or the leader rejoins to force a rebalance, for example after it saw new
                # partitions.
                return self._update(member)
            case _:
                return self._refuse(errors.UnknownMemberId(), member_id=request.member_id)

    def _update(self, member: ClassicMember) -> GroupResult:
        self._set_terms(member)
        self._park(member)
        return self.rebalancer.prepare_or_complete(self.group, self.now_ms)

    def _set_terms(self, member: ClassicMember) -> None:
        self.group.set_protocols(member, self.protocols)
        member.rebalance_timeout_ms = self._rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms

    def _answer_now(self, member: ClassicMember) -> GroupResult:
        self._park(member)
        complete_join(member, joined(self.group, member.member_id))
        return NOTHING

    # Static members that rejoin without their member id

    def _replace_static(self, instance_id: str, new_member_id: str) -> GroupResult:
        group = self.group
        old_leader_id = group.leader_id
        old = group.members[group.static_members[instance_id]]
        self.rebalancer.end_session(group, old.member_id)
        member = group.replace_static_member(instance_id, new_member_id)
        self._set_terms(member)
        self._park(member)
        self.rebalancer.keep_session(group, new_member_id, member.session_timeout_ms)
        match group.state:
            case GroupState.STABLE if group.select_protocol() == group.protocol_name:
                return self._store_replacement(old, member, old_leader_id)
            case GroupState.STABLE:
                return self.rebalancer.prepare_or_complete(group, self.now_ms)
            case GroupState.COMPLETING_REBALANCE:
                # The leader may already be computing an assignment for the old member id, which would be lost.
                return self.rebalancer.prepare(group, self.now_ms)
            case _:
                return self.rebalancer.try_complete_join_phase(group, self.now_ms)

    def _store_replacement(self, old: ClassicMember, member: ClassicMember, old_leader_id: str | None) -> GroupResult:
        """Write the new member id; when the record is committed, respond with the current generation."""
        group = self.group
        group.update_subscribed_topics()

        def committed(_: int) -> None:
            response = joined(group, member.member_id)
            if self.version >= SKIP_ASSIGNMENT_VERSION:
                response.skip_assignment = group.is_leader(member.member_id)
            else:
                # Older versions have no SkipAssignment field, so the response must not name this member as leader.
                response.leader = old_leader_id or ""
                response.members = []
            complete_join(member, response)

        def timed_out(error: ApiError) -> None:
            complete_join(member, JoinGroupResponse(error_code=error.code, generation_id=group.generation_id))

        def failed(error: ApiError, _: int) -> None:
            timed_out(error)
            if group.static_members.get(old.instance_id or "") == member.member_id:
                self._take_back(old, member)

        record = group.metadata_record({member_id: one.assignment for member_id, one in group.members.items()})
        return Result(
            records=[record], is_replayed=False, on_committed=committed, on_failed=failed, on_timeout=timed_out
        )

    def _take_back(self, old: ClassicMember, member: ClassicMember) -> None:
        group = self.group
        self.rebalancer.end_session(group, member.member_id)
        restored = group.replace_static_member(old.instance_id or "", old.member_id)
        group.set_protocols(restored, old.protocols)
        restored.rebalance_timeout_ms = old.rebalance_timeout_ms
        restored.session_timeout_ms = old.session_timeout_ms
        group.update_subscribed_topics()
        self.rebalancer.keep_session(group, restored.member_id, restored.session_timeout_ms)
