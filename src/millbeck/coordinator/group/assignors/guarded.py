"""Assignors of a deployment: what they return is checked before it becomes a target.

An error of theirs, or an assignment that cannot be, fails the operation that asked for it and changes nothing: the
member gets UNKNOWN_SERVER_ERROR, and the group keeps the target that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from millbeck.coordinator.group.assignors.specification import MemberSpecification, Partitions, Topics
from millbeck.kernel.errors import UnknownServerError
from millbeck.kernel.ids import Uuid, uuid_text


class ConsumerGroupAssignor(Protocol):
    def assign(self, members: Sequence[MemberSpecification], topics: Topics) -> Mapping[str, Partitions]:
        """Partitions by topic, by member; a partition has one member at most. Must be a function of its arguments
        alone: it may be called on another thread."""


class ShareGroupAssignor(Protocol):
    def assign(
        self,
        subscriptions: Mapping[str, Sequence[Uuid]],
        partitions: Partitions,
        current: Mapping[str, Partitions],
    ) -> Mapping[str, Partitions]:
        """Partitions by topic, by member; several members may share a partition."""


class GuardedAssignor:
    """Calls an assignor of a consumer group, and checks its assignment."""

    def __init__(self, name: str, assignor: ConsumerGroupAssignor) -> None:
        self._name = name
        self._assignor = assignor

    def __call__(self, members: Sequence[MemberSpecification], topics: Topics) -> dict[str, Partitions]:
        found = _asked(self._name, lambda: self._assignor.assign(members, topics))
        holders: dict[tuple[Uuid, int], str] = {}
        assignment: dict[str, Partitions] = {}
        for member in members:
            allowed = {topic: topics[topic].partition_count for topic in member.topics}
            given = _numbers(self._name, member.member_id, found)
            for topic, numbers in given.items():
                for number in numbers:
                    if not 0 <= number < allowed.get(topic, 0):
                        raise _wrong(self._name, member.member_id, topic, number, "it has not subscribed to")
                    other = holders.setdefault((topic, number), member.member_id)
                    if other != member.member_id:
                        raise _wrong(self._name, member.member_id, topic, number, f"{other} has")
            assignment[member.member_id] = given
        return assignment


class GuardedShareAssignor:
    """Calls an assignor of a share group, and checks its assignment."""

    def __init__(self, name: str, assignor: ShareGroupAssignor) -> None:
        self._name = name
        self._assignor = assignor

    def __call__(
        self,
        subscriptions: Mapping[str, Sequence[Uuid]],
        partitions: Partitions,
        current: Mapping[str, Partitions],
    ) -> dict[str, Partitions]:
        found = _asked(self._name, lambda: self._assignor.assign(subscriptions, partitions, current))
        assignment: dict[str, Partitions] = {}
        for member_id, subscribed in subscriptions.items():
            given = _numbers(self._name, member_id, found)
            for topic, numbers in given.items():
                there = partitions.get(topic, ()) if topic in subscribed else ()
                for number in numbers:
                    if number not in there:
                        raise _wrong(self._name, member_id, topic, number, "it has not subscribed to")
            assignment[member_id] = given
        return assignment


def _asked(name: str, ask: Callable[[], Any]) -> Mapping[str, Any]:
    try:
        found = ask()
    except Exception as error:
        raise UnknownServerError(f"the assignor {name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise UnknownServerError(f"the assignor {name} returned {type(found).__name__}, not a mapping by member")
    return found


def _numbers(name: str, member_id: str, found: Mapping[str, Any]) -> Partitions:
    """A member's partitions by topic, ascending and each once."""
    try:
        return {
            topic: numbers
            for topic, given in sorted(found.get(member_id, {}).items())
            if (numbers := tuple(sorted({int(number) for number in given})))
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise UnknownServerError(
            f"the assignor {name} returned something else than partition numbers by topic for {member_id}: {error}"
        ) from error


def _wrong(name: str, member_id: str, topic: Uuid, number: int, why: str) -> UnknownServerError:
    return UnknownServerError(
        f"the assignor {name} gave {member_id} partition {number} of topic {uuid_text(topic)}, which {why}"
    )
