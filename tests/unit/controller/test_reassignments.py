from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import finished
from millbeck.kernel.errors import PolicyViolation
from millbeck.metadata.image import MetadataImage, PartitionRegistration
from millbeck.metadata.image.topics import RECOVERING
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


def moving(replicas: list[int] | None, *, index: int = 0, topic: str = "t", **fields: Any) -> Any:
    partition = ReassignablePartition(index, replicas)
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, [partition])], **fields)


class Cluster:
    def __init__(self, controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
        self.controller, self.image, self._replayed = controller, image, replayed

    def move(self, replicas: list[int] | None, **fields: Any) -> tuple[int, str]:
        result = finished(self.controller.alter_partition_reassignments(self.image, moving(replicas, **fields)))
        [topic] = result.response.responses
        [answer] = topic.partitions
        self.image = self._replayed(self.image, result.records)
        return answer.error_code, answer.error_message or ""

    @property
    def partition(self) -> PartitionRegistration:
        return self.image.topics.by_name["t"].partitions[0]


@pytest.fixture
def cluster(
    controller: Controller, cluster_of: Callable[..., MetadataImage], with_topic: WithTopic, replayed: Replayed
) -> Cluster:
    return Cluster(controller, with_topic(cluster_of(1, 2, 3, 4), {"replicas": [1, 2]}), replayed)


def test_a_move_begins_by_adding(cluster: Cluster) -> None:
    assert cluster.move([3, 2]) == (0, "")
    partition = cluster.partition
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ((3, 2, 1), (3,), (1,))
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((1, 2), 1, 5)


def test_a_new_order_is_complete_at_once(cluster: Cluster) -> None:
    assert cluster.move([2, 1]) == (0, "")
    partition = cluster.partition
    assert (partition.replicas, partition.is_being_reassigned, partition.leader) == ((2, 1), False, 1)
    assert partition.leader_epoch == 5


def test_fewer_replicas_that_are_in_sync_are_complete_at_once(cluster: Cluster) -> None:
    assert cluster.move([2]) == (0, "")
    partition = cluster.partition
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((2,), (2,), 2, 6)


def test_a_move_under_way_can_be_turned(cluster: Cluster) -> None:
    cluster.move([3, 2])
    assert cluster.move([4, 2]) == (0, "")
    partition = cluster.partition
    assert (partition.replicas, partition.adding_replicas) == ((4, 2, 1, 3), (4,))
    assert partition.removing_replicas == (1, 3)


def test_a_move_is_cancelled_by_null(cluster: Cluster) -> None:
    cluster.move([3, 4])
    assert cluster.move(None) == (0, "")
    partition = cluster.partition
    assert (set(partition.replicas), partition.is_being_reassigned, partition.leader) == ({1, 2}, False, 1)
    assert partition.leader_epoch == 6
    assert cluster.move(None)[0] == 85


def test_going_back_may_lose_records_only_where_that_is_allowed(
    cluster: Cluster, three_brokers: MetadataImage, with_topic: WithTopic, tracking: MetadataImage
) -> None:
    moved = {"replicas": [3, 1, 2], "adding_replicas": [3], "removing_replicas": [1, 2], "isr": [3], "leader": 3}
    cluster.image = with_topic(three_brokers, moved)
    code, message = cluster.move(None)
    assert (code, "unclean" in message) == (39, True)
    cluster.image = with_topic(three_brokers, moved, unclean_leader_election_enable="true")
    assert cluster.move(None) == (0, "")
    partition = cluster.partition
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), RECOVERING)
    cluster.image = with_topic(three_brokers, moved, unclean_leader_election_enable="true")
    fenced = {
        broker_id: replace(broker, is_fenced=broker_id != 3)
        for broker_id, broker in cluster.image.cluster.brokers.items()
    }
    cluster.image = replace(cluster.image, cluster=replace(cluster.image.cluster, brokers=fenced))
    code, message = cluster.move(None)
    assert (code, "no former ISR member" in message) == (39, True)
    cluster.image = with_topic(tracking, {**moved, "eligible_leader_replicas": [2]}, min_insync_replicas="2")
    assert cluster.move(None) == (0, "")
    assert (cluster.partition.leader, cluster.partition.isr) == (2, (2,))


REFUSED: dict[str, tuple[list[int] | None, dict[str, Any], int, str]] = {
    "nothing under way": (None, {}, 85, ""),
    "unknown broker": ([1, 9], {}, 39, "broker 9"),
    "twice": ([1, 1], {}, 39, "more than once"),
    "nobody": ([], {}, 39, "empty"),
    "unknown topic": ([1], {"topic": "x"}, 3, "named x"),
    "unknown partition": ([1], {"index": 9}, 3, "t:9"),
    "other count": ([1, 2, 3], {"allow_replication_factor_change": False}, 38, "from 2 to 3"),
}


@pytest.mark.parametrize(("replicas", "fields", "code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    cluster: Cluster, replicas: list[int] | None, fields: dict[str, Any], code: int, words: str
) -> None:
    before = cluster.image
    found, message = cluster.move(replicas, **fields)
    assert (found, cluster.image) == (code, before)
    assert words in message


def test_the_count_is_that_of_the_move_under_way(cluster: Cluster) -> None:
    cluster.move([1, 2, 3])
    assert cluster.move([1, 2, 4], allow_replication_factor_change=False)[0] == 0
    assert cluster.move([1, 2], allow_replication_factor_change=False)[0] == 38


def test_what_moves_is_listed(cluster: Cluster) -> None:
    def listed(topics: list[ListPartitionReassignmentsTopics] | None) -> list[Any]:
        request = ListPartitionReassignmentsRequest(topics=topics)
        response = cluster.controller.list_partition_reassignments(cluster.image, request)
        return [
            (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
            for topic in response.topics
            for each in topic.partitions
        ]

    assert listed(None) == []
    cluster.move([3, 2])
    moved = [("t", 0, [3, 2, 1], [3], [1])]
    assert listed(None) == moved
    assert listed([ListPartitionReassignmentsTopics("t", [0, 7])]) == moved
    assert listed([ListPartitionReassignmentsTopics("x", [0]), ListPartitionReassignmentsTopics("t", [])]) == []


def test_too_much_at_once_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.controller.reassignments.RECORD_COUNT_MAX", 0)
    with pytest.raises(PolicyViolation):
        cluster.move([3, 2])
