"""A step from one image to another: equal to having been there all along, and no larger than what changed."""

from __future__ import annotations

from typing import Any

from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionRecord,
    QuotaEntityPart,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from millbeck.server.metadata.image_difference import difference, step_to


def image_of(*records: Any) -> MetadataImage:
    return advance(EMPTY, records, offset=len(records) - 1, epoch=1, timestamp_ms=5)[0]


def topic(name: str, number: int = 1) -> TopicRecord:
    return TopicRecord(name=name, topic_id=bytes([number] * 16))


def partition(number: int, index: int, leader: int = 1) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index, topic_id=bytes([number] * 16), replicas=[1, 2], isr=[1, 2], leader=leader
    )


def option(resource: str, name: str, value: str = "v") -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name=resource, name=name, value=value)


VERSION = FeatureLevelRecord(name="metadata.version", feature_level=30)
QUOTA = ClientQuotaRecord(entity=[QuotaEntityPart(entity_type="user", entity_name="u")], key="k", value=1.0)
BEFORE = image_of(
    VERSION,
    FeatureLevelRecord(name="group.version", feature_level=1),
    RegisterBrokerRecord(broker_id=1, broker_epoch=1, incarnation_id=b"i" * 16),
    RegisterBrokerRecord(broker_id=2, broker_epoch=2, incarnation_id=b"j" * 16),
    topic("kept", 1),
    partition(1, 0),
    topic("gone", 2),
    partition(2, 0),
    topic("anew", 3),
    partition(3, 0),
    option("anew", "same"),
    option("gone", "x"),
    option("kept", "removed"),
    option("kept", "stays"),
    QUOTA,
    AccessControlEntryRecord(id=b"a" * 16, principal="User:u", host="*"),
    UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096),
    DelegationTokenRecord(token_id="t", owner="User:u"),
)
AFTER = image_of(
    VERSION,
    RegisterBrokerRecord(broker_id=2, broker_epoch=9, incarnation_id=b"k" * 16),
    topic("kept", 1),
    partition(1, 0, leader=2),
    partition(1, 1),
    topic("anew", 4),
    partition(4, 0),
    option("anew", "same"),
    option("kept", "stays"),
    option("kept", "added"),
)


def test_the_step_leads_to_the_image_and_says_what_is_gone() -> None:
    image, delta = step_to(BEFORE, AFTER)
    assert list(image.records()) == list(AFTER.records())
    assert (image.offset, image.epoch) == (AFTER.offset, AFTER.epoch)
    assert delta.before is not EMPTY
    assert sorted(topic.name for topic in delta.topics.deleted.values()) == ["anew", "gone"]
    assert list(delta.topics.created.values()) == ["anew"]
    assert delta.image is image


def test_what_is_the_same_is_not_said_again() -> None:
    assert difference(AFTER, AFTER) == []
    names = [record.name for record in difference(BEFORE, AFTER) if isinstance(record, TopicRecord)]
    assert names == ["anew"]


def test_it_works_from_nothing() -> None:
    assert list(step_to(EMPTY, AFTER)[0].records()) == list(AFTER.records())


def test_an_open_transaction_is_the_later_ones() -> None:
    opened, _ = advance(AFTER, [BeginTransactionRecord(), option("kept", "x")], offset=50, epoch=2, timestamp_ms=6)
    image, _ = step_to(BEFORE, opened)
    assert image.open_transaction == opened.open_transaction
    closed, _ = step_to(opened, BEFORE)
    assert closed.open_transaction is None
