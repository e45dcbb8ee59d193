"""Choose the partition of a record if the program does not.

A record with a key goes where Kafka's Java client would send it, so that all producers agree. Records without a key
stick to one partition until about ``batch.size`` bytes have gone there, then move to another at random among those with
a leader: batches fill up, and over time the partitions get their shares. With
``partitioner.adaptive.partitioning.enable`` a partition with a long queue of batches is chosen less often (KIP-794);
with ``partitioner.availability.timeout.ms`` those of a broker that has accepted nothing for so long are not chosen.

``partitioner.class`` names another partitioner: `RoundRobinPartitioner`, or a class of the program's own, by entry
point in the group ``millbeck.partitioners`` or as ``module:class``, which is created without arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millbeck.client.metadata import TopicView
from millbeck.kernel.environment import Randomness
from millbeck.kernel.ids import TopicPartition
from millbeck.records.partitioning import partition_for_key


class Partitioner(Protocol):
    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        """The partition for a record of about this size; called once per record."""


class ProducerLoad(Protocol):
    """The part of the producer that a partitioner may use."""

    def queue_length(self, partition: TopicPartition) -> int:
        """The batches of a partition that wait to be sent."""

    def is_stuck(self, node_id: int) -> bool:
        """Whether a broker has accepted nothing for ``partitioner.availability.timeout.ms``."""


class DefaultPartitioner:
    def __init__(
        self,
        randomness: Randomness,
        *,
        batch_size: int,
        ignores_keys: bool = False,
        load: ProducerLoad | None = None,
    ) -> None:
        """With ``load`` the partitioner is adaptive."""
        self._randomness = randomness
        self._batch_size = batch_size
        self._ignores_keys = ignores_keys
        self._load = load
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
        candidates = _with_leader(topic)
        load = self._load
        if load is None:
            candidates = [number for number in candidates if number != before] or [before]
            return candidates[self._randomness.below(len(candidates))]
        usable = [number for number in candidates if not load.is_stuck(topic.partitions[number].leader_id)]
        candidates = usable or candidates
        lengths = [load.queue_length(TopicPartition(topic.name, number)) for number in candidates]
        if min(lengths) == max(lengths):
            # All queues are equally long: choose a partition other than the last one, so that even few
            # records are spread.
            candidates = [number for number in candidates if number != before] or [before]
            return candidates[self._randomness.below(len(candidates))]
        return self._weighted(candidates, lengths)

    def _weighted(self, candidates: list[int], lengths: list[int]) -> int:
        """Choose one at random; its weight is the difference between the longest queue and its own, plus one."""
        longest = max(lengths) + 1
        drawn = self._randomness.below(sum(longest - length for length in lengths))
        for number, length in zip(candidates, lengths, strict=True):
            drawn -= longest - length
            if drawn < 0:
                return number
        raise AssertionError("the weights do not add up to their sum")


class RoundRobinPartitioner:
    """Assigns each record to the next partition with a leader, regardless of its key."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        count = self._counts.get(topic.name, -1) + 1
        self._counts[topic.name] = count
        candidates = _with_leader(topic)
        return candidates[count % len(candidates)]


BY_NAME: dict[str, Callable[[], Partitioner]] = {
    "roundrobin": RoundRobinPartitioner,
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": RoundRobinPartitioner,
}


def _with_leader(topic: TopicView) -> list[int]:
    """The partitions that have a leader, or all if none has."""
    return [number for number, view in topic.partitions.items() if view.leader_id >= 0] or list(topic.partitions)
