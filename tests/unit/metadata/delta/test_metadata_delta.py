from __future__ import annotations

from typing import Any

import pytest

from millbeck.metadata.delta import MetadataDelta, advance
from millbeck.metadata.delta.metadata_delta import _REPLAY
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image import EMPTY, ConfigResource, MetadataImage
from millbeck.metadata.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

ONE = b"1" * 16


def _after(*records: MetadataRecord, image: MetadataImage = EMPTY) -> MetadataImage:
    return advance(image, records, offset=image.offset + len(records), epoch=1, timestamp_ms=5)[0]


def test_every_record_can_be_replayed() -> None:
    transactions = {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord}
    assert set(_REPLAY) | transactions == set(RECORD_TYPES.values())


def test_an_unknown_record_is_a_fault() -> None:
    unknown: Any = object()
    with pytest.raises(MetadataFault, match="cannot replay object"):
        MetadataDelta(EMPTY).replay(unknown)


def test_an_image_says_which_record_it_stands_for() -> None:
    image, delta = advance(EMPTY, [NoOpRecord()], offset=41, epoch=3, timestamp_ms=77)
    assert (image.offset, image.epoch, image.timestamp_ms) == (41, 3, 77)
    assert delta.before is EMPTY
    assert delta.image is image


def test_what_did_not_change_is_shared() -> None:
    before = _after(TopicRecord(name="a", topic_id=ONE), FeatureLevelRecord(name="metadata.version", feature_level=30))
    after = _after(ProducerIdsRecord(next_producer_id=1000), ZkMigrationStateRecord(), image=before)
    assert after.topics is before.topics
    assert after.features is before.features
    assert after.producer_ids.next_producer_id == 1000


def test_a_feature_at_level_zero_is_gone() -> None:
    image = _after(FeatureLevelRecord(name="f", feature_level=2))
    assert image.features.level("f") == 2
    assert _after(FeatureLevelRecord(name="f", feature_level=0), image=image).features.levels == {}


def test_deleting_a_topic_deletes_its_options() -> None:
    image = _after(
        TopicRecord(name="a", topic_id=ONE),
        ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1"),
        PartitionRecord(partition_id=0, topic_id=ONE, replicas=[1]),
    )
    assert image.configs.of_topic("a") == {"retention.ms": "1"}
    gone, delta = advance(image, [RemoveTopicRecord(topic_id=ONE)], offset=3, epoch=1, timestamp_ms=6)
    assert gone.configs.by_resource == {}
    assert delta.configs.changed[ConfigResource(2, "a")].changed == {"retention.ms": None}
    assert list(delta.topics.deleted) == [ONE]


def test_credentials_come_and_go() -> None:
    image = _after(
        AccessControlEntryRecord(id=ONE, principal="User:u"),
        UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
        DelegationTokenRecord(token_id="t", owner="User:u"),
    )
    assert (len(image.acls.by_id), len(image.scram.by_user), len(image.delegation_tokens.by_id)) == (1, 1, 1)
    image = _after(
        RemoveAccessControlEntryRecord(id=ONE),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        image=image,
    )
    assert (image.acls.by_id, image.scram.by_user, image.delegation_tokens.by_id) == ({}, {}, {})
    with pytest.raises(MetadataFault, match="does not exist"):
        _after(RemoveAccessControlEntryRecord(id=ONE), image=image)


def test_a_transaction_takes_effect_at_its_end() -> None:
    image = _after(BeginTransactionRecord(name="x"), TopicRecord(name="a", topic_id=ONE))
    assert image.topics.by_name == {}
    assert image.open_transaction == (TopicRecord(name="a", topic_id=ONE),)
    ended, delta = advance(image, [EndTransactionRecord(), NoOpRecord()], offset=3, epoch=1, timestamp_ms=5)
    assert list(ended.topics.by_name) == ["a"]
    assert ended.open_transaction is None
    assert delta.topics.created == {ONE: "a"}


def test_an_aborted_transaction_has_no_effect() -> None:
    image = _after(BeginTransactionRecord(), TopicRecord(name="a", topic_id=ONE), AbortTransactionRecord(reason="no"))
    assert (image.topics.by_name, image.open_transaction) == ({}, None)


@pytest.mark.parametrize(
    "records",
    [[EndTransactionRecord()], [AbortTransactionRecord()], [BeginTransactionRecord(), BeginTransactionRecord()]],
    ids=["end without begin", "abort without begin", "begin in begin"],
)
def test_transactions_do_not_nest_or_dangle(records: list[MetadataRecord]) -> None:
    with pytest.raises(MetadataFault, match="transaction"):
        _after(*records)
