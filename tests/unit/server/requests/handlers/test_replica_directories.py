"""AssignReplicasToDirs."""

from __future__ import annotations

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, UnknownTopicOrPartition
from millbeck.server.requests.handlers.broker_requests import handle_assign_replicas_to_dirs
from millbeck.wire.messages.replicas import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of


def test_replicas_are_assigned_one_by_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        registration = broker_of(harness).quorum.image.cluster.brokers[1]
        directory = registration.directories[0]
        partitions = [AssignReplicasToDirsPartition(index) for index in (0, 5)]
        request = AssignReplicasToDirsRequest(
            1,
            registration.epoch,
            [AssignReplicasToDirsDirectory(directory, [AssignReplicasToDirsTopic(topic_id, partitions)])],
        )
        answer = await ask(harness, handle_assign_replicas_to_dirs, request)
        codes = [each.error_code for each in answer.directories[0].topics[0].partitions]
        assert (answer.error_code, codes) == (0, [0, UnknownTopicOrPartition.code])
        deny(harness)
        denied = await ask(harness, handle_assign_replicas_to_dirs, request)
        assert denied.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
