from __future__ import annotations

import pytest

from millbeck.metadata.delta.topics import TopicsDelta
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.topics import TopicsImage
from millbeck.metadata.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ONE, TWO = b"1" * 16, b"2" * 16


def _partition(index: int, topic_id: bytes = ONE, **fields: object) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0
    )
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def _with_orders() -> TopicsImage:
    delta = TopicsDelta(TopicsImage())
    delta.create(TopicRecord(name="orders", topic_id=ONE))
    delta.put_partition(_partition(0))
    delta.put_partition(_partition(1))
    return delta.apply()


def test_a_created_topic_is_named_with_its_partitions() -> None:
    delta = TopicsDelta(TopicsImage())
    delta.create(TopicRecord(name="orders", topic_id=ONE))
    delta.put_partition(_partition(0))
    assert delta.created == {ONE: "orders"}
    assert delta.changed_topic_ids == [ONE]
    assert [(topic.name, index) for topic, index, _ in delta.changed_partitions()] == [("orders", 0)]
    image = delta.apply()
    assert image.named("orders") is image.with_id(ONE)


def test_only_the_partition_that_changed_is_named() -> None:
    before = _with_orders()
    delta = TopicsDelta(before)
    delta.change_partition(PartitionChangeRecord(partition_id=1, topic_id=ONE, leader=-1))
    assert delta.created == {}
    [(topic, index, partition)] = delta.changed_partitions()
    assert (topic.name, index, partition.leader, partition.leader_epoch) == ("orders", 1, -1, 1)
    after = delta.apply()
    assert after.partition("orders", 0) is before.partition("orders", 0)
    assert before.partition("orders", 1) != after.partition("orders", 1)


def test_a_deleted_topic_is_named_as_it_was() -> None:
    before = _with_orders()
    delta = TopicsDelta(before)
    assert delta.remove(RemoveTopicRecord(topic_id=ONE)) == "orders"
    assert delta.deleted == {ONE: before.by_id[ONE]}
    assert delta.changed_topic_ids == []
    assert delta.apply() == TopicsImage()


def test_a_topic_deleted_and_created_anew_has_another_id() -> None:
    delta = TopicsDelta(_with_orders())
    delta.remove(RemoveTopicRecord(topic_id=ONE))
    delta.create(TopicRecord(name="orders", topic_id=TWO))
    delta.put_partition(_partition(0, TWO))
    image = delta.apply()
    assert (list(delta.deleted), delta.created) == ([ONE], {TWO: "orders"})
    assert image.by_name["orders"].topic_id == TWO
    assert list(image.by_id) == [TWO]


def test_a_topic_that_came_and_went_is_not_named() -> None:
    delta = TopicsDelta(TopicsImage())
    delta.create(TopicRecord(name="orders", topic_id=ONE))
    delta.remove(RemoveTopicRecord(topic_id=ONE))
    assert (delta.created, delta.deleted, list(delta.changed_partitions())) == ({}, {}, [])
    assert delta.apply() == TopicsImage()


def test_eligible_leaders_are_cleared_where_there_are_any() -> None:
    delta = TopicsDelta(_with_orders())
    delta.put_partition(_partition(1, eligible_leader_replicas=[1], last_known_elr=[1]))
    with_elr = delta.apply()
    for name in ("orders", ""):
        clearing = TopicsDelta(with_elr)
        clearing.clear_eligible_leaders(ClearElrRecord(topic_name=name))
        [(_, index, partition)] = clearing.changed_partitions()
        assert (index, partition.eligible_leader_replicas, partition.last_known_elr) == (1, (), ())
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)


def test_clearing_all_reaches_topics_of_the_same_delta() -> None:
    delta = TopicsDelta(_with_orders())
    delta.create(TopicRecord(name="new", topic_id=TWO))
    delta.put_partition(_partition(0, TWO, eligible_leader_replicas=[1]))
    delta.clear_eligible_leaders(ClearElrRecord(topic_name=""))
    partition = delta.apply().partition("new", 0)
    assert partition is not None
    assert partition.eligible_leader_replicas == ()


def test_contradictions_are_faults() -> None:
    image = _with_orders()
    with pytest.raises(MetadataFault, match="already exists"):
        TopicsDelta(image).create(TopicRecord(name="orders", topic_id=TWO))
    with pytest.raises(MetadataFault, match="used twice"):
        TopicsDelta(image).create(TopicRecord(name="other", topic_id=ONE))
    with pytest.raises(MetadataFault, match="does not exist"):
        TopicsDelta(image).remove(RemoveTopicRecord(topic_id=TWO))
    with pytest.raises(MetadataFault, match="does not exist"):
        TopicsDelta(image).put_partition(_partition(0, TWO))
    with pytest.raises(MetadataFault, match="does not exist"):
        TopicsDelta(image).change_partition(PartitionChangeRecord(partition_id=9, topic_id=ONE))
    with pytest.raises(MetadataFault, match="does not exist"):
        TopicsDelta(image).clear_eligible_leaders(ClearElrRecord(topic_name="other"))
    twice = TopicsDelta(image)
    twice.remove(RemoveTopicRecord(topic_id=ONE))
    with pytest.raises(MetadataFault, match="does not exist"):
        twice.remove(RemoveTopicRecord(topic_id=ONE))


def test_without_changes_the_image_is_kept() -> None:
    image = _with_orders()
    assert TopicsDelta(image).apply() is image
