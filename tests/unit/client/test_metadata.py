"""A client's view of the cluster only ever moves forward."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.metadata import BrokerMetadata, Metadata
from millbeck.kernel.errors import LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition
from millbeck.kernel.ids import ZERO_UUID
from millbeck.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_ID, SECOND_ID = b"1" * 16, b"2" * 16


def partition(number: int, leader_id: int, leader_epoch: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=number, leader_id=leader_id, leader_epoch=leader_epoch)


def topic(name: str, *partitions: MetadataResponsePartition, topic_id: bytes = FIRST_ID, **more: Any) -> Any:
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=list(partitions), **more)


def answer(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host=f"h{node}", port=9000 + node) for node in brokers],
        cluster_id="c",
        controller_id=2,
        topics=list(topics),
    )


def known(*topics: MetadataResponseTopic) -> Metadata:
    metadata = Metadata()
    metadata.update(answer(*topics))
    return metadata


def test_an_answer_is_taken_over() -> None:
    metadata = known(topic("a", partition(1, 2, 5), partition(0, 1, 4)))
    assert (metadata.cluster_id, metadata.controller_id) == ("c", 2)
    assert metadata.leader("a", 1) == BrokerMetadata(2, Address("h2", 9002))
    assert list(metadata.topics["a"].partitions) == [0, 1]
    assert metadata.topics["a"].partition_count == 2
    assert metadata.topic_name(FIRST_ID) == "a"
    assert metadata.topic_id("a") == FIRST_ID


EPOCHS = {
    "later": ((2, 6), (2, 6)),
    "equal": ((2, 5), (2, 5)),
    "earlier": ((2, 4), (1, 5)),
    "not told": ((2, -1), (2, -1)),
}


@pytest.mark.parametrize(("told", "expected"), EPOCHS.values(), ids=EPOCHS.keys())
def test_leader_epochs_never_go_back(told: tuple[int, int], expected: tuple[int, int]) -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    metadata.update(answer(topic("a", partition(0, *told))))
    view = metadata.partition("a", 0)
    assert (view.leader_id, view.leader_epoch) == expected


def test_a_topic_made_again_starts_afresh() -> None:
    metadata = known(topic("a", partition(0, 1, 5), partition(1, 1, 5)))
    metadata.update(answer(topic("a", partition(0, 2, 0), topic_id=SECOND_ID)))
    assert metadata.partition("a", 0).leader_epoch == 0
    assert metadata.topics["a"].partition_count == 1
    assert metadata.topic_name(FIRST_ID) is None
    assert metadata.topic_name(SECOND_ID) == "a"


def test_an_answer_without_ids_keeps_the_one_known() -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    metadata.update(answer(topic("a", partition(0, 2, 3), topic_id=ZERO_UUID)))
    assert metadata.topic_id("a") == FIRST_ID
    assert metadata.partition("a", 0).leader_epoch == 5


def test_a_topic_that_is_gone_is_forgotten_with_its_reason() -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    metadata.update(answer(MetadataResponseTopic(name="a", error_code=UnknownTopicOrPartition.code)))
    assert "a" not in metadata.topics
    assert metadata.topic_name(FIRST_ID) is None
    with pytest.raises(UnknownTopicOrPartition):
        metadata.leader("a", 0)


def test_another_error_keeps_what_is_known_and_passes() -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    metadata.update(answer(MetadataResponseTopic(name="a", error_code=LeaderNotAvailable.code)))
    assert metadata.leader("a", 0).node_id == 1
    assert isinstance(metadata.errors["a"], LeaderNotAvailable)
    metadata.update(answer(topic("a", partition(0, 1, 5))))
    assert not metadata.errors


def test_the_broker_s_reason_is_raised_for_a_topic_never_seen() -> None:
    metadata = known(MetadataResponseTopic(name="secret", error_code=TopicAuthorizationFailed.code))
    with pytest.raises(TopicAuthorizationFailed):
        metadata.partition("secret", 0)


def test_a_complete_answer_forgets_the_rest() -> None:
    metadata = known(topic("a", partition(0, 1, 5)), topic("b", partition(0, 1, 5), topic_id=SECOND_ID))
    metadata.update(answer(topic("b", partition(0, 1, 5), topic_id=SECOND_ID)), is_complete=True)
    assert list(metadata.topics) == ["b"]


def test_nobody_leads() -> None:
    metadata = known(topic("a", partition(0, -1, 5), partition(1, 9, 5)))
    for number in (0, 1):
        with pytest.raises(LeaderNotAvailable):
            metadata.leader("a", number)
    with pytest.raises(UnknownTopicOrPartition, match="2 partitions"):
        metadata.leader("a", 2)


LEADERS = {
    "news": (("a", 0, 2, 6), True, 2),
    "old news": (("a", 0, 2, 5), False, 1),
    "nobody": (("a", 0, -1, 6), False, 1),
    "another partition": (("a", 7, 2, 6), False, 1),
    "another topic": (("b", 0, 2, 6), False, 1),
}


@pytest.mark.parametrize(("told", "is_news", "leader_id"), LEADERS.values(), ids=LEADERS.keys())
def test_a_leader_named_in_passing(told: tuple[str, int, int, int], is_news: bool, leader_id: int) -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    assert metadata.set_leader(*told) is is_news
    assert metadata.partition("a", 0).leader_id == leader_id


def test_an_answer_without_brokers_keeps_them() -> None:
    metadata = known()
    metadata.update(answer(brokers=()))
    assert sorted(metadata.brokers) == [1, 2]


def test_brokers_named_in_passing_do_not_replace_known_ones() -> None:
    metadata = known()
    metadata.learn_broker(1, "elsewhere", 1)
    metadata.learn_broker(3, "h3", 9003, "r")
    assert metadata.brokers[1].address == Address("h1", 9001)
    assert metadata.brokers[3] == BrokerMetadata(3, Address("h3", 9003), "r")


def test_topics_can_be_forgotten() -> None:
    metadata = known(topic("a", partition(0, 1, 5)))
    metadata.forget_topics(["a", "never seen"])
    assert not metadata.topics
    assert metadata.topic_id("a") == ZERO_UUID
