"""The topics with replicas on this node, with their configuration, partitions and counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
from millbeck.records.schema_validation import AcceptedIds, SchemaRules
from millbeck.records.validation import ValidationRules
from millbeck.replication.partition import Partition
from millbeck.storage.config import COMPACT, LOG_APPEND_TIME, LogConfig

KEY_SCHEMAS: Final = LogConfig.confluent_key_schema_validation.name
VALUE_SCHEMAS: Final = LogConfig.confluent_value_schema_validation.name


def rules_of(config: LogConfig) -> ValidationRules:
    """The validation rules for produced batches, from the topic's configuration.

    If schemas are validated, none is accepted yet: `schemas.SchemaValidation` sets them.
    """
    schemas: SchemaRules | None = None
    if config.confluent_key_schema_validation or config.confluent_value_schema_validation:
        schemas = SchemaRules(
            keys=AcceptedIds(KEY_SCHEMAS, "") if config.confluent_key_schema_validation else None,
            values=AcceptedIds(VALUE_SCHEMAS, "") if config.confluent_value_schema_validation else None,
        )
    codec_name = config.compression_type
    codec = (
        None if codec_name == "producer" else Codec.NONE if codec_name == "uncompressed" else Codec[codec_name.upper()]
    )
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return ValidationRules(
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
        schemas=schemas,
    )


class TopicCounts:
    """Counters of one topic, incremented on the data path and read by the metrics."""

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
    """A topic with replicas on this node; ``config`` and ``rules`` are replaced when its configuration changes."""

    name: str
    topic_id: Uuid
    config: LogConfig
    rules: ValidationRules
    is_internal: bool
    partitions: dict[int, Partition] = field(default_factory=dict)
    counts: TopicCounts = field(default_factory=TopicCounts)
    unusable: dict[int, str] = field(default_factory=dict)
    """Partitions assigned to this node whose log could not be opened or created, with the reason."""


class LocalTopics:
    """The local topics by name and by id. Partitions without a replica on this node are absent."""

    def __init__(self) -> None:
        self.by_name: dict[str, LocalTopic] = {}
        self.by_id: dict[Uuid, LocalTopic] = {}
        self.image: MetadataImage = EMPTY
        """The metadata of the whole cluster."""

    def add(self, topic: LocalTopic) -> None:
        self.by_name[topic.name] = topic
        self.by_id[topic.topic_id] = topic

    def remove(self, topic: LocalTopic) -> None:
        self.by_id.pop(topic.topic_id, None)
        if self.by_name.get(topic.name) is topic:
            del self.by_name[topic.name]

    def topic(self, name_or_id: str | Uuid) -> LocalTopic:
        """A topic by name or id. Raises UNKNOWN_TOPIC_OR_PARTITION for an unknown name, UNKNOWN_TOPIC_ID for an unknown
        id, and NOT_LEADER_OR_FOLLOWER for a topic without a replica on this node."""
        topic = self.by_name.get(name_or_id) if isinstance(name_or_id, str) else self.by_id.get(name_or_id)
        if topic is None:
            raise self.missing(name_or_id)
        return topic

    def missing(self, name_or_id: str | Uuid) -> ApiError:
        """The error for a topic that is not on this node."""
        topics = self.image.topics
        if isinstance(name_or_id, str):
            return UnknownTopicOrPartition() if topics.named(name_or_id) is None else NotLeaderOrFollower()
        return UnknownTopicId() if topics.with_id(name_or_id) is None else NotLeaderOrFollower()

    def missing_partition(self, topic: LocalTopic, index: int) -> ApiError:
        """The error for a missing partition of a local topic: its log is unusable, or it is on other brokers."""
        reason = topic.unusable.get(index)
        if reason is not None:
            return KafkaStorageError(reason)
        image = self.image.topics.with_id(topic.topic_id)
        return UnknownTopicOrPartition() if image is None or index not in image.partitions else NotLeaderOrFollower()

    def name_of(self, topic_id: Uuid) -> str:
        """The name of a topic id. Raises UNKNOWN_TOPIC_ID."""
        topic = self.by_id.get(topic_id) or self.image.topics.with_id(topic_id)
        if topic is None:
            raise UnknownTopicId
        return topic.name

    def partition(self, name_or_id: str | Uuid, index: int) -> Partition:
        """A local partition. Raises the errors of `topic`, and KAFKA_STORAGE_ERROR when the partition's log is offline
        or could not be created."""
        return self.partition_of(self.topic(name_or_id), index)

    def partition_of(self, topic: LocalTopic, index: int) -> Partition:
        """The same for a topic that was looked up before."""
        partition = topic.partitions.get(index)
        if partition is None:
            raise self.missing_partition(topic, index)
        if partition.log.is_offline:
            raise partition.log.offline_error()
        return partition

    def led_partition(self, name_or_id: str | Uuid, index: int) -> Partition:
        """A partition that this node leads; raises NOT_LEADER_OR_FOLLOWER for others."""
        partition = self.partition(name_or_id, index)
        if not partition.is_leader:
            raise NotLeaderOrFollower
        return partition

    def all_partitions(self) -> list[Partition]:
        return [partition for topic in self.by_name.values() for partition in topic.partitions.values()]
