"""All topic options of Kafka 4.3; `LogConfig` holds their typed values for one topic.

The broker-wide defaults have other names (``log.retention.hours`` for ``retention.ms``): these are the synonyms, in
order of precedence. Options of compaction, tiering and throttling are declared here too, so that they are stored,
listed and validated even though other packages apply them.
"""

from __future__ import annotations

import re

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    OptionSet,
    Scope,
    Section,
    Synonym,
    Validator,
    at_least,
    between,
    each_of,
    one_of,
    option,
)
from millbeck.kernel.units import DAY_MS, GIB, HOUR_MS, LONG_MAX, MIB, MINUTE_MS

COMPACT = "compact"
DELETE = "delete"
LOG_APPEND_TIME = "LogAppendTime"
STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
CREATE_TIME = "CreateTime"
UNLIMITED = -1
AS_THE_WHOLE_LOG = -2
"""The value of ``local.retention.*`` that means the same limit as ``retention.*``."""

TOPIC = Scope.TOPIC
_HOUR = HOUR_MS
_MINUTE = MINUTE_MS

_THROTTLED = re.compile(r"[0-9]+:[0-9]+")


def _are_throttled_replicas(entries: tuple[str, ...]) -> bool:
    return entries == ("*",) or all(_THROTTLED.fullmatch(entry) for entry in entries)


_THROTTLED_REPLICAS: Validator[tuple[str, ...]] = Validator(
    _are_throttled_replicas, "* or a list of partition:broker pairs"
)
_SUBJECT_NAME_STRATEGY: Validator[str] = Validator(
    lambda name: name.rpartition(".")[2] in STRATEGIES, f"one of {', '.join(STRATEGIES)}, with or without its package"
)
_TOPIC_NAME_STRATEGY = f"io.confluent.kafka.serializers.subject.{STRATEGIES[0]}"
_GZIP_LEVEL: Validator[int] = Validator(lambda level: level == -1 or 1 <= level <= 9, "between 1 and 9, or -1")


class LogConfig(Section):
    """The options of one topic's logs, created by `Section.resolve` or `Section.of`."""

    cleanup_policy = option(
        "cleanup.policy",
        LIST,
        (DELETE,),
        valid=each_of(COMPACT, DELETE),
        scope=TOPIC,
        synonyms=[Synonym("log.cleanup.policy")],
        doc="How old data is removed: delete removes whole segments that exceed the retention limits, compact "
        "keeps the newest record of every key. Both may be set; an empty list keeps everything.",
    )
    compression_type = option(
        "compression.type",
        STRING,
        "producer",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        scope=TOPIC,
        synonyms=[Synonym("compression.type")],
        doc="The codec in which batches are stored; producer keeps the one a batch arrives with.",
    )
    compression_gzip_level = option(
        "compression.gzip.level",
        INT,
        -1,
        valid=_GZIP_LEVEL,
        scope=TOPIC,
        synonyms=[Synonym("compression.gzip.level")],
        doc="The gzip level used when compression.type is gzip; -1 is the codec's own default.",
    )
    compression_lz4_level = option(
        "compression.lz4.level",
        INT,
        9,
        valid=between(1, 17),
        scope=TOPIC,
        synonyms=[Synonym("compression.lz4.level")],
        doc="The lz4 level used when compression.type is lz4.",
    )
    compression_zstd_level = option(
        "compression.zstd.level",
        INT,
        3,
        valid=between(-131072, 22),
        scope=TOPIC,
        synonyms=[Synonym("compression.zstd.level")],
        doc="The zstd level used when compression.type is zstd.",
    )
    confluent_key_schema_validation = option(
        "confluent.key.schema.validation",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="Whether brokers refuse records whose key has no schema id, or one that the schema registry does not have "
        "for the topic (INVALID_RECORD). Apache Kafka ignores this option, as it does the other three of this kind.",
    )
    confluent_key_subject_name_strategy = option(
        "confluent.key.subject.name.strategy",
        STRING,
        _TOPIC_NAME_STRATEGY,
        valid=_SUBJECT_NAME_STRATEGY,
        scope=TOPIC,
        doc="The subject that the schema of a key must belong to: that of the topic, of the record's name or of both "
        f"({', '.join(STRATEGIES)}).",
    )
    confluent_value_schema_validation = option(
        "confluent.value.schema.validation",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="Whether brokers refuse records whose value has no schema id, or one that the schema registry does not "
        "have for the topic (INVALID_RECORD). A null value is accepted.",
    )
    confluent_value_subject_name_strategy = option(
        "confluent.value.subject.name.strategy",
        STRING,
        _TOPIC_NAME_STRATEGY,
        valid=_SUBJECT_NAME_STRATEGY,
        scope=TOPIC,
        doc="The subject that the schema of a value must belong to, as confluent.key.subject.name.strategy for keys.",
    )
    delete_retention_ms = option(
        "delete.retention.ms",
        LONG,
        1 * DAY_MS,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.cleaner.delete.retention.ms")],
        doc="How long a compacted log keeps a tombstone after it became the last record of its key. A reader that "
        "starts at the beginning has this long to see it.",
    )
    file_delete_delay_ms = option(
        "file.delete.delay.ms",
        LONG,
        1 * MINUTE_MS,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.segment.delete.delay.ms")],
        doc="How long a removed segment's files stay on disk with the suffix .deleted.",
    )
    flush_messages = option(
        "flush.messages",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        scope=TOPIC,
        synonyms=[Synonym("log.flush.interval.messages")],
        doc="Force a flush to disk after this many records. With 1, a record counts as written only once flushed. "
        "The default leaves flushing to the operating system and durability to replication.",
    )
    flush_ms = option(
        "flush.ms",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")],
        doc="Force a flush to disk when the oldest unflushed record is this old.",
    )
    follower_replication_throttled_replicas = option(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        valid=_THROTTLED_REPLICAS,
        scope=TOPIC,
        doc="Replicas whose fetching is throttled on the follower's side, as partition:broker pairs; * means all.",
    )
    index_interval_bytes = option(
        "index.interval.bytes",
        INT,
        4096,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.index.interval.bytes")],
        doc="The bytes of batches between two index entries. A smaller value makes lookups faster and indexes larger.",
    )
    internal_segment_bytes = option(
        "internal.segment.bytes",
        INT,
        None,
        valid=at_least(1),
        scope=TOPIC,
        internal=True,
        doc="Overrides segment.bytes without its lower limit: for tests that need many small segments.",
    )
    leader_replication_throttled_replicas = option(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        valid=_THROTTLED_REPLICAS,
        scope=TOPIC,
        doc="Replicas whose fetches are throttled on the leader's side, as partition:broker pairs; * means all.",
    )
    local_retention_bytes = option(
        "local.retention.bytes",
        LONG,
        AS_THE_WHOLE_LOG,
        valid=at_least(-2),
        scope=TOPIC,
        synonyms=[Synonym("log.local.retention.bytes")],
        doc="How many bytes a tiered partition keeps on the local disk; -2 means as many as retention.bytes.",
    )
    local_retention_ms = option(
        "local.retention.ms",
        LONG,
        AS_THE_WHOLE_LOG,
        valid=at_least(-2),
        scope=TOPIC,
        synonyms=[Synonym("log.local.retention.ms")],
        doc="How long a tiered partition keeps a segment on the local disk; -2 means as long as retention.ms.",
    )
    max_compaction_lag_ms = option(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        scope=TOPIC,
        synonyms=[Synonym("log.cleaner.max.compaction.lag.ms")],
        doc="The longest time a record may stay uncompacted in a compacted log.",
    )
    max_message_bytes = option(
        "max.message.bytes",
        INT,
        1 * MIB + 12,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("message.max.bytes")],
        doc="The maximum size of a record batch, after compression.",
    )
    message_timestamp_after_max_ms = option(
        "message.timestamp.after.max.ms",
        LONG,
        1 * HOUR_MS,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.message.timestamp.after.max.ms")],
        doc="How far a record's timestamp may be ahead of the broker's clock. Not used with LogAppendTime.",
    )
    message_timestamp_before_max_ms = option(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.message.timestamp.before.max.ms")],
        doc="How far a record's timestamp may be behind the broker's clock. Not used with LogAppendTime.",
    )
    message_timestamp_type = option(
        "message.timestamp.type",
        STRING,
        CREATE_TIME,
        valid=one_of(CREATE_TIME, LOG_APPEND_TIME),
        scope=TOPIC,
        synonyms=[Synonym("log.message.timestamp.type")],
        doc="The clock of record timestamps: the producer's (CreateTime) or the broker's (LogAppendTime).",
    )
    min_cleanable_dirty_ratio = option(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        valid=between(0, 1),
        scope=TOPIC,
        synonyms=[Synonym("log.cleaner.min.cleanable.ratio")],
        doc="The cleaner compacts a log when the share of its uncompacted bytes is above this ratio.",
    )
    min_compaction_lag_ms = option(
        "min.compaction.lag.ms",
        LONG,
        0,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.cleaner.min.compaction.lag.ms")],
        doc="The shortest time a record of a compacted log stays uncompacted.",
    )
    min_insync_replicas = option(
        "min.insync.replicas",
        INT,
        1,
        valid=at_least(1),
        scope=TOPIC,
        synonyms=[Synonym("min.insync.replicas")],
        doc="How many replicas must be in sync for a write with acks=all to be accepted.",
    )
    preallocate = option(
        "preallocate",
        BOOLEAN,
        False,
        scope=TOPIC,
        synonyms=[Synonym("log.preallocate")],
        doc="Reserve a new segment's full size on disk when it is created; the unused rest is freed on roll.",
    )
    remote_log_copy_disable = option(
        "remote.log.copy.disable",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="Stop copying segments of a tiered topic to the remote tier; segments already there stay readable.",
    )
    remote_log_delete_on_disable = option(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="When tiering is disabled for a topic, delete its data in the remote tier.",
    )
    dead_letters_enable = option(
        "errors.deadletterqueue.group.enable",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="Whether share groups may use this topic as their dead letter queue.",
    )
    remote_storage_enable = option(
        "remote.storage.enable",
        BOOLEAN,
        False,
        scope=TOPIC,
        doc="Keep old segments of this topic in the remote tier.",
    )
    retention_bytes = option(
        "retention.bytes",
        LONG,
        UNLIMITED,
        scope=TOPIC,
        synonyms=[Synonym("log.retention.bytes")],
        doc="With the delete policy, delete a partition's oldest segments above this size in bytes; -1: no limit.",
    )
    retention_ms = option(
        "retention.ms",
        LONG,
        7 * DAY_MS,
        valid=at_least(-1),
        scope=TOPIC,
        synonyms=[
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", _MINUTE),
            Synonym("log.retention.hours", _HOUR),
        ],
        doc="With the delete policy, how long a segment is kept after its newest record's timestamp; -1: forever.",
    )
    segment_bytes = option(
        "segment.bytes",
        INT,
        1 * GIB,
        valid=at_least(1 * MIB),
        scope=TOPIC,
        synonyms=[Synonym("log.segment.bytes")],
        doc="The size at which a new segment is rolled. Retention and compaction work on whole segments.",
    )
    segment_index_bytes = option(
        "segment.index.bytes",
        INT,
        10 * MIB,
        valid=at_least(4),
        scope=TOPIC,
        synonyms=[Synonym("log.index.size.max.bytes")],
        doc="The largest size of a segment's offset and time indexes; a new segment is rolled when one is full.",
    )
    segment_jitter_ms = option(
        "segment.jitter.ms",
        LONG,
        0,
        valid=at_least(0),
        scope=TOPIC,
        synonyms=[Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR)],
        doc="A random jitter up to this is subtracted from segment.ms, so that partitions do not all roll at once.",
    )
    segment_ms = option(
        "segment.ms",
        LONG,
        7 * DAY_MS,
        valid=at_least(1),
        scope=TOPIC,
        synonyms=[Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR)],
        doc="A new segment is rolled when a batch is this much newer than the first one of the active segment.",
    )
    unclean_leader_election_enable = option(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        scope=TOPIC,
        synonyms=[Synonym("unclean.leader.election.enable")],
        doc="Allow an out-of-sync replica to become leader when no in-sync replica is left; records may be lost.",
    )

    @property
    def is_compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether retention limits apply."""
        return DELETE in self.cleanup_policy

    @property
    def segment_size_bytes(self) -> int:
        """The segment size in effect: ``internal.segment.bytes`` where it is set."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @property
    def segment_age_ms_max(self) -> int:
        """The age at which a segment is rolled: in a compacted log at most ``max.compaction.lag.ms``."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def segment_jitter_ms_max(self) -> int:
        return min(self.segment_jitter_ms, self.segment_ms)


TOPIC_OPTIONS = OptionSet(LogConfig)


def check_log_config(config: LogConfig) -> None:
    """Reject combinations of values that contradict each other. Raises `InvalidConfig`."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise InvalidConfig(
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) is larger than max.compaction.lag.ms "
            f"({config.max_compaction_lag_ms})"
        )
    if not config.remote_storage_enable:
        return
    for name, local, whole in (
        ("retention.ms", config.local_retention_ms, config.retention_ms),
        ("retention.bytes", config.local_retention_bytes, config.retention_bytes),
    ):
        if local == AS_THE_WHOLE_LOG or whole == UNLIMITED:
            continue
        if local == UNLIMITED or local > whole:
            raise InvalidConfig(f"local.{name} ({local}) is larger than {name} ({whole})")
