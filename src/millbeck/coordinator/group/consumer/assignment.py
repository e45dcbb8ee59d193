"""An assignment: partitions by topic id, both ascending. Immutable.

The operations on two assignments take other keys too: the tasks of a streams group are partitions by subtopology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from millbeck.kernel.ids import Uuid

Assignment = Mapping[Uuid, tuple[int, ...]]
K = TypeVar("K", bound=bytes | str)
"""A topic id, or a subtopology id in streams groups."""

NOTHING: Assignment = {}


class TopicPartitionsLike(Protocol):
    """Structural type of topic partitions in requests, responses and records."""

    topic_id: bytes
    partitions: list[int]


def from_wire(topics: Iterable[TopicPartitionsLike]) -> Assignment:
    return gathered((topic.topic_id, partition) for topic in topics for partition in topic.partitions)


def gathered(places: Iterable[tuple[K, int]]) -> Mapping[K, tuple[int, ...]]:
    """Build an assignment from (key, partition) pairs; duplicates count once."""
    found: dict[K, set[int]] = {}
    for key, partition in places:
        found.setdefault(key, set()).add(partition)
    return {key: tuple(sorted(found[key])) for key in sorted(found)}


def places_of(assignment: Mapping[K, tuple[int, ...]]) -> Iterator[tuple[K, int]]:
    for key, partitions in assignment.items():
        for partition in partitions:
            yield key, partition


def count_of(assignment: Mapping[K, tuple[int, ...]]) -> int:
    return sum(len(partitions) for partitions in assignment.values())


def shared(one: Mapping[K, tuple[int, ...]], other: Mapping[K, tuple[int, ...]]) -> Mapping[K, tuple[int, ...]]:
    """Intersection of two assignments."""
    found: dict[K, tuple[int, ...]] = {}
    for key, partitions in one.items():
        others = frozenset(other.get(key, ()))
        kept = tuple(partition for partition in partitions if partition in others)
        if kept:
            found[key] = kept
    return found


def without(one: Mapping[K, tuple[int, ...]], other: Mapping[K, tuple[int, ...]]) -> Mapping[K, tuple[int, ...]]:
    """The partitions of ``one`` that are not in ``other``."""
    found: dict[K, tuple[int, ...]] = {}
    for key, partitions in one.items():
        others = frozenset(other.get(key, ()))
        kept = tuple(partition for partition in partitions if partition not in others)
        if kept:
            found[key] = kept
    return found


def together(one: Mapping[K, tuple[int, ...]], other: Mapping[K, tuple[int, ...]]) -> Mapping[K, tuple[int, ...]]:
    return gathered([*places_of(one), *places_of(other)])


def is_within(one: Mapping[K, tuple[int, ...]], other: Mapping[K, tuple[int, ...]]) -> bool:
    return not without(one, other)


def named(assignment: Assignment, names: Mapping[Uuid, str]) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Partitions by topic name; deleted topics are left out."""
    return [(names[topic_id], partitions) for topic_id, partitions in assignment.items() if topic_id in names]
