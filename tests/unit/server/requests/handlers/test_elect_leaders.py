"""ElectLeaders."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from millbeck.server.requests.handlers.elect_leaders import elect_error, handle_elect_leaders
from millbeck.wire.messages.replicas import ElectLeadersRequest, ElectLeadersTopicPartitions
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario
from tests.unit.server.harness.controller_requests import ask

NAMED = ElectLeadersRequest(
    topic_partitions=[ElectLeadersTopicPartitions("t", [0]), ElectLeadersTopicPartitions("x", [0])]
)


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_of_each_partition(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        answer = await ask(harness, handle_elect_leaders, NAMED, version)
        codes = [topic.partition_result[0].error_code for topic in answer.replica_election_results]
        assert (answer.error_code, codes) == (0, [ElectionNotNeeded.code, UnknownTopicOrPartition.code])
        everything = await ask(harness, handle_elect_leaders, ElectLeadersRequest(topic_partitions=None), version)
        assert [topic.partition_result for topic in everything.replica_election_results] == [[]]

    run_scenario(scenario)


@pytest.mark.parametrize("version", range(3))
def test_a_refusal_names_the_partitions_and_where_it_can_itself(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        deny(harness)
        answer = await ask(harness, handle_elect_leaders, NAMED, version)
        code = ClusterAuthorizationFailed.code
        assert answer.error_code == (code if version >= 1 else 0)
        assert {topic.partition_result[0].error_code for topic in answer.replica_election_results} == {code}

    run_scenario(scenario)


def test_what_can_not_be_read_has_no_partitions_to_name() -> None:
    assert elect_error(None, 0, InvalidRequest()) is None
    answer = elect_error(None, 2, InvalidRequest())
    assert answer is not None
    assert (answer.error_code, answer.replica_election_results) == (InvalidRequest.code, [])
