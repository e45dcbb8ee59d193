"""Partition assignors of classic groups, run by the group leader. Pure and deterministic.

Members are ordered by instance id, then by member id, so that the result does not depend on the order of joining. A
cooperative assignor never assigns a partition to a new owner before the old one has revoked it: such a partition is
left unassigned, its owner revokes it, and the group rebalances again.

``partition.assignment.strategy`` also names assignors of your own, by entry point in the group ``millbeck.assignors``
or as ``module:class``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final, Protocol

from millbeck.client.classic_member import NO_GENERATION
from millbeck.client.consumer.sticky import balanced
from millbeck.client.plugins import plugin
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import TopicPartition

Assignment = dict[str, list[TopicPartition]]

SETTING: Final = "partition.assignment.strategy"

_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedMember:
    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    """The generation in which it owned these partitions."""
    user_data: bytes | None = field(default=None, repr=False)
    rack: str | None = None
    """Its ``client.rack``; the built-in assignors do not use it."""


class Assignor(Protocol):
    """An assignor; one of your own is created without arguments, and all members of a group need it.

    Its results go to all members as they are: a partition that two members get is read twice.
    """

    name: str
    """Its protocol name, which members of the group agree on."""
    is_cooperative: bool

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """The user data of a member's subscription."""

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        """Partitions by member id; includes every member."""


def in_order(members: Sequence[SubscribedMember]) -> list[SubscribedMember]:
    return sorted(members, key=lambda member: (member.instance_id is None, member.instance_id or "", member.member_id))


class RangeAssignor:
    """Assigns consecutive ranges of each topic's partitions, of equal size; the first members may get one more."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = in_order(members)
        for topic, count in sorted(partition_counts.items()):
            subscribed = [member for member in ordered if topic in member.topics]
            if not subscribed:
                continue
            share, extra = divmod(count, len(subscribed))
            start = 0
            for index, member in enumerate(subscribed):
                stop = start + share + (index < extra)
                assignment[member.member_id] += [TopicPartition(topic, number) for number in range(start, stop)]
                start = stop
        return assignment


class RoundRobinAssignor:
    """Assigns the partitions of all topics in order, round robin; members without a subscription to the topic are
    skipped."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = in_order(members)
        turn = 0
        for topic, count in sorted(partition_counts.items()):
            if not any(topic in member.topics for member in ordered):
                continue
            for number in range(count):
                while topic not in ordered[turn % len(ordered)].topics:
                    turn += 1
                assignment[ordered[turn % len(ordered)].member_id].append(TopicPartition(topic, number))
                turn += 1
        return assignment


class StickyAssignor:
    """Balances partitions as evenly as possible, then with as few moves as possible. Members report owned partitions in
    their user data."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(owned):
            topics.setdefault(topic, []).append(number)
        parts = [_INT32.pack(len(topics))]
        for topic, numbers in topics.items():
            name = topic.encode()
            parts += (_INT16.pack(len(name)), name, _INT32.pack(len(numbers)), *map(_INT32.pack, numbers))
        parts.append(_INT32.pack(generation))
        return b"".join(parts)

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        ordered = in_order(members)
        claims = {member.member_id: _previous_of(member.user_data) for member in ordered}
        return balanced(
            {member.member_id: member.topics for member in ordered},
            {member_id: owned for member_id, (owned, _) in claims.items()},
            {member_id: generation for member_id, (_, generation) in claims.items()},
            partition_counts,
        )


class CooperativeStickyAssignor:
    """Like `StickyAssignor`, but a partition moves in two rebalances: it is revoked in the first and assigned in the
    second."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return _INT32.pack(generation)

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        ordered = in_order(members)
        generations = {member.member_id: _generation_of(member) for member in ordered}
        wanted = balanced(
            {member.member_id: member.topics for member in ordered},
            {member.member_id: list(member.owned) for member in ordered},
            generations,
            partition_counts,
        )
        newest = max(generations.values(), default=NO_GENERATION)
        holders = {
            partition: member.member_id
            for member in ordered
            if generations[member.member_id] == newest
            for partition in member.owned
        }
        return {
            member_id: [partition for partition in partitions if holders.get(partition, member_id) == member_id]
            for member_id, partitions in wanted.items()
        }


def _generation_of(member: SubscribedMember) -> int:
    """The generation of a member: newer clients send it in the subscription, older ones in the user data."""
    if member.generation >= 0:
        return member.generation
    if member.user_data is not None and len(member.user_data) >= _INT32.size:
        found: int = _INT32.unpack_from(member.user_data)[0]
        return found
    return NO_GENERATION


def _previous_of(user_data: bytes | None) -> tuple[list[TopicPartition], int]:
    """Owned partitions and generation from a sticky member's user data; nothing if it is missing or malformed."""
    if not user_data:
        return [], NO_GENERATION
    owned: list[TopicPartition] = []
    try:
        (topic_count,) = _INT32.unpack_from(user_data)
        place = _INT32.size
        for _ in range(topic_count):
            (size,) = _INT16.unpack_from(user_data, place)
            place += _INT16.size
            topic = user_data[place : place + size].decode()
            place += size
            (count,) = _INT32.unpack_from(user_data, place)
            place += _INT32.size
            if count * _INT32.size > len(user_data) - place:
                return [], NO_GENERATION
            for _ in range(count):
                owned.append(TopicPartition(topic, _INT32.unpack_from(user_data, place)[0]))
                place += _INT32.size
        has_generation = len(user_data) - place >= _INT32.size
        return owned, _INT32.unpack_from(user_data, place)[0] if has_generation else NO_GENERATION
    except (StructError, UnicodeDecodeError):
        return [], NO_GENERATION


_ASSIGNORS: Final[Mapping[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}


def assignors_named(names: Iterable[str]) -> dict[str, Assignor]:
    """The assignors of ``partition.assignment.strategy`` by protocol name, in order; raises `InvalidConfig`."""
    made = [_ASSIGNORS.get(name) or _own(name) for name in names]
    return {assignor.name: assignor for assignor in made}


def _own(name: str) -> Assignor:
    try:
        assignor: Assignor = plugin(SETTING, name, "millbeck.assignors")()
    except InvalidConfig as error:
        raise InvalidConfig(f"{error.message}; built in: {', '.join(_ASSIGNORS)}") from error
    wrong = next((each for each in ("user_data", "assign") if not callable(getattr(assignor, each, None))), None)
    if wrong is not None:
        raise InvalidConfig(f"{SETTING}: {name} has no method {wrong}")
    if not isinstance(getattr(assignor, "name", None), str) or not isinstance(
        getattr(assignor, "is_cooperative", None), bool
    ):
        raise InvalidConfig(f"{SETTING}: {name} needs the attributes name (its protocol name) and is_cooperative")
    return assignor
