"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, NotController, UnknownTopicOrPartition
from millbeck.server.requests.handlers.brokers import handle_broker_registration
from millbeck.server.requests.handlers.reassignments import (
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
)
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of, registering


def moving(replicas: list[int] | None, topic: str = "t") -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, [ReassignablePartition(0, replicas)])])


@pytest.mark.parametrize("version", [0, 1])
def test_a_move_is_listed_until_it_is_cancelled(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await ask(harness, handle_broker_registration, registering(harness))
        for replicas, listed in (([2], [([2, 1], [2], [1])]), (None, [])):
            answer = await ask(harness, handle_alter_partition_reassignments, moving(replicas), version)
            (partition,) = answer.responses[0].partitions
            assert (answer.error_code, partition.error_code, partition.error_message) == (0, 0, None)
            answer = await ask(harness, handle_list_partition_reassignments, ListPartitionReassignmentsRequest())
            found = [
                (each.replicas, each.adding_replicas, each.removing_replicas)
                for topic in answer.topics
                for each in topic.partitions
            ]
            assert (answer.error_code, found) == (0, listed)
        answer = await ask(harness, handle_alter_partition_reassignments, moving([2], "x"), version)
        assert answer.responses[0].partitions[0].error_code == UnknownTopicOrPartition.code

    run_scenario(scenario)


def test_both_need_permission() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        deny(harness)
        answer = await ask(harness, handle_alter_partition_reassignments, moving([1]))
        assert answer.error_code == ClusterAuthorizationFailed.code
        answer = await ask(harness, handle_list_partition_reassignments, ListPartitionReassignmentsRequest())
        assert answer.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)


def test_only_the_active_controller_knows_what_moves() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await broker_of(harness).quorum.stop()
        with pytest.raises(NotController):
            await ask(harness, handle_list_partition_reassignments, ListPartitionReassignmentsRequest())

    run_scenario(scenario)
