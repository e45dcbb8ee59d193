"""Administration of replicas, against brokers that answer as they are told."""

from __future__ import annotations

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import Reassignment
from millbeck.kernel.errors import (
    BrokerIdNotRegistered,
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    LogDirNotFound,
    NotController,
    UnknownServerError,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages import replicas as replicas_messages
from millbeck.wire.messages.nodes import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def test_electing_leaders_of_some_and_of_all() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        asked = []

        def answer(call: Call) -> replicas_messages.ElectLeadersResponse:
            asked.append(call.message)
            result = replicas_messages.ElectLeadersPartitionResult
            return replicas_messages.ElectLeadersResponse(
                replica_election_results=[
                    replicas_messages.ReplicaElectionResult("a", [result(0), result(1, ElectionNotNeeded.code, "why")])
                ]
            )

        cluster.on(replicas_messages.ElectLeadersRequest, answer)
        async with open_admin(cluster) as admin:
            outcomes = await admin.elect_leaders([A0, A1], unclean=True)
            await admin.elect_leaders()
        assert list(outcomes.succeeded) == [A0]
        assert isinstance(outcomes.failed[A1], ElectionNotNeeded)
        assert [(each.topic, each.partitions) for each in asked[0].topic_partitions] == [("a", [0, 1])]
        assert (asked[0].election_type, asked[1].election_type, asked[1].topic_partitions) == (1, 0, None)

    simulate(scenario)


def test_replicas_move_between_the_directories_of_each_broker() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        asked: dict[int, list[tuple[str, str, list[int]]]] = {}

        def answer(call: Call) -> replicas_messages.AlterReplicaLogDirsResponse:
            asked[call.node_id] = [
                (each.path, topic.name, list(topic.partitions)) for each in call.message.dirs for topic in each.topics
            ]
            code = LogDirNotFound.code if call.node_id == 2 else 0
            results = [
                replicas_messages.AlterReplicaLogDirTopicResult(
                    topic_name=name, partitions=[replicas_messages.AlterReplicaLogDirPartitionResult(each, code)]
                )
                for _, name, indexes in asked[call.node_id]
                for each in indexes
                if name != "b"
            ]
            return replicas_messages.AlterReplicaLogDirsResponse(results=results)

        cluster.on(replicas_messages.AlterReplicaLogDirsRequest, answer)
        async with open_admin(cluster) as admin:
            places = {(1, A0): "/x", (1, A1): "/x", (2, A0): "/y", (1, B0): "/z"}
            outcomes = await admin.alter_replica_log_dirs(places)
        assert asked == {1: [("/x", "a", [0, 1]), ("/z", "b", [0])], 2: [("/y", "a", [0])]}
        assert list(outcomes.succeeded) == [(1, A0), (1, A1)]
        assert isinstance(outcomes.failed[2, A0], LogDirNotFound)
        assert isinstance(outcomes.failed[1, B0], UnknownServerError)

    simulate(scenario, brokers=2)


def test_moving_partitions_and_taking_a_move_back() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        codes = {("a", 1): InvalidReplicaAssignment.code}
        asked = []

        def answer(call: Call) -> replicas_messages.AlterPartitionReassignmentsResponse:
            asked.append(call.message)
            return replicas_messages.AlterPartitionReassignmentsResponse(
                error_message=None,
                responses=[
                    replicas_messages.ReassignableTopicResponse(
                        topic.name,
                        [
                            replicas_messages.ReassignablePartitionResponse(
                                each.partition_index, codes.get((topic.name, each.partition_index), 0), None
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in call.message.topics
                ],
            )

        cluster.on(replicas_messages.AlterPartitionReassignmentsRequest, answer)
        cluster.next(
            replicas_messages.AlterPartitionReassignmentsRequest,
            replicas_messages.AlterPartitionReassignmentsResponse(error_code=NotController.code, error_message=None),
        )
        async with open_admin(cluster) as admin:
            outcomes = await admin.alter_reassignments({A0: [1, 2], A1: [1], B0: None})
        assert outcomes.succeeded == {A0: True, B0: True}
        assert isinstance(outcomes.failed[A1], InvalidReplicaAssignment)
        sent = {topic.name: [each.replicas for each in topic.partitions] for topic in asked[0].topics}
        assert sent == {"a": [[1, 2], [1]], "b": [None]}

    simulate(scenario)


def test_what_is_moving() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(
            replicas_messages.ListPartitionReassignmentsRequest,
            lambda call: replicas_messages.ListPartitionReassignmentsResponse(
                error_message=None,
                topics=[
                    replicas_messages.OngoingTopicReassignment(
                        "a", [replicas_messages.OngoingPartitionReassignment(0, [1, 2, 3], [3], [1])]
                    )
                ],
            ),
        )
        async with open_admin(cluster) as admin:
            moving = await admin.list_reassignments([A0])
        assert moving == {A0: Reassignment(replicas=(1, 2, 3), adding=(3,), removing=(1,))}

    simulate(scenario)


@pytest.mark.parametrize("error", [None, BrokerIdNotRegistered, ClusterAuthorizationFailed])
def test_forgetting_a_broker(error: type[Exception] | None) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        code = getattr(error, "code", 0)
        cluster.on(
            UnregisterBrokerRequest, lambda call: UnregisterBrokerResponse(error_code=code, error_message="text")
        )
        async with open_admin(cluster) as admin:
            if error is None:
                await admin.unregister_broker(7)
            else:
                with pytest.raises(error, match="text"):
                    await admin.unregister_broker(7)

    simulate(scenario)
