from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import finished
from millbeck.kernel.ids import ZERO_UUID
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from millbeck.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


def _topic(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    named = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=named)


def _assigned(name: str, *replicas: list[int], first: int = 0) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(first + index, brokers) for index, brokers in enumerate(replicas)]
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)


def _result(controller: Controller, image: MetadataImage, topic: CreatableTopic) -> CreatableTopicResult:
    [result] = finished(controller.create_topics(image, CreateTopicsRequest(topics=[topic]))).response.topics
    return result


def test_a_topic_is_created_as_topic_options_and_partitions(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    request = CreateTopicsRequest(topics=[_topic("orders", 3, 1, retention_ms="1000")])
    result = finished(controller.create_topics(one_broker, request))
    kinds = [type(record) for record in result.records]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord, PartitionRecord]
    [answer] = result.response.topics
    image = replayed(one_broker, result.records)
    topic = image.topics.named("orders")
    assert topic is not None
    assert topic.topic_id == answer.topic_id != ZERO_UUID
    assert (answer.error_code, answer.error_message) == (0, None)
    assert (answer.num_partitions, answer.replication_factor, len(topic.partitions)) == (3, 1, 3)
    assert image.configs.of_topic("orders") == {"retention.ms": "1000"}
    partition = topic.partitions[2]
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert partition.directories == (bytes([101]) * 16,)


def test_the_answer_reports_every_option_with_its_source(controller: Controller, one_broker: MetadataImage) -> None:
    configs = _result(controller, one_broker, _topic("a", retention_ms="1000")).configs
    assert configs is not None
    by_name = {config.name: config for config in configs}
    assert list(by_name) == sorted(by_name)
    assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == ("1000", 1)
    assert (by_name["segment.bytes"].value, by_name["segment.bytes"].config_source) == ("1073741824", 5)
    assert "internal.segment.bytes" not in by_name


def test_who_may_not_describe_options_gets_none(controller: Controller, one_broker: MetadataImage) -> None:
    request = CreateTopicsRequest(topics=[_topic("a"), _topic("b")])
    result = finished(controller.create_topics(one_broker, request, may_describe_configs=lambda name: name == "b"))
    hidden, shown = result.response.topics
    assert (hidden.topic_config_error_code, hidden.configs, hidden.num_partitions) == (29, [], -1)
    assert (shown.topic_config_error_code, shown.num_partitions) == (0, 1)
    assert hidden.error_code == 0


def test_minus_one_asks_for_the_defaults(
    make_controller: Callable[..., Controller], three_brokers: MetadataImage
) -> None:
    controller = make_controller(partition_count_default=5, replication_factor_default=2)
    answer = _result(controller, three_brokers, _topic("a", -1, -1))
    assert (answer.num_partitions, answer.replication_factor) == (5, 2)


def test_validating_changes_nothing(controller: Controller, one_broker: MetadataImage) -> None:
    request = CreateTopicsRequest(topics=[_topic("a"), _topic("bad name")], validate_only=True)
    result = finished(controller.create_topics(one_broker, request))
    assert result.records == []
    assert [answer.error_code for answer in result.response.topics] == [0, 17]


def test_replicas_by_hand_are_taken_as_given(
    controller: Controller, three_brokers: MetadataImage, replayed: Replayed
) -> None:
    request = CreateTopicsRequest(topics=[_assigned("a", [3, 1], [2, 3])])
    result = finished(controller.create_topics(three_brokers, request))
    topic = replayed(three_brokers, result.records).topics.named("a")
    assert topic is not None
    assert [topic.partitions[index].replicas for index in (0, 1)] == [(3, 1), (2, 3)]
    assert [topic.partitions[index].leader for index in (0, 1)] == [3, 2]


REFUSED = {
    "empty name": (_topic(""), 17, ""),
    "name of a directory": (_topic(".."), 17, ""),
    "way out": (_topic("../x"), 17, ""),
    "long name": (_topic("x" * 250), 17, "249"),
    "the metadata log": (_topic("__cluster_metadata"), 42, "prohibited"),
    "no partitions": (_topic("a", 0), 37, "non-positive"),
    "fewer than no partitions": (_topic("a", -2), 37, "non-positive"),
    "no replicas": (_topic("a", 1, 0), 38, "larger than 0"),
    "fewer than no replicas": (_topic("a", 1, -2), 38, "larger than 0"),
    "too many replicas": (_topic("a", 1, 2), 38, "only 1 broker"),
    "null option": (_topic("a", retention_ms=None), 40, "Null value not supported for topic configs: retention.ms"),
    "unknown option": (_topic("a", no_such="1"), 40, "Unknown topic config name: no.such"),
    "option of the wrong type": (_topic("a", retention_ms="abc"), 40, "retention.ms"),
    "option out of range": (_topic("a", retention_ms="-5"), 40, "retention.ms"),
    "compaction": (_topic("a", cleanup_policy="compact"), 40, "cleanup.policy=compact"),
    "tiering": (_topic("a", remote_storage_enable="true"), 40, "remote.storage.enable"),
    "count and assignment": (
        CreatableTopic("a", 1, -1, [CreatableReplicaAssignment(0, [1])]),
        42,
        "numPartitions was not set to -1",
    ),
    "factor and assignment": (
        CreatableTopic("a", -1, 1, [CreatableReplicaAssignment(0, [1])]),
        42,
        "replication factor was not set to -1",
    ),
    "nowhere": (_assigned("a", []), 39, "empty replica list"),
    "unknown broker": (_assigned("a", [2]), 39, "includes broker 2, but no such broker is registered"),
    "broker twice": (_assigned("a", [1, 1]), 39, "more than once"),
    "gap": (_assigned("a", [1], first=1), 39, "consecutive"),
    "partition twice": (
        CreatableTopic("a", -1, -1, [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(0, [1])]),
        39,
        "multiple manual partition assignments for partition 0",
    ),
}


@pytest.mark.parametrize(("topic", "code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    controller: Controller, one_broker: MetadataImage, topic: CreatableTopic, code: int, words: str
) -> None:
    result = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=[topic, _topic("fine")])))
    refused, fine = result.response.topics
    assert refused.error_code == code
    assert refused.error_message
    assert words in refused.error_message
    assert fine.error_code == 0
    created = [record.name for record in result.records if isinstance(record, TopicRecord)]
    assert created == ["fine"]


def test_uneven_replication_is_refused(controller: Controller, three_brokers: MetadataImage) -> None:
    answer = _result(controller, three_brokers, _assigned("a", [1, 2], [3]))
    assert answer.error_code == 39
    assert answer.error_message
    assert "1 replica(s)" in answer.error_message


def test_a_name_is_taken_once(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> None:
    first = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=[_topic("a"), _topic("b.c")])))
    image = replayed(one_broker, first.records)
    again = _result(controller, image, _topic("a"))
    assert (again.error_code, again.error_message) == (36, "Topic 'a' already exists.")
    alike = _result(controller, image, _topic("b_c"))
    assert (alike.error_code, alike.error_message) == (17, "Topic 'b_c' collides with existing topic: b.c")
    assert _result(controller, image, _topic("bxc")).error_code == 0


def test_names_in_one_request_must_not_repeat_or_collide(controller: Controller, one_broker: MetadataImage) -> None:
    topics = [_topic("a"), _topic("b.c"), _topic("a"), _topic("b_c")]
    result = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=topics)))
    answers = [(answer.name, answer.error_code, answer.error_message) for answer in result.response.topics]
    assert answers == [
        ("a", 42, "Duplicate topic name."),
        ("b.c", 0, None),
        ("b_c", 17, "Topic 'b_c' collides with existing topic: b.c"),
    ]


def test_a_request_that_makes_too_much_is_refused_as_a_whole(controller: Controller, one_broker: MetadataImage) -> None:
    for topics in ([_topic("a", 9_999), _topic("b", 2)], [_topic("a", 10_000)], [_topic("a", 2**31 - 1)]):
        result = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=topics)))
        assert result.records == []
        assert {answer.error_code for answer in result.response.topics} == {44}


def test_without_active_brokers_nothing_is_created(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    broker = one_broker.cluster.brokers[1]
    fenced = replayed(one_broker, finished(controller.fence_broker(one_broker, 1, broker.epoch)).records)
    assert _result(controller, fenced, _topic("a")).error_code == 38
    by_hand = _result(controller, fenced, _assigned("a", [1]))
    assert (by_hand.error_code, "fenced" in (by_hand.error_message or "")) == (39, True)


def test_internal_topics_may_be_compacted(controller: Controller, one_broker: MetadataImage) -> None:
    answer = _result(controller, one_broker, _topic("__consumer_offsets", cleanup_policy="compact"))
    assert answer.error_code == 0


def _with_topics(controller: Controller, image: MetadataImage, replayed: Replayed) -> MetadataImage:
    request = CreateTopicsRequest(topics=[_topic("a"), _topic("b")])
    return replayed(image, finished(controller.create_topics(image, request)).records)


def test_topics_are_deleted_by_name_and_by_id(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    image = _with_topics(controller, one_broker, replayed)
    b = image.topics.by_name["b"].topic_id
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState(topic_id=b)])
    result = finished(controller.delete_topics(image, request))
    assert [(answer.name, answer.error_code) for answer in result.response.responses] == [("a", 0), ("b", 0)]
    assert replayed(image, result.records).topics.by_name == {}
    old = finished(controller.delete_topics(image, DeleteTopicsRequest(topic_names=["b", "nope"])))
    assert [(answer.name, answer.error_code) for answer in old.response.responses] == [("b", 0), ("nope", 3)]
    assert list(replayed(image, old.records).topics.by_name) == ["a"]


def test_what_is_not_deleted_says_why(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> None:
    image = _with_topics(controller, one_broker, replayed)
    a, b = image.topics.by_name["a"].topic_id, image.topics.by_name["b"].topic_id
    states = [
        DeleteTopicState(name="x"),
        DeleteTopicState(topic_id=b"?" * 16),
        DeleteTopicState(name="a", topic_id=a),
        DeleteTopicState(),
        DeleteTopicState(name="y"),
        DeleteTopicState(name="y"),
        DeleteTopicState(topic_id=b),
        DeleteTopicState(topic_id=b),
    ]
    result = finished(controller.delete_topics(image, DeleteTopicsRequest(topics=states)))
    assert result.records == []
    assert [answer.error_code for answer in result.response.responses] == [3, 100, 42, 42, 42, 42]


def test_one_topic_by_name_and_by_id_is_deleted_once(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    image = _with_topics(controller, one_broker, replayed)
    a = image.topics.by_name["a"].topic_id
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=a), DeleteTopicState(name="a")])
    result = finished(controller.delete_topics(image, request))
    assert [answer.error_code for answer in result.response.responses] == [0, 42]
    assert len(result.records) == 1


def test_deletion_can_be_switched_off(
    make_controller: Callable[..., Controller], one_broker: MetadataImage, replayed: Replayed
) -> None:
    controller = make_controller(delete_topics=False)
    image = _with_topics(controller, one_broker, replayed)
    result = finished(controller.delete_topics(image, DeleteTopicsRequest(topic_names=["a"])))
    assert (result.records, result.response.responses[0].error_code) == ([], 73)
