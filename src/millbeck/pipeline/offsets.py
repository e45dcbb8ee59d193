"""The offsets of a query: an offset per partition, and the id of each topic. Pure.

In a checkpoint they are JSON as in Spark's Kafka source, plus the topic ids under a key that is not a valid topic
name:

    {"orders": {"0": 23, "1": 345}, "$topic_ids": {"orders": "4VP6zvJmTuKV-8PxZ0Ht9g"}}

A topic that is deleted and created again has another id, so offsets of the old topic are never used for the new one. A
checkpoint without ids (of another broker, or edited by hand) is not checked.

A source that has had no records for ``idleAfter`` has the event time of its last marker row under ``$idle``, in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from millbeck.kernel.ids import TopicPartition, Uuid, parse_uuid, uuid_text
from millbeck.pipeline.errors import PipelineError

IDS_KEY: Final = "$topic_ids"
IDLE_KEY: Final = "$idle"
ABOUT_KEYS: Final = (IDS_KEY, IDLE_KEY)


@dataclass(frozen=True, slots=True)
class Offsets:
    by_partition: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, Uuid]
    idle_ms: int | None = None
    """The event time of the last marker row, if there was one."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(sorted(self.by_partition))

    def __len__(self) -> int:
        return len(self.by_partition)

    def get(self, partition: TopicPartition) -> int | None:
        return self.by_partition.get(partition)

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self.by_partition})

    def same_topic(self, topic: str, topic_id: Uuid | None) -> bool:
        """Whether the offsets of this topic belong to the given topic id, as far as it is known."""
        known = self.topic_ids.get(topic)
        return known is None or topic_id is None or known == topic_id

    def to_json(self) -> dict[str, Any]:
        """The offsets as JSON, sorted so that equal offsets give equal text, which Spark compares."""
        found: dict[str, Any] = {}
        for partition in self:
            found.setdefault(partition.topic, {})[str(partition.partition)] = self.by_partition[partition]
        if self.topic_ids:
            found[IDS_KEY] = {topic: uuid_text(self.topic_ids[topic]) for topic in sorted(self.topic_ids)}
        if self.idle_ms is not None:
            found[IDLE_KEY] = self.idle_ms
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Parse offsets; raises `PipelineError` for JSON that is not a checkpoint of this source."""
        try:
            ids = {topic: parse_uuid(text) for topic, text in found.get(IDS_KEY, {}).items()}
            offsets = {
                TopicPartition(topic, int(partition)): int(offset)
                for topic, partitions in found.items()
                if topic not in ABOUT_KEYS
                for partition, offset in partitions.items()
            }
            idle_ms = None if found.get(IDLE_KEY) is None else int(found[IDLE_KEY])
        except (AttributeError, TypeError, ValueError) as error:
            raise PipelineError(f"the checkpoint holds {found!r}, which are not offsets of this source") from error
        return cls(offsets, ids, idle_ms)
