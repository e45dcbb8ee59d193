"""The ``range`` assignor: splits each topic's partitions into contiguous ranges, one per subscribed member.

Topics with the same subscribers are split in the same order of members, so that partition 3 of two topics of equal size
goes to the same member: joins by key stay local. Members keep the order of their current ranges; new members are placed
after them, static members (those with an instance id) first. When a member leaves, the ranges of the others shift and
they keep most of their partitions. When members report a rack, each new member is given the range with the most
replicas in its rack; the ranges themselves do not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.coordinator.group.assignors.specification import MemberSpecification, Partitions, Topics
from millbeck.kernel.ids import Uuid


def assign_ranges(members: Sequence[MemberSpecification], topics: Topics) -> dict[str, Partitions]:
    assigned: dict[str, dict[Uuid, tuple[int, ...]]] = {member.member_id: {} for member in members}
    subscribers: dict[Uuid, list[int]] = {topic_id: [] for topic_id in sorted(topics)}
    for index, member in enumerate(members):
        for topic_id in member.topics:
            subscribers[topic_id].append(index)
    topics_by_subscribers: dict[tuple[int, ...], list[Uuid]] = {}
    for topic_id, indexes in subscribers.items():
        if indexes:
            topics_by_subscribers.setdefault(tuple(indexes), []).append(topic_id)
    for together, topic_ids in topics_by_subscribers.items():
        order = _in_order([members[index] for index in together], topic_ids)
        order = _near(order, topic_ids, topics)
        for topic_id in topic_ids:
            _cut(order, topic_id, topics[topic_id].partition_count, assigned)
    return dict(assigned)


def _in_order(members: list[MemberSpecification], topic_ids: list[Uuid]) -> list[MemberSpecification]:
    """Sort members by the start of their current range; members without one come last."""

    def place(member: MemberSpecification) -> tuple[bool, int, bool, str, str]:
        begins = [member.current[topic_id][0] for topic_id in topic_ids if member.current.get(topic_id)]
        # Topics with fewer partitions than members leave some members without a range, so the start in the largest
        # topic is the best measure of a member's position.
        begin = max(begins, default=0)
        return not begins, begin, member.instance_id is None, member.instance_id or "", member.member_id

    return sorted(members, key=place)


def _near(order: list[MemberSpecification], topic_ids: list[Uuid], topics: Topics) -> list[MemberSpecification]:
    """Reorder the members that have no range yet so that each gets a range with replicas in its rack."""
    old_count = sum(any(member.current.get(topic_id) for topic_id in topic_ids) for member in order)
    by_rack: dict[str | None, list[MemberSpecification]] = {}
    for member in order[old_count:]:
        by_rack.setdefault(member.rack_id, []).append(member)
    if len(by_rack) < 2:
        return order
    places = {member.member_id: index for index, member in enumerate(order)}
    near = order[:old_count]
    for index in range(old_count, len(order)):
        counts = _local_counts(index, len(order), topic_ids, topics)
        # Between racks with equally many local replicas, the member that comes first in the order wins.
        rack = min(by_rack, key=lambda rack: (-counts.get(rack or "", 0), places[by_rack[rack][0].member_id]))
        near.append(by_rack[rack].pop(0))
        if not by_rack[rack]:
            del by_rack[rack]
    return near


def _local_counts(index: int, member_count: int, topic_ids: list[Uuid], topics: Topics) -> dict[str, int]:
    """Count the replicas per rack of one member's range over all these topics."""
    counts: dict[str, int] = {}
    for topic_id in topic_ids:
        topic = topics[topic_id]
        for partition in range(*_piece(index, member_count, topic.partition_count)):
            for rack in topic.racks_of(partition):
                counts[rack] = counts.get(rack, 0) + 1
    return counts


def _piece(index: int, member_count: int, partition_count: int) -> tuple[int, int]:
    """The start and end (exclusive) of the range at ``index``."""
    size, larger_count = divmod(partition_count, member_count)
    begin = index * size + min(index, larger_count)
    return begin, begin + size + (index < larger_count)


def _cut(
    order: list[MemberSpecification],
    topic_id: Uuid,
    partition_count: int,
    assigned: dict[str, dict[Uuid, tuple[int, ...]]],
) -> None:
    for index, member in enumerate(order):
        begin, end = _piece(index, len(order), partition_count)
        if end > begin:
            assigned[member.member_id][topic_id] = tuple(range(begin, end))
