"""Topics by name and by id, and what their settings ask of a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from millbeck.kernel.errors import (
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import EMPTY, PartitionRegistration
from millbeck.metadata.image.topics import TopicImage, TopicsImage
from millbeck.records.batch import TimestampType
from millbeck.records.compression import Codec
from millbeck.server.local_topics import LocalTopic, LocalTopics, rules_of
from millbeck.storage.config import LogConfig
from tests.unit.server.harness.method_patches import needs_sources


class Log:
    is_offline = False

    def offline_error(self) -> KafkaStorageError:
        return KafkaStorageError("offline")


class Partition:
    def __init__(self) -> None:
        self.log = Log()


def topic(name: str = "t", topic_id: bytes = bytes(range(16))) -> LocalTopic:
    config = LogConfig.of()
    made = LocalTopic(name=name, topic_id=topic_id, config=config, rules=rules_of(config), is_internal=False)
    made.partitions[0] = cast(Any, Partition())
    return made


@needs_sources
def test_topics_are_found_by_name_and_by_id() -> None:
    topics = LocalTopics()
    first = topic()
    topics.add(first)
    assert topics.topic("t") is topics.topic(first.topic_id) is first
    assert topics.partition("t", 0) is topics.partition(first.topic_id, 0) is first.partitions[0]
    assert topics.all_partitions() == [first.partitions[0]]
    with pytest.raises(UnknownTopicOrPartition):
        topics.topic("nowhere")
    with pytest.raises(UnknownTopicId):
        topics.topic(bytes(16))
    with pytest.raises(UnknownTopicOrPartition):
        topics.partition(first.topic_id, 1)


@needs_sources
def test_a_partition_whose_log_is_offline_is_an_error() -> None:
    topics = LocalTopics()
    only = topic()
    topics.add(only)
    cast(Any, only.partitions[0]).log.is_offline = True
    with pytest.raises(KafkaStorageError):
        topics.partition("t", 0)


def test_removing_an_older_topic_leaves_the_newer_of_that_name() -> None:
    topics = LocalTopics()
    old, new = topic(), topic(topic_id=bytes(15) + b"\x09")
    topics.add(old)
    topics.add(new)
    topics.remove(old)
    assert topics.topic("t") is new
    topics.remove(new)
    assert (topics.by_name, topics.by_id) == ({}, {})


@pytest.mark.parametrize(
    ("text", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", Codec.NONE, None),
        ("gzip", Codec.GZIP, 7),
        ("snappy", Codec.SNAPPY, None),
        ("lz4", Codec.LZ4, 8),
        ("zstd", Codec.ZSTD, 9),
    ],
)
def test_the_compression_of_a_topic_comes_with_its_level(text: str, codec: Codec | None, level: int | None) -> None:
    config = LogConfig.of(
        compression_type=text, compression_gzip_level="7", compression_lz4_level="8", compression_zstd_level="9"
    )
    rules = rules_of(config)
    assert (rules.codec, rules.level) == (codec, level)


def test_limits_timestamps_and_keys_follow_the_settings() -> None:
    rules = rules_of(
        LogConfig.of(
            max_message_bytes="77",
            message_timestamp_type="LogAppendTime",
            message_timestamp_before_max_ms="5",
            message_timestamp_after_max_ms="6",
            cleanup_policy="compact,delete",
        )
    )
    assert rules.max_message_bytes == 77
    assert rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (rules.timestamp_before_max_ms, rules.timestamp_after_max_ms) == (5, 6)
    assert rules.keys_required
    plain = rules_of(LogConfig.of())
    assert plain.timestamp_type is TimestampType.CREATE_TIME
    assert not plain.keys_required


def test_a_topic_that_lives_elsewhere_is_not_led_here() -> None:
    def registered(*replicas: int) -> PartitionRegistration:
        return PartitionRegistration(
            replicas=replicas,
            directories=(bytes(16),) * len(replicas),
            isr=replicas,
            leader=2,
            leader_epoch=1,
            partition_epoch=1,
        )

    image = TopicImage(name="far", topic_id=bytes(range(16)), partitions={0: registered(2, 3), 1: registered(1, 2)})
    topics = LocalTopics()
    topics.image = replace(EMPTY, topics=TopicsImage(by_id={bytes(range(16)): image}, by_name={"far": image}))
    for name_or_id in ("far", bytes(range(16))):
        with pytest.raises(NotLeaderOrFollower):
            topics.topic(name_or_id)
    assert topics.name_of(bytes(range(16))) == "far"
    with pytest.raises(UnknownTopicId):
        topics.name_of(bytes(16))
    here = topic("far")
    here.unusable[1] = "no room"
    assert isinstance(topics.missing_partition(here, 0), NotLeaderOrFollower)
    assert isinstance(topics.missing_partition(here, 1), KafkaStorageError)
    assert isinstance(topics.missing_partition(here, 2), UnknownTopicOrPartition)
