"""State of one classic group: members, leader, chosen protocol and group state.

It has no timers and writes no records; the modules `rebalance`, `join`, `sync` and `membership` change it. Members keep
the order in which they joined, so the choice of leader and protocol is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millbeck.coordinator.group.classic.member import ClassicMember, Protocols
from millbeck.coordinator.group.classic.state import ALLOWED_FROM, CAN_REBALANCE, GroupState
from millbeck.coordinator.group.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from millbeck.coordinator.group.records import NO_TIMESTAMP, GroupMetadataKey, GroupMetadataValue, GroupRecord
from millbeck.kernel import errors
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

TYPE_NAME = "classic"
NO_GENERATION = -1


class ClassicGroup:
    __slots__ = (
        "assigning_generation_id",
        "generation_id",
        "group_id",
        "has_new_member",
        "leader_id",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_name",
        "protocol_support_counts",
        "protocol_type",
        "size_bytes",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, *, now_ms: int = NO_TIMESTAMP) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = now_ms
        """The time at which the group entered its state; -1 if it was loaded from a record before version 2, which
        lacks the field."""
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.protocol_support_counts: dict[str, int] = {}
        """Number of members that support each protocol."""
        self.size_bytes = 0
        """About what the members take in memory."""
        self.pending_joins: dict[str, None] = {}
        """Member ids sent with MEMBER_ID_REQUIRED whose members have not rejoined yet."""
        self.pending_syncs: dict[str, None] = {}
        """Members of this generation that have not sent SyncGroup yet."""
        self.subscribed_topics: frozenset[str] | None = None
        """The subscribed topics; None if unknown, because the group is not a consumer group or the subscription cannot
        be decoded."""
        self.assigning_generation_id = NO_GENERATION
        """The generation whose assignment is being written to the log; it must not be written a second time."""
        self.has_new_member = False
        """Whether a member has joined since the initial rebalance was last delayed."""

    # Reading

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        return self.state in CAN_REBALANCE

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.is_awaiting_join for member in self.members.values())

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_joins and all(member.is_awaiting_join for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The group's rebalance timeout: the maximum over its members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group subscribes to the topic; a consumer group with unknown subscriptions counts as subscribed
        to all."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Return the member. Raises UnknownMemberId, or FencedInstanceId if another member now has its instance id."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise errors.UnknownMemberId()
            if current != member_id:
                raise errors.FencedInstanceId()
        member = self.members.get(member_id)
        if member is None:
            raise errors.UnknownMemberId()
        return member

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member that supports these protocols is compatible with the group."""
        if self.is_empty:
            return protocol_type != "" and any(True for _ in names)
        return self.protocol_type == protocol_type and any(self._is_supported_by_all(name) for name in names)

    def _is_supported_by_all(self, name: str) -> bool:
        return self.protocol_support_counts.get(name, 0) == len(self.members)

    def select_protocol(self) -> str:
        """Choose the protocol: each member votes for its first protocol that all support; on a tie the earliest counted
        wins."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if self._is_supported_by_all(name))
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def join_members(self) -> list[JoinGroupResponseMember]:
        """The member list of the leader's JoinGroup response."""
        assert self.protocol_name is not None
        return [
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        ]

    def metadata_record(self, assignments: Mapping[str, bytes]) -> GroupRecord:
        """The group metadata record of the current generation. ``assignments`` must have an entry for every member."""
        members = []
        if self.members:
            assert self.protocol_name is not None, "members without a protocol"
            members = [
                member.to_record(self.protocol_name, assignments[member_id])
                for member_id, member in self.members.items()
            ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=members,
        )
        return GroupRecord(GroupMetadataKey(self.group_id), value)

    def empty_group_record(self) -> GroupRecord:
        """The group metadata record of a group that has no generation yet."""
        value = GroupMetadataValue("", 0, None, None, self.state_timestamp_ms, [])
        return GroupRecord(GroupMetadataKey(self.group_id), value)

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id, now_ms=value.current_state_timestamp)
        group.generation_id = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader_id = value.leader
        for stored in value.members:
            member = ClassicMember.from_record(stored, value.protocol)
            group.members[member.member_id] = member
            group._count_protocols(member, 1)
            if member.instance_id is not None:
                group.static_members[member.instance_id] = member.member_id
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        group.update_subscribed_topics()
        return group

    # Changing

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        assert self.state in ALLOWED_FROM[state], f"{self.group_id}: {self.state.value} to {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or pending member; if the leader is removed, the next member becomes leader."""
        removed = self.members.pop(member_id, None)
        if removed is not None:
            self._count_protocols(removed, -1)
            if removed.instance_id is not None:
                del self.static_members[removed.instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def replace_static_member(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """Replace a static member's id; pending requests under the old id are answered with FENCED_INSTANCE_ID."""
        old = self.members[self.static_members[instance_id]]
        fenced = errors.FencedInstanceId.code
        complete_join(old, JoinGroupResponse(error_code=fenced, member_id=old.member_id))
        complete_sync(old, SyncGroupResponse(error_code=fenced))
        replacement = ClassicMember(
            member_id=new_member_id,
            instance_id=instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        # The new member keeps the old member's position in the join order.
        self.members = {
            replacement.member_id if member_id == old.member_id else member_id: (
                replacement if member_id == old.member_id else member
            )
            for member_id, member in self.members.items()
        }
        self.static_members[instance_id] = new_member_id
        if self.is_leader(old.member_id):
            self.leader_id = new_member_id
        if old.member_id in self.pending_syncs:
            del self.pending_syncs[old.member_id]
            self.pending_syncs[new_member_id] = None
        return replacement

    def set_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        counts = self.protocol_support_counts
        for name, _ in member.protocols:
            counts[name] = counts.get(name, 0) + change
            if not counts[name]:
                del counts[name]  # clients choose the names
        self.size_bytes += change * member.size_bytes

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else elect the first member that has; False if no member has rejoined."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.is_awaiting_join:
            return True
        joined = next((member for member in self.members.values() if member.is_awaiting_join), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    def start_generation(self, now_ms: int) -> None:
        """End the join phase: the remaining members form the next generation."""
        self.generation_id += 1
        self.pending_syncs.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.update_subscribed_topics()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    def update_subscribed_topics(self) -> None:
        self.subscribed_topics = self._read_subscribed_topics()

    def _read_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if self.members and self.protocol_name is None:
            return None
        topics: list[str] = []
        try:
            for member in self.members.values():
                assert self.protocol_name is not None
                topics += subscribed_topics(member.metadata(self.protocol_name))
        except DecodeError:
            return None
        return frozenset(topics)


def complete_join(member: ClassicMember, response: JoinGroupResponse) -> bool:
    """Complete the member's pending JoinGroup; False if there is none."""
    reply, member.join_reply = member.join_reply, None
    if reply is None:
        return False
    reply.reply(response)
    return True


def complete_sync(member: ClassicMember, response: SyncGroupResponse) -> bool:
    """Complete the member's pending SyncGroup; False if there is none."""
    reply, member.sync_reply = member.sync_reply, None
    if reply is None:
        return False
    reply.reply(response)
    return True
