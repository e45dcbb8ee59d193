from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.partitions import leaders_on_fence, leaders_on_unfence
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import PartitionChangeRecord
from millbeck.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from millbeck.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


@pytest.fixture
def image(controller: Controller, three_brokers: MetadataImage, replayed: Replayed) -> MetadataImage:
    """``a`` has two partitions with two replicas each, ``b`` one with one."""
    topics = [CreatableTopic("a", 2, 2), CreatableTopic("b", 1, 1)]
    return replayed(three_brokers, controller.create_topics(three_brokers, CreateTopicsRequest(topics=topics)).records)


def _to(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    by_hand = [CreatePartitionsAssignment(brokers) for brokers in assignments] if assignments else None
    return CreatePartitionsTopic(name=name, count=count, assignments=by_hand)


def test_new_partitions_follow_the_old_ones(controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
    result = controller.create_partitions(image, CreatePartitionsRequest(topics=[_to("a", 5), _to("b", 2, [3])]))
    assert [answer.error_code for answer in result.response.results] == [0, 0]
    after = replayed(image, result.records)
    a, b = after.topics.by_name["a"], after.topics.by_name["b"]
    assert sorted(a.partitions) == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in a.partitions.values()} == {2}
    assert (b.partitions[1].replicas, b.partitions[1].leader) == ((3,), 3)
    before = image.topics.by_name["a"]
    assert all(a.partitions[index] is before.partitions[index] for index in before.partitions)


def test_validating_changes_nothing(controller: Controller, image: MetadataImage) -> None:
    request = CreatePartitionsRequest(topics=[_to("a", 5)], validate_only=True)
    result = controller.create_partitions(image, request)
    assert (result.records, result.response.results[0].error_code) == ([], 0)


REFUSED = {
    "fewer": (_to("a", 1), 37, "The topic a currently has 2 partition(s); 1 would not be an increase."),
    "none": (_to("a", 0), 37, "The topic a currently has 2 partition(s); 0 would not be an increase."),
    "as many": (_to("a", 2), 37, "Topic already has 2 partition(s)."),
    "unknown topic": (_to("x", 2), 3, ""),
    "too few assignments": (_to("a", 4, [1, 2]), 39, "Attempted to add 2 additional partition(s), but only 1"),
    "too many assignments": (_to("a", 3, [1, 2], [2, 3]), 39, "Attempted to add 1 additional partition(s), but only 2"),
    "unknown broker": (_to("a", 3, [1, 9]), 39, "broker 9"),
    "other replication": (_to("a", 3, [1]), 39, "1 replica(s)"),
    "too many": (_to("a", 10_003), 44, "Excessively large"),
}


@pytest.mark.parametrize(("topic", "code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    controller: Controller, image: MetadataImage, topic: CreatePartitionsTopic, code: int, words: str
) -> None:
    result = controller.create_partitions(image, CreatePartitionsRequest(topics=[topic]))
    [answer] = result.response.results
    assert result.records == []
    assert answer.error_code == code
    assert words in (answer.error_message or "")


def test_a_topic_twice_is_refused_and_others_are_not(controller: Controller, image: MetadataImage) -> None:
    request = CreatePartitionsRequest(topics=[_to("a", 3), _to("b", 2), _to("a", 4)])
    answers = controller.create_partitions(image, request).response.results
    assert [(answer.name, answer.error_code) for answer in answers] == [("a", 42), ("b", 0)]


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_fenced_broker_leads_nothing_and_others_take_over(
    image: MetadataImage, replayed: Replayed, gone: int
) -> None:
    after = replayed(image, leaders_on_fence(image, gone))
    for name, topic in after.topics.by_name.items():
        for index, partition in topic.partitions.items():
            before = image.topics.by_name[name].partitions[index]
            assert partition.leader != gone
            if len(before.replicas) > 1:
                assert gone not in partition.isr
                assert partition.leader in partition.isr
            elif before.leader == gone:
                # The last one in sync stays in the ISR: nobody else has the data.
                assert (partition.leader, partition.isr) == (-1, (gone,))
            assert (partition.leader_epoch > before.leader_epoch) == (before.leader == gone)
            assert (partition is before) == (gone not in before.isr)


def test_who_comes_back_leads_what_nobody_leads(image: MetadataImage, replayed: Replayed) -> None:
    alone = image.topics.by_name["b"].partitions[0].leader
    fenced = replayed(image, leaders_on_fence(image, alone))
    assert fenced.topics.by_name["b"].partitions[0].leader == -1
    back = replayed(fenced, leaders_on_unfence(fenced, alone))
    partition = back.topics.by_name["b"].partitions[0]
    assert (partition.leader, partition.leader_epoch) == (alone, 2)


def test_who_restarts_leads_again_in_a_new_epoch(image: MetadataImage) -> None:
    alone = image.topics.by_name["b"].partitions[0].leader
    changes = leaders_on_unfence(image, alone)
    own = [record for record in changes if isinstance(record, PartitionChangeRecord)]
    assert {record.leader for record in own} == {alone}
    assert {(record.topic_id, record.partition_id) for record in own} == {
        (topic.topic_id, index)
        for topic in image.topics.by_name.values()
        for index, partition in topic.partitions.items()
        if partition.leader == alone
    }
