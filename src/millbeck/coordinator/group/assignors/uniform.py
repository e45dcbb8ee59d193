"""The ``uniform`` assignor: spreads partitions evenly over members and moves as few of them as possible.

When all members subscribe to the same topics, each member's quota is ``partitions // members``, and the remainder
raises some quotas by one. A member keeps its partitions up to its quota; the others are assigned to members below their
quota, preferring a member in the rack of one of the partition's replicas. When subscriptions differ, members keep their
partitions, each unassigned partition goes to the subscriber with the fewest, and then partitions move from members with
more to members with fewer until the balance no longer improves; the number of these rounds is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millbeck.coordinator.group.assignors.specification import MemberSpecification, Partitions, Topics
from millbeck.kernel.ids import Uuid

Place = tuple[Uuid, int]

BALANCE_ROUNDS_MAX = 16


def assign_uniformly(members: Sequence[MemberSpecification], topics: Topics) -> dict[str, Partitions]:
    if not members:
        return {}
    ordered = sorted(members, key=lambda member: member.member_id)
    work = _Work(ordered, topics)
    if all(member.topics == ordered[0].topics for member in ordered):
        work.assign_alike()
    else:
        work.assign_differently()
    return work.result()


class _Work:
    """The state of one assignment while it is computed."""

    def __init__(self, members: list[MemberSpecification], topics: Topics) -> None:
        self._members = members
        self._topics = topics
        self._held: list[list[Place]] = [[] for _ in members]
        self._owner: dict[Place, int] = {}

    def result(self) -> dict[str, Partitions]:
        assigned: dict[str, Partitions] = {}
        for index, member in enumerate(self._members):
            partitions: dict[Uuid, list[int]] = {}
            for topic_id, partition in sorted(self._held[index]):
                partitions.setdefault(topic_id, []).append(partition)
            assigned[member.member_id] = {topic_id: tuple(each) for topic_id, each in partitions.items()}
        return assigned

    def _give(self, place: Place, index: int) -> None:
        assert place not in self._owner, f"partition {place[1]} is given twice"
        self._owner[place] = index
        self._held[index].append(place)

    def _valid_current(self, member: MemberSpecification) -> Iterator[Place]:
        """The member's current partitions that still exist, that it still subscribes to and that are not assigned
        yet."""
        for topic_id in member.topics:
            count = self._topics[topic_id].partition_count
            for partition in member.current.get(topic_id, ()):
                if partition < count and (topic_id, partition) not in self._owner:
                    yield topic_id, partition

    def _places(self, topic_ids: Sequence[Uuid]) -> Iterator[Place]:
        for topic_id in topic_ids:
            for partition in range(self._topics[topic_id].partition_count):
                yield topic_id, partition

    # All members have the same subscription

    def assign_alike(self) -> None:
        topic_ids = self._members[0].topics
        total = sum(self._topics[topic_id].partition_count for topic_id in topic_ids)
        quota, larger_count = divmod(total, len(self._members))
        surplus: list[tuple[int, Place]] = []
        for index, member in enumerate(self._members):
            kept = list(self._valid_current(member))
            for place in kept[:quota]:
                self._give(place, index)
            if len(kept) > quota:
                surplus.append((index, kept[quota]))
        # A member that owns more than its quota may keep one more, while the remainder lasts.
        quotas = [quota] * len(self._members)
        for index, place in surplus[:larger_count]:
            self._give(place, index)
            quotas[index] += 1
        for index in [index for index in range(len(quotas)) if quotas[index] == quota][
            : larger_count - min(larger_count, len(surplus))
        ]:
            quotas[index] += 1
        free = [place for place in self._places(topic_ids) if place not in self._owner]
        self._fill(free, quotas)

    def _fill(self, free: list[Place], quotas: list[int]) -> None:
        free = self._fill_racks(free, quotas)
        room = [index for index, quota in enumerate(quotas) for _ in range(quota - len(self._held[index]))]
        assert len(room) == len(free), f"{len(free)} partitions for {len(room)} places"
        # Spread adjacent partitions over different members: load is rarely even across a topic's partitions.
        room.sort(key=lambda index: len(self._held[index]))
        taken = [0] * len(quotas)
        by_round: list[tuple[int, int]] = []
        for index in room:
            by_round.append((len(self._held[index]) + taken[index], index))
            taken[index] += 1
        for place, (_, index) in zip(free, sorted(by_round), strict=True):
            self._give(place, index)

    def _fill_racks(self, free: list[Place], quotas: list[int]) -> list[Place]:
        """Assign partitions to members in the same rack as a replica; return the partitions that are left."""
        by_rack: dict[str, list[int]] = {}
        for index, member in enumerate(self._members):
            if member.rack_id is not None:
                by_rack.setdefault(member.rack_id, []).append(index)
        if len(by_rack) < 2:
            return free
        rest: list[Place] = []
        for place in free:
            topic_id, partition = place
            near = [
                index
                for rack in self._topics[topic_id].racks_of(partition)
                for index in by_rack.get(rack, ())
                if len(self._held[index]) < quotas[index]
            ]
            if near:
                self._give(place, min(near, key=lambda index: len(self._held[index])))
            else:
                rest.append(place)
        return rest

    # Members have different subscriptions

    def assign_differently(self) -> None:
        subscribers: dict[Uuid, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in member.topics:
                subscribers.setdefault(topic_id, []).append(index)
        for index, member in enumerate(self._members):
            for place in list(self._valid_current(member)):
                self._give(place, index)
        # Assign topics with the fewest subscribers first: later topics can compensate for the imbalance.
        topic_ids = sorted(
            subscribers,
            key=lambda topic_id: (-self._topics[topic_id].partition_count / len(subscribers[topic_id]), topic_id),
        )
        for place in self._places(topic_ids):
            if place not in self._owner:
                self._give(place, min(subscribers[place[0]], key=lambda index: (len(self._held[index]), index)))
        for _ in range(BALANCE_ROUNDS_MAX):
            if not sum(self._balance(topic_id, subscribers[topic_id]) for topic_id in topic_ids):
                break

    def _balance(self, topic_id: Uuid, indexes: list[int]) -> bool:
        """Move this topic's partitions from the members with most to the members with fewest; return whether any
        moved."""
        has_moved = False
        for _ in range(self._topics[topic_id].partition_count):
            givers = [index for index in indexes if any(place[0] == topic_id for place in self._held[index])]
            giver = max(givers, key=lambda index: (len(self._held[index]), -index))
            taker = min(indexes, key=lambda index: (len(self._held[index]), index))
            if len(self._held[giver]) - len(self._held[taker]) <= 1:
                break
            place = max(place for place in self._held[giver] if place[0] == topic_id)
            self._held[giver].remove(place)
            del self._owner[place]
            self._give(place, taker)
            has_moved = True
        return has_moved
