"""Admin calls of every client that has them; each effect is checked from another client."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from bench.systems import Node
from tests.interop.clients import DriverFailed, DriverSession

NewTopic = Callable[..., str]
TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_PARTITIONS, UNKNOWN_TOPIC = 36, 40, 37, 3


def _need(driver: DriverSession, *verbs: str) -> None:
    for verb in verbs:
        if reason := driver.client.lacks.get(verb):
            pytest.skip(reason)


def _eventually(check: Callable[[], bool], timeout_s: float = 15.0) -> None:
    """A broker answers an admin call before every client's metadata shows it."""
    deadline_s = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _config(admin: AdminClient, topic: str, name: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return str(admin.describe_configs([resource])[resource].result(30)[name].value)


def test_topics_are_created_listed_grown_and_deleted(driver: DriverSession, admin: AdminClient) -> None:
    _need(driver, "create_topic")
    topic = f"made-by-{driver.client.name}"
    driver.ask("create_topic", topic=topic, partitions=2, configs={"retention.ms": "123456789"})
    _eventually(lambda: topic in driver.ask("list_topics")["topics"])
    described = driver.ask("describe_topic", topic=topic)
    assert (described["partitions"], described["leaders"]) == (2, [1, 1])
    assert _config(admin, topic, "retention.ms") == "123456789"
    driver.ask("add_partitions", topic=topic, total=5)
    _eventually(lambda: len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 5)
    _eventually(lambda: driver.ask("describe_topic", topic=topic)["partitions"] == 5)
    driver.ask("delete_topic", topic=topic)
    _eventually(lambda: topic not in driver.ask("list_topics")["topics"])
    assert topic not in admin.list_topics(timeout=30).topics


def test_a_topic_that_exists_is_refused(driver: DriverSession, new_topic: NewTopic) -> None:
    _need(driver, "create_topic")
    topic = new_topic()
    if driver.client.name == "kafkajs":
        # kafkajs turns this error into a quiet answer of its own.
        driver.ask("create_topic", topic=topic)
        return
    with pytest.raises(DriverFailed) as refused:
        driver.ask("create_topic", topic=topic)
    assert refused.value.code == TOPIC_ALREADY_EXISTS


def test_wrong_values_are_refused(driver: DriverSession, new_topic: NewTopic) -> None:
    _need(driver, "alter_config", "add_partitions")
    topic = new_topic(partitions=3)
    with pytest.raises(DriverFailed) as refused:
        driver.ask("alter_config", topic=topic, configs={"retention.ms": "not a number"})
    assert refused.value.code == INVALID_CONFIG
    with pytest.raises(DriverFailed) as refused:
        driver.ask("add_partitions", topic=topic, total=2)
    assert refused.value.code == INVALID_PARTITIONS


def test_configs_are_described_and_altered(driver: DriverSession, new_topic: NewTopic, admin: AdminClient) -> None:
    _need(driver, "alter_config")
    topic = new_topic()
    configs = driver.ask("describe_configs", topic=topic)["configs"]
    assert configs["cleanup.policy"] == "delete"
    assert configs["max.message.bytes"] == "1048588"
    assert configs["segment.bytes"] == "1073741824"
    driver.ask("alter_config", topic=topic, configs={"retention.ms": "98765", "segment.bytes": "2097152"})
    _eventually(lambda: _config(admin, topic, "retention.ms") == "98765")
    configs = driver.ask("describe_configs", topic=topic)["configs"]
    assert (configs["retention.ms"], configs["segment.bytes"]) == ("98765", "2097152")


def test_records_are_deleted_up_to_an_offset(driver: DriverSession, new_topic: NewTopic) -> None:
    _need(driver, "delete_records")
    topic = new_topic()
    driver.ask("produce", topic=topic, records=[{"value": str(index)} for index in range(20)])
    assert driver.ask("delete_records", topic=topic, partition=0, offset=12) == {"low": 12}
    assert driver.ask("watermarks", topic=topic, partition=0) == {"low": 12, "high": 20}
    records = driver.ask("consume", topic=topic, offset=12, count=8)["records"]
    assert [record["value"] for record in records] == [str(index) for index in range(12, 20)]


def test_groups_are_listed_described_and_deleted(
    driver: DriverSession, new_topic: NewTopic, node: Node, admin: AdminClient
) -> None:
    _need(driver, "list_groups")
    topic = new_topic()
    group = f"group-seen-by-{driver.client.name}"
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group, "group.protocol": "classic"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()
    assert group in driver.ask("list_groups")["groups"]
    described = driver.ask("describe_group", group=group)
    assert (described["state"], described["members"]) == ("Empty", 0)
    if "delete_group" in driver.client.lacks:
        return
    driver.ask("delete_group", group=group)
    assert group not in driver.ask("list_groups")["groups"]
    assert group not in {one.group_id for one in admin.list_consumer_groups().result(30).valid}
