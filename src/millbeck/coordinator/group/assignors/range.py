"""The ``range`` assignor: each topic's partitions, in order, cut into one piece for each of its subscribers.

Topics with the same subscribers are cut in the same order of members, so that partition 3 of two topics of equal size
is one member's: joins by key stay local. Members keep the order of the pieces they had; new ones come after them, those
with an instance id first. When one leaves, the others close up and keep most of what they had.
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
        for topic_id in topic_ids:
            _cut(order, topic_id, topics[topic_id].partition_count, assigned)
    return dict(assigned)


def _in_order(members: list[MemberSpecification], topic_ids: list[Uuid]) -> list[MemberSpecification]:
    """By where their pieces began; those without one after them."""

    def place(member: MemberSpecification) -> tuple[bool, int, bool, str, str]:
        begins = [member.current[topic_id][0] for topic_id in topic_ids if member.current.get(topic_id)]
        # Smaller topics run out of partitions: a member's piece of the largest tells its place best.
        begin = max(begins, default=0)
        return not begins, begin, member.instance_id is None, member.instance_id or "", member.member_id

    return sorted(members, key=place)


def _cut(
    order: list[MemberSpecification],
    topic_id: Uuid,
    partition_count: int,
    assigned: dict[str, dict[Uuid, tuple[int, ...]]],
) -> None:
    size, larger_count = divmod(partition_count, len(order))
    begin = 0
    for index, member in enumerate(order):
        end = begin + size + (index < larger_count)
        if end > begin:
            assigned[member.member_id][topic_id] = tuple(range(begin, end))
        begin = end
