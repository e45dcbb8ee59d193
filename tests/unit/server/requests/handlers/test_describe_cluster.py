"""DescribeCluster: brokers as the client can reach them."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import MismatchedEndpointType, UnsupportedEndpointType
from millbeck.security.authorizer import OPERATIONS_NOT_ASKED, SUPPORTED_OPERATIONS, Operation, ResourceType
from millbeck.wire.messages.metadata import DescribeClusterRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import deny, run_scenario


@pytest.mark.parametrize("version", range(3))
def test_every_version_names_the_brokers(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        response = await client.ask(DescribeClusterRequest(), version)
        assert (response.error_code, response.cluster_id, response.controller_id) == (0, harness.node.cluster_id, 1)
        (broker,) = response.brokers
        assert (broker.broker_id, broker.host, broker.port) == (1, harness.machine.address, 9092)
        assert not broker.is_fenced
        assert response.cluster_authorized_operations == OPERATIONS_NOT_ASKED

    run_scenario(scenario)


def test_fenced_brokers_are_shown_on_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        broker = harness.node.broker
        from dataclasses import replace

        cluster = broker.image.cluster
        fenced = {number: replace(each, is_fenced=True) for number, each in cluster.brokers.items()}
        broker.image = replace(broker.image, cluster=replace(cluster, brokers=fenced))
        for included, expected in ((False, []), (True, [True])):
            response = await client.ask(DescribeClusterRequest(include_fenced_brokers=included), 2)
            assert [each.is_fenced for each in response.brokers] == expected
        assert (await client.ask(DescribeClusterRequest(), 1)).brokers == []

    run_scenario(scenario)


def test_controllers_are_asked_elsewhere() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for kind, error in ((2, MismatchedEndpointType), (0, UnsupportedEndpointType), (77, UnsupportedEndpointType)):
            response = await client.ask(DescribeClusterRequest(endpoint_type=kind), 1)
            assert response.error_code == error.code
            assert response.error_message

    run_scenario(scenario)


def test_authorized_operations_are_told_on_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        everything = sum(1 << each for each in SUPPORTED_OPERATIONS[ResourceType.CLUSTER])
        assert (await client.ask(request, 0)).cluster_authorized_operations == everything
        deny(harness, Operation.ALTER)
        assert (await client.ask(request, 0)).cluster_authorized_operations == everything - (1 << Operation.ALTER)
        deny(harness)
        response = await client.ask(request, 0)
        assert (response.error_code, response.cluster_authorized_operations) == (0, 0)
        assert len(response.brokers) == 1

    run_scenario(scenario)
