"""The ``simple`` assignor: assigns every partition, gives every member a partition, and balances both.

With more members than partitions each member gets one partition and partitions are shared; with fewer, each partition
goes to one member. Assignments are sticky: a member keeps its partitions while it has no more than its share. A
partition need not be revoked before it is assigned to another member, so members do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from millbeck.coordinator.group.share.group import Assignment
from millbeck.kernel.ids import Uuid

Place = tuple[Uuid, int]
Assignor = Callable[
    [Mapping[str, Sequence[Uuid]], Assignment, Mapping[str, Assignment]],
    dict[str, Assignment],
]
"""`assign`, or an assignor of a deployment."""


class _Side:
    """Quotas of one side (members or partitions): the number of counterparts each may keep from the previous
    assignment."""

    def __init__(self, count: int, shares: int) -> None:
        self.floor, self.extra_left = divmod(shares, count) if count else (0, 0)
        self.floor = max(self.floor, 1)

    def may_keep(self, held: int) -> bool:
        return held < self.floor or (held == self.floor and self.extra_left > 0)

    def keeps(self, held: int) -> None:
        if held == self.floor:
            self.extra_left -= 1


def assign(
    subscriptions: Mapping[str, Sequence[Uuid]], partitions: Assignment, current: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Compute each member's partitions of its subscribed topics. ``partitions`` are the assignable ones."""
    places_of = {
        member: [(topic, index) for topic in sorted(topics) for index in partitions.get(topic, ())]
        for member, topics in subscriptions.items()
    }
    members = sorted(member for member, places in places_of.items() if places)
    wanted: dict[Place, list[str]] = {}
    for member in members:
        for place in places_of[member]:
            wanted.setdefault(place, []).append(member)
    given: dict[str, list[Place]] = {member: [] for member in members}
    sharing: dict[Place, int] = dict.fromkeys(sorted(wanted), 0)
    _keep(given, sharing, places_of, current)
    for place, candidates in sorted(wanted.items()):
        if not sharing[place]:
            _give(given, sharing, min(candidates, key=lambda each: (len(given[each]), each)), place)
    for member in members:
        if not given[member]:
            _give(given, sharing, member, min(places_of[member], key=lambda each: (sharing[each], each)))
    result: dict[str, Assignment] = {member: {} for member in subscriptions}
    for member, places in given.items():
        by_topic: dict[Uuid, list[int]] = {}
        for topic, index in sorted(places):
            by_topic.setdefault(topic, []).append(index)
        result[member] = {topic: tuple(found) for topic, found in by_topic.items()}
    return result


def _give(given: dict[str, list[Place]], sharing: dict[Place, int], member: str, place: Place) -> None:
    given[member].append(place)
    sharing[place] += 1


def _keep(
    given: dict[str, list[Place]],
    sharing: dict[Place, int],
    places_of: Mapping[str, list[Place]],
    current: Mapping[str, Assignment],
) -> None:
    shares = max(len(given), len(sharing))
    by_member, by_place = _Side(len(given), shares), _Side(len(sharing), shares)
    for member in given:
        allowed = set(places_of[member])
        for topic, indexes in sorted(current.get(member, {}).items()):
            for index in indexes:
                place = (topic, index)
                if place not in allowed:
                    continue
                if by_member.may_keep(len(given[member])) and by_place.may_keep(sharing[place]):
                    by_member.keeps(len(given[member]))
                    by_place.keeps(sharing[place])
                    _give(given, sharing, member, place)
