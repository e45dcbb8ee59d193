from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import finished
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


@pytest.fixture
def image(controller: Controller, three_brokers: MetadataImage, replayed: Replayed) -> MetadataImage:
    """``a`` has two partitions with two replicas each, ``b`` one with one."""
    topics = [CreatableTopic("a", 2, 2), CreatableTopic("b", 1, 1)]
    return replayed(
        three_brokers, finished(controller.create_topics(three_brokers, CreateTopicsRequest(topics=topics))).records
    )


def _to(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    by_hand = [CreatePartitionsAssignment(brokers) for brokers in assignments] if assignments else None
    return CreatePartitionsTopic(name=name, count=count, assignments=by_hand)


def test_new_partitions_follow_the_old_ones(controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
    result = finished(
        controller.create_partitions(image, CreatePartitionsRequest(topics=[_to("a", 5), _to("b", 2, [3])]))
    )
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
    result = finished(controller.create_partitions(image, request))
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
    result = finished(controller.create_partitions(image, CreatePartitionsRequest(topics=[topic])))
    [answer] = result.response.results
    assert result.records == []
    assert answer.error_code == code
    assert words in (answer.error_message or "")


def test_a_topic_twice_is_refused_and_others_are_not(controller: Controller, image: MetadataImage) -> None:
    request = CreatePartitionsRequest(topics=[_to("a", 3), _to("b", 2), _to("a", 4)])
    answers = finished(controller.create_partitions(image, request)).response.results
    assert [(answer.name, answer.error_code) for answer in answers] == [("a", 42), ("b", 0)]
