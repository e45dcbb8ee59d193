"""Spread keys that are too frequent for one partition, and put their results together again.

    producer = Producer(settings, partitioner=SaltedPartitioner(["customer-7"], spread=8))

Records of a hot key go to ``spread`` partitions in turn instead of one; all others go where Kafka's clients send them.
Order within a hot key is lost. `HotKeys` finds the hot keys by itself.

Whoever aggregates by key then has a part of a hot key's result in each of these partitions. The second half is a topic
of partial results, keyed by key, whose reader puts the parts together:

    totals = PartialResults(sum)
    total = totals.update(key, part, value)      # part: the partition whose consumer has counted
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

from millbeck.client.metadata import TopicView
from millbeck.client.producer.partitioner import RoundRobinPartitioner
from millbeck.kernel.ids import TopicPartition
from millbeck.records.partitioning import partition_for_key

A = TypeVar("A")
B = TypeVar("B")

_TRACKED_MAX: Final = 1000


class HotKeys:
    """Finds keys that make up more than a share of the records, by counting in bounded memory (Space-Saving)."""

    def __init__(self, *, share: float = 0.05, window: int = 10_000) -> None:
        """A key is hot when more than ``share`` of the last one to two ``window`` records had it."""
        if not 0 < share < 1:
            raise ValueError("share is between 0 and 1")
        if window < 1:
            raise ValueError("window is at least 1")
        self._share = share
        self._window = window
        self._tracked_max = min(_TRACKED_MAX, max(16, round(4 / share)))
        self._counts: dict[bytes, int] = {}
        self._count = 0
        self._hot: frozenset[bytes] = frozenset()

    def __contains__(self, key: object) -> bool:
        return key in self._hot

    def seen(self, key: bytes) -> None:
        counts = self._counts
        if key in counts:
            counts[key] += 1
        elif len(counts) < self._tracked_max:
            counts[key] = 1
        else:
            # The new key takes over the count of the rarest one, so no frequent key is ever missed.
            rarest = min(counts, key=counts.__getitem__)
            counts[key] = counts.pop(rarest) + 1
        self._count += 1
        if self._count >= self._window:
            limit = self._share * self._count
            self._hot = frozenset(key for key, count in counts.items() if count > limit)
            self._counts = {key: count // 2 for key, count in counts.items() if count > 1}
            self._count //= 2


class SaltedPartitioner:
    """A partitioner that sends records of hot keys to several partitions in turn."""

    def __init__(self, hot_keys: Iterable[str | bytes] | HotKeys | None = None, *, spread: int = 8) -> None:
        """``hot_keys`` are the keys, or what finds them; without, a `HotKeys` with its defaults."""
        if spread < 1:
            raise ValueError("spread is at least 1")
        self._spread = spread
        self._detector = HotKeys() if hot_keys is None else hot_keys if isinstance(hot_keys, HotKeys) else None
        self._hot: frozenset[bytes] | HotKeys
        if self._detector is not None:
            self._hot = self._detector
        else:
            named = () if hot_keys is None or isinstance(hot_keys, HotKeys) else hot_keys
            self._hot = frozenset(key.encode() if isinstance(key, str) else key for key in named)
        self._turns: dict[tuple[str, bytes], int] = {}
        self._without_key = RoundRobinPartitioner()

    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        if key is None:
            return self._without_key.partition(topic, key, size_bytes)
        if self._detector is not None:
            self._detector.seen(key)
        home = partition_for_key(key, topic.partition_count)
        if key not in self._hot:
            self._turns.pop((topic.name, key), None)
            return home
        turn = self._turns.get((topic.name, key), 0)
        self._turns[topic.name, key] = (turn + 1) % self._spread
        return (home + turn % topic.partition_count) % topic.partition_count

    def partitions_of(self, topic: TopicView, key: bytes) -> list[int]:
        """The partitions that a hot key is spread over."""
        count = topic.partition_count
        home = partition_for_key(key, count)
        return [(home + turn) % count for turn in range(min(self._spread, count))]


class PartialResults(Generic[A, B]):
    """The newest partial result of every part of a key, and the result of all its parts."""

    def __init__(self, merge: Callable[[Iterable[A]], B]) -> None:
        """``merge`` makes one result of all partial results of a key: ``sum``, ``max``, a function."""
        self._merge = merge
        self._parts: dict[Hashable, dict[Hashable, A]] = {}

    def update(self, key: Hashable, part: Hashable, partial: A) -> B:
        """Replace the partial result of one part; returns the result of the key."""
        parts = self._parts.setdefault(key, {})
        parts[part] = partial
        return self._merge(parts.values())

    def result(self, key: Hashable) -> B:
        """The result of a key; that of no parts if it is not known."""
        return self._merge(self._parts.get(key, {}).values())

    def forget(self, key: Hashable) -> None:
        self._parts.pop(key, None)


def part_of(partition: TopicPartition) -> str:
    """The name of a part, for the key or a header of a record with a partial result."""
    return f"{partition.topic}-{partition.partition}"
