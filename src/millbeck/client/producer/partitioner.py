"""Choose the partition of a record if the program does not.

A record with a key goes where Kafka's Java client would send it, so that all producers agree. Records without a key
stick to one partition until about ``batch.size`` bytes have gone there, then move to another, chosen at random among
those with a leader: batches fill up, and over time the partitions get equal shares.
"""

from __future__ import annotations

from typing import Protocol

from millbeck.client.metadata import TopicView
from millbeck.kernel.environment import Randomness
from millbeck.records.partitioning import partition_for_key


class Partitioner(Protocol):
    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        """The partition for a record of about this size; called once per record."""


class DefaultPartitioner:
    def __init__(self, randomness: Randomness, *, batch_size: int, ignores_keys: bool = False) -> None:
        self._randomness = randomness
        self._batch_size = batch_size
        self._ignores_keys = ignores_keys
        self._sticky: dict[str, tuple[int, int]] = {}
        """The current sticky partition by topic, and the bytes sent to it."""

    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        if key is not None and not self._ignores_keys:
            return partition_for_key(key, topic.partition_count)
        chosen, sent_bytes = self._sticky.get(topic.name, (-1, 0))
        if chosen not in topic.partitions or sent_bytes >= self._batch_size:
            chosen, sent_bytes = self._choose(topic, chosen), 0
        self._sticky[topic.name] = (chosen, sent_bytes + size_bytes)
        return chosen

    def _choose(self, topic: TopicView, before: int) -> int:
        led = [number for number, view in topic.partitions.items() if view.leader_id >= 0]
        candidates = [number for number in led or topic.partitions if number != before] or [before]
        return candidates[self._randomness.below(len(candidates))]
