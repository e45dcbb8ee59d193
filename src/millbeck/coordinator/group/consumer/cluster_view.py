"""Cluster metadata that groups need: topics, their partition counts and the racks of their replicas.

One view is shared by all shards of a node. The driver passes each new metadata image to it; ``version`` increases when
topics, partitions or racks change, and a group compares it with the version it last used when a member sends a
heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from millbeck.kernel.ids import Uuid
from millbeck.metadata.image import MetadataImage

_HASH_SIZE = 8


class TopicShape(NamedTuple):
    topic_id: Uuid
    name: str
    partition_count: int
    racks: tuple[tuple[str, ...], ...]
    """Racks of each partition's replicas, ascending; empty when no broker has a rack."""


class GroupSettings(NamedTuple):
    """Dynamic configuration of one consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class StreamsSettings(NamedTuple):
    """Dynamic configuration of one streams group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    assignment_interval_ms: int = 1000
    initial_rebalance_delay_ms: int = 3000
    standby_count: int = 0


class ClusterView:
    def __init__(self, settings: GroupSettings, streams: StreamsSettings | None = None) -> None:
        self.version = 0
        self._image = MetadataImage()
        self._default_settings = settings
        self._settings: Mapping[str, GroupSettings] = {}
        self._default_streams = streams or StreamsSettings()
        self._streams: Mapping[str, StreamsSettings] = {}
        self._shapes: dict[str, TopicShape | None] = {}
        self._hashes: dict[str, bytes] = {}

    def publish(self, image: MetadataImage) -> None:
        """Switch to a new metadata image in which topics, partitions or brokers have changed."""
        self._image = image
        self.version += 1
        self._shapes.clear()
        self._hashes.clear()

    def publish_settings(
        self, settings: Mapping[str, GroupSettings], streams: Mapping[str, StreamsSettings] | None = None
    ) -> None:
        """Replace the dynamic configurations, by group id."""
        self._settings = settings
        self._streams = streams or {}

    def settings_of(self, group_id: str) -> GroupSettings:
        return self._settings.get(group_id, self._default_settings)

    def streams_settings_of(self, group_id: str) -> StreamsSettings:
        return self._streams.get(group_id, self._default_streams)

    def topic_names(self) -> list[str]:
        return list(self._image.topics.by_name)

    def name_of(self, topic_id: Uuid) -> str | None:
        topic = self._image.topics.with_id(topic_id)
        return None if topic is None else topic.name

    def shape(self, name: str) -> TopicShape | None:
        """Return the topic, or None if there is no topic of this name."""
        if name not in self._shapes:
            self._shapes[name] = self._read_shape(name)
        return self._shapes[name]

    def _read_shape(self, name: str) -> TopicShape | None:
        topic = self._image.topics.named(name)
        if topic is None:
            return None
        racks: list[tuple[str, ...]] = []
        for index in sorted(topic.partitions):
            of_replicas = {self._rack_of(replica) for replica in topic.partitions[index].replicas}
            racks.append(tuple(sorted(rack for rack in of_replicas if rack)))
        return TopicShape(topic.topic_id, name, len(topic.partitions), tuple(racks) if any(racks) else ())

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._image.cluster.brokers.get(broker_id)
        return None if broker is None else broker.rack

    def shapes(self, names: Iterable[str]) -> dict[Uuid, TopicShape]:
        """The existing topics, in ascending order of their ids."""
        found = [shape for name in names if (shape := self.shape(name)) is not None]
        return {shape.topic_id: shape for shape in sorted(found)}

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Hash that changes when one of the topics is created, deleted, extended or moved to other racks; 0 for no
        topics."""
        parts = [part for name in sorted(names) if (part := self._topic_hash(name))]
        if not parts:
            return 0
        return int.from_bytes(blake2b(b"".join(parts), digest_size=_HASH_SIZE).digest(), "big", signed=True)

    def _topic_hash(self, name: str) -> bytes:
        known = self._hashes.get(name)
        if known is None:
            shape = self.shape(name)
            known = b"" if shape is None else blake2b(repr(shape).encode(), digest_size=_HASH_SIZE).digest()
            self._hashes[name] = known
        return known
