"""Decisions about thousands of partitions: how much is done between two places where the loop may do other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import broker_changes, elections
from millbeck.controller.machine import Controller
from millbeck.controller.result import PARTITIONS_AT_ONCE, RECORDS_AT_ONCE, Steps
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionTopic,
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopic,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millbeck.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

COUNT = 3000


@pytest.fixture
def large(three_brokers: MetadataImage, with_topic: Callable[..., MetadataImage]) -> MetadataImage:
    """A topic whose partitions are led by 1, which is not their preferred leader."""
    return with_topic(three_brokers, *({"replicas": [2, 1], "leader": 1} for _ in range(COUNT)))


def step_count(steps: Steps[Any]) -> int:
    return sum(1 for _ in steps)


def test_creating_gives_way_for_every_so_many_records(controller: Controller, three_brokers: MetadataImage) -> None:
    least = COUNT // RECORDS_AT_ONCE
    placed = CreateTopicsRequest(topics=[CreatableTopic("t", COUNT, 2)])
    by_hand = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(index, [1, 2]) for index in range(COUNT)])
    # Placed (one round of the pattern), made, and told as records.
    assert step_count(controller.create_topics(three_brokers, placed)) >= 2 * least
    assert step_count(controller.create_topics(three_brokers, CreateTopicsRequest(topics=[by_hand]))) >= 2 * least


def test_adding_partitions_gives_way_for_every_so_many_records(controller: Controller, large: MetadataImage) -> None:
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 2 * COUNT, None)])
    assert step_count(controller.create_partitions(large, request)) >= COUNT // RECORDS_AT_ONCE


@pytest.mark.parametrize(
    "change", [broker_changes.fenced, broker_changes.records_for_controlled_shutdown, broker_changes.unregistered]
)
def test_a_broker_that_goes_gives_way(
    change: Callable[..., Steps[Any]], large: MetadataImage, make_rules: Callable[[], Any]
) -> None:
    steps = step_count(change(large, make_rules(), large.cluster.brokers[1]))
    assert steps > COUNT // RECORDS_AT_ONCE


def test_looking_for_what_is_not_there_gives_way(large: MetadataImage, make_rules: Callable[[], Any]) -> None:
    rules = make_rules()
    looks = (
        broker_changes.unfenced(large, rules, large.cluster.brokers[3]),
        broker_changes.records_for_partial_fencing(large, rules, large.cluster.brokers[3], partitions_max=10),
        elections.elect_unclean_leaders(large, rules),
    )
    for look in looks:
        assert step_count(look) >= COUNT // PARTITIONS_AT_ONCE


def test_elections_give_way(controller: Controller, large: MetadataImage, make_rules: Callable[[], Any]) -> None:
    balancing = step_count(elections.balance_leaders(large, make_rules()))
    assert balancing >= elections.ELECTION_COUNT_MAX // RECORDS_AT_ONCE
    asked = step_count(controller.elect_leaders(large, ElectLeadersRequest(0, None)))
    assert asked == COUNT // RECORDS_AT_ONCE


def test_what_names_each_partition_or_topic_gives_way_after_each(controller: Controller, large: MetadataImage) -> None:
    topic = large.topics.by_name["t"]
    epoch = large.cluster.brokers[1].epoch
    changed = [
        AlterPartitionPartition(index, each.leader_epoch, new_isr=[1], partition_epoch=each.partition_epoch)
        for index, each in topic.partitions.items()
    ]
    moved = [ReassignablePartition(index, [3, 1]) for index in range(COUNT)]
    placed = [AssignReplicasToDirsPartition(index) for index in range(COUNT)]
    directory = AssignReplicasToDirsDirectory(bytes(16), [AssignReplicasToDirsTopic(topic.topic_id, placed)])
    names = [f"t{index}" for index in range(COUNT)]
    set_to = [IncrementalAlterableConfig("retention.ms", 0, "5")]
    for steps in (
        controller.alter_partition(
            large, AlterPartitionRequest(1, epoch, [AlterPartitionTopic(topic.topic_id, changed)])
        ),
        controller.alter_partition_reassignments(
            large, AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", moved)])
        ),
        controller.assign_replicas_to_directories(large, AssignReplicasToDirsRequest(1, epoch, [directory])),
        controller.alter_configs(
            large,
            AlterConfigsRequest(
                [AlterConfigsResource(2, name, [AlterableConfig("retention.ms", "5")]) for name in names]
            ),
        ),
        controller.incremental_alter_configs(
            large, IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(2, name, set_to) for name in names])
        ),
        controller.delete_topics(large, DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names])),
    ):
        assert step_count(steps) == COUNT
