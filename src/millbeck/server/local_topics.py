"""The topics this node serves: what the metadata image says, bound to the logs that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.kernel.errors import (
    ApiError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import Uuid
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.records.batch import TimestampType
from millbeck.records.compression import Codec
from millbeck.records.validation import Rules
from millbeck.replication.partition import Partition
from millbeck.storage.config import COMPACT, LOG_APPEND_TIME, LogConfig


def rules_of(config: LogConfig) -> Rules:
    """What the topic's settings ask of a produced batch."""
    codec_name = config.compression_type
    codec = (
        None if codec_name == "producer" else Codec.NONE if codec_name == "uncompressed" else Codec[codec_name.upper()]
    )
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return Rules(
        max_message_bytes=config.max_message_bytes,
        codec=codec,
        level=None if codec is None else levels.get(codec),
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if config.message_timestamp_type == LOG_APPEND_TIME
            else TimestampType.CREATE_TIME
        ),
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        keys_required=COMPACT in config.cleanup_policy,
    )


class TopicCounts:
    """Counted on the hot path, read by the metrics."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "fetch_failed",
        "fetch_requests",
        "messages_in",
        "produce_failed",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.produce_failed = 0
        self.fetch_failed = 0


@dataclass(slots=True, kw_only=True)
class LocalTopic:
    """One topic; ``config`` and ``rules`` are replaced when its settings change."""

    name: str
    topic_id: Uuid
    config: LogConfig
    rules: Rules
    is_internal: bool
    partitions: dict[int, Partition] = field(default_factory=dict)
    counts: TopicCounts = field(default_factory=TopicCounts)
    unusable: dict[int, str] = field(default_factory=dict)
    """Partitions that should be here and whose log could not be opened or created: why."""


class LocalTopics:
    """By name and by id. Partitions that are known but have no log here are absent: others have them."""

    def __init__(self) -> None:
        self.by_name: dict[str, LocalTopic] = {}
        self.by_id: dict[Uuid, LocalTopic] = {}
        self.image: MetadataImage = EMPTY
        """What there is in the whole cluster."""

    def add(self, topic: LocalTopic) -> None:
        self.by_name[topic.name] = topic
        self.by_id[topic.topic_id] = topic

    def remove(self, topic: LocalTopic) -> None:
        self.by_id.pop(topic.topic_id, None)
        if self.by_name.get(topic.name) is topic:
            del self.by_name[topic.name]

    def topic(self, name_or_id: str | Uuid) -> LocalTopic:
        """Raises UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id, and NOT_LEADER_OR_FOLLOWER for a
        topic of which there is nothing here."""
        topic = self.by_name.get(name_or_id) if isinstance(name_or_id, str) else self.by_id.get(name_or_id)
        if topic is None:
            raise self.missing(name_or_id)
        return topic

    def missing(self, name_or_id: str | Uuid) -> ApiError:
        """Why there is no such topic here."""
        topics = self.image.topics
        if isinstance(name_or_id, str):
            return UnknownTopicOrPartition() if topics.named(name_or_id) is None else NotLeaderOrFollower()
        return UnknownTopicId() if topics.with_id(name_or_id) is None else NotLeaderOrFollower()

    def missing_partition(self, topic: LocalTopic, index: int) -> ApiError:
        """Why a topic that is here has no such partition here: its log could not be made, or others have it."""
        reason = topic.unusable.get(index)
        if reason is not None:
            return KafkaStorageError(reason)
        image = self.image.topics.with_id(topic.topic_id)
        return UnknownTopicOrPartition() if image is None or index not in image.partitions else NotLeaderOrFollower()

    def name_of(self, topic_id: Uuid) -> str:
        """Raises UNKNOWN_TOPIC_ID."""
        topic = self.by_id.get(topic_id) or self.image.topics.with_id(topic_id)
        if topic is None:
            raise UnknownTopicId
        return topic.name

    def partition(self, name_or_id: str | Uuid, index: int) -> Partition:
        """Also raises KAFKA_STORAGE_ERROR when the partition's log is offline, or could not even be made."""
        topic = self.topic(name_or_id)
        partition = topic.partitions.get(index)
        if partition is None:
            raise self.missing_partition(topic, index)
        if partition.log.is_offline:
            raise partition.log.offline_error()
        return partition

    def led_partition(self, name_or_id: str | Uuid, index: int) -> Partition:
        """One that this node leads; raises NOT_LEADER_OR_FOLLOWER for others."""
        partition = self.partition(name_or_id, index)
        if not partition.is_leader:
            raise NotLeaderOrFollower
        return partition

    def all_partitions(self) -> list[Partition]:
        return [partition for topic in self.by_name.values() for partition in topic.partitions.values()]
