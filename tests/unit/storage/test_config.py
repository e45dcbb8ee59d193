"""The topic options are Kafka's."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers, Scope
from millbeck.storage.config import TOPIC_OPTIONS, LogConfig, check_log_config

KAFKA = {
    "cleanup.policy": ("list", "delete", "log.cleanup.policy"),
    "compression.gzip.level": ("int", "-1", "compression.gzip.level"),
    "compression.lz4.level": ("int", "9", "compression.lz4.level"),
    "compression.type": ("string", "producer", "compression.type"),
    "compression.zstd.level": ("int", "3", "compression.zstd.level"),
    "delete.retention.ms": ("long", "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": ("long", "60000", "log.segment.delete.delay.ms"),
    "flush.messages": ("long", "9223372036854775807", "log.flush.interval.messages"),
    "flush.ms": ("long", "9223372036854775807", "log.flush.interval.ms log.flush.scheduler.interval.ms"),
    "follower.replication.throttled.replicas": ("list", "", ""),
    "index.interval.bytes": ("int", "4096", "log.index.interval.bytes"),
    "internal.segment.bytes": ("int", None, ""),
    "leader.replication.throttled.replicas": ("list", "", ""),
    "local.retention.bytes": ("long", "-2", "log.local.retention.bytes"),
    "local.retention.ms": ("long", "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": ("long", "9223372036854775807", "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": ("int", "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": ("long", "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": ("long", "9223372036854775807", "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": ("string", "CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": ("double", "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": ("long", "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": ("int", "1", "min.insync.replicas"),
    "preallocate": ("boolean", "false", "log.preallocate"),
    "remote.log.copy.disable": ("boolean", "false", ""),
    "remote.log.delete.on.disable": ("boolean", "false", ""),
    "remote.storage.enable": ("boolean", "false", ""),
    "retention.bytes": ("long", "-1", "log.retention.bytes"),
    "retention.ms": ("long", "604800000", "log.retention.ms log.retention.minutes log.retention.hours"),
    "segment.bytes": ("int", "1073741824", "log.segment.bytes"),
    "segment.index.bytes": ("int", "10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": ("long", "0", "log.roll.jitter.ms log.roll.jitter.hours"),
    "segment.ms": ("long", "604800000", "log.roll.ms log.roll.hours"),
    "unclean.leader.election.enable": ("boolean", "false", "unclean.leader.election.enable"),
}
"""Type, default and broker synonyms of every topic option in Kafka 4.3, as its own classes list them."""


CONFLUENTS = {
    f"confluent.{part}.{name}": (kind, default, "")
    for part in ("key", "value")
    for name, kind, default in (
        ("schema.validation", "boolean", "false"),
        ("subject.name.strategy", "string", "io.confluent.kafka.serializers.subject.TopicNameStrategy"),
    )
}
"""Those of Confluent's server for validated schemas."""


def test_exactly_kafkas_options_are_declared() -> None:
    found = {
        option.name: (option.kind.name, option.default_text, " ".join(synonym.name for synonym in option.synonyms))
        for option in TOPIC_OPTIONS
    }
    assert found.pop("errors.deadletterqueue.group.enable") == ("boolean", "false", ""), "KIP-1191, later than 4.3"
    assert {name: found.pop(name) for name in list(found) if name.startswith("confluent.")} == CONFLUENTS
    assert found == KAFKA
    assert all(option.scope is Scope.TOPIC for option in TOPIC_OPTIONS)
    assert [option.name for option in TOPIC_OPTIONS if option.internal] == ["internal.segment.bytes"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "shred"),
        ("cleanup.policy", "delete,delete"),
        ("compression.type", "brotli"),
        ("confluent.value.schema.validation", "sometimes"),
        ("confluent.key.subject.name.strategy", "MyStrategy"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "0"),
        ("compression.zstd.level", "23"),
        ("flush.messages", "0"),
        ("follower.replication.throttled.replicas", "1-2"),
        ("index.interval.bytes", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("message.timestamp.type", "Now"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.insync.replicas", "0"),
        ("retention.ms", "-2"),
        ("segment.bytes", "1048575"),
        ("segment.index.bytes", "3"),
        ("segment.ms", "0"),
        ("local.retention.ms", "-3"),
    ],
)
def test_values_out_of_range_are_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name.replace(".", r"\.")):
        TOPIC_OPTIONS.parse(name, text)


@pytest.mark.parametrize("text", ["*", "0:1", "0:1,1:2", ""])
def test_throttled_replicas(text: str) -> None:
    assert TOPIC_OPTIONS.parse("leader.replication.throttled.replicas", text) == tuple(text.split(",") if text else ())


@pytest.mark.parametrize(
    ("static", "expected"),
    [
        ({"log.retention.hours": "2"}, 2 * 3_600_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5", "log.retention.ms": "7"}, 7),
        ({"log.retention.hours": "-1"}, -1),
        ({}, 604_800_000),
    ],
)
def test_milliseconds_win_over_minutes_over_hours(static: dict[str, str], expected: int) -> None:
    assert LogConfig.resolve(ConfigLayers(static=static)).retention_ms == expected
    assert LogConfig.resolve(ConfigLayers(static=static, overrides={"retention.ms": "1"})).retention_ms == 1


def test_policies() -> None:
    both = LogConfig.of(cleanup_policy="compact,delete")
    assert (both.is_compacted, both.is_deleted) == (True, True)
    neither = LogConfig.of(cleanup_policy="")
    assert (neither.is_compacted, neither.is_deleted) == (False, False)


def test_the_internal_segment_size_takes_precedence() -> None:
    assert LogConfig.of().segment_size_bytes == 1 << 30
    assert LogConfig.of(internal_segment_bytes="100").segment_size_bytes == 100


def test_jitter_never_exceeds_the_segments_time() -> None:
    assert LogConfig.of(segment_jitter_ms="5000", segment_ms="1000").segment_jitter_ms_max == 1000


@pytest.mark.parametrize(
    "texts",
    [
        {"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "9"},
        {"remote_storage_enable": "true", "retention_ms": "10", "local_retention_ms": "11"},
        {"remote_storage_enable": "true", "retention_ms": "10", "local_retention_ms": "-1"},
        {"remote_storage_enable": "true", "retention_bytes": "10", "local_retention_bytes": "11"},
    ],
)
def test_values_that_contradict_each_other_are_refused(texts: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        check_log_config(LogConfig.of(**texts))


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"remote_storage_enable": "true"},
        {"remote_storage_enable": "true", "retention_ms": "-1", "local_retention_ms": "5"},
        {"retention_ms": "10", "local_retention_ms": "11"},
    ],
)
def test_values_that_agree_pass(texts: dict[str, str]) -> None:
    config = LogConfig.of(**texts)
    check_log_config(config)
    assert config.min_compaction_lag_ms <= config.max_compaction_lag_ms


def test_a_segment_of_a_compacted_log_is_sealed_before_compaction_is_due() -> None:
    lags = {"max_compaction_lag_ms": "1000", "segment_ms": "5000"}
    assert LogConfig.of(cleanup_policy="compact,delete", **lags).segment_age_ms_max == 1000
    assert LogConfig.of(cleanup_policy="delete", **lags).segment_age_ms_max == 5000
    assert LogConfig.of(cleanup_policy="compact", segment_ms="5000").segment_age_ms_max == 5000
