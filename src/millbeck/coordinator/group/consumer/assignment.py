"""An assignment: partitions by topic id, both ascending. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from millbeck.kernel.ids import Uuid

Assignment = Mapping[Uuid, tuple[int, ...]]

NOTHING: Assignment = {}


class TopicPartitionsLike(Protocol):
    """Structural type of topic partitions in requests, responses and records."""

    topic_id: bytes
    partitions: list[int]


def from_wire(topics: Iterable[TopicPartitionsLike]) -> Assignment:
    return gathered((topic.topic_id, partition) for topic in topics for partition in topic.partitions)


def gathered(places: Iterable[tuple[Uuid, int]]) -> Assignment:
    """Build an assignment from (topic id, partition) pairs; duplicates count once."""
    found: dict[Uuid, set[int]] = {}
    for topic_id, partition in places:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: tuple(sorted(found[topic_id])) for topic_id in sorted(found)}


def places_of(assignment: Assignment) -> Iterator[tuple[Uuid, int]]:
    for topic_id, partitions in assignment.items():
        for partition in partitions:
            yield topic_id, partition


def count_of(assignment: Assignment) -> int:
    return sum(len(partitions) for partitions in assignment.values())


def shared(one: Assignment, other: Assignment) -> Assignment:
    """Intersection of two assignments."""
    found: dict[Uuid, tuple[int, ...]] = {}
    for topic_id, partitions in one.items():
        others = frozenset(other.get(topic_id, ()))
        kept = tuple(partition for partition in partitions if partition in others)
        if kept:
            found[topic_id] = kept
    return found


def without(one: Assignment, other: Assignment) -> Assignment:
    """The partitions of ``one`` that are not in ``other``."""
    found: dict[Uuid, tuple[int, ...]] = {}
    for topic_id, partitions in one.items():
        others = frozenset(other.get(topic_id, ()))
        kept = tuple(partition for partition in partitions if partition not in others)
        if kept:
            found[topic_id] = kept
    return found


def together(one: Assignment, other: Assignment) -> Assignment:
    return gathered([*places_of(one), *places_of(other)])


def is_within(one: Assignment, other: Assignment) -> bool:
    return not without(one, other)


def named(assignment: Assignment, names: Mapping[Uuid, str]) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Partitions by topic name; deleted topics are left out."""
    return [(names[topic_id], partitions) for topic_id, partitions in assignment.items() if topic_id in names]
