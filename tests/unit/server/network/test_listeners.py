"""The listeners of a node: each for its audience, all of them counted together."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.server.requests.routes import CONTROLLER_ROUTES, ROUTES
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest, DescribeClusterRequest, MetadataRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario

TWO: dict[str, str] = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller_listener_names": "CONTROLLER",
}


async def at_controller(environment: Environment) -> Client:
    _, client = await environment.network.connect(Client, host="n1", port=9093)
    return cast(Client, client)


def test_each_listener_tells_what_it_serves_and_serves_nothing_else() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        controller = await at_controller(environment)
        for each, routes in ((client, ROUTES), (controller, CONTROLLER_ROUTES)):
            request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
            told = {version.api_key for version in (await each.ask(request, 3)).api_keys}
            assert told == {route.api_key for route in routes}
        with pytest.raises(ConnectionError):
            await controller.ask(MetadataRequest(), 9)
        assert controller.is_lost

    run_scenario(scenario, **TWO)


def test_administration_is_done_at_the_controllers_listener_too() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        controller = await at_controller(environment)
        request = CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=1, replication_factor=1)])
        (result,) = (await controller.ask(request, 7)).topics
        assert result.error_code == 0
        answer = await controller.ask(DescribeClusterRequest(endpoint_type=2), 1)
        assert [(each.broker_id, each.port) for each in answer.brokers] == [(1, 9093)]
        assert answer.controller_id == 1
        (topic,) = (await client.ask(MetadataRequest(topics=None), 9)).topics
        assert topic.name == "t"

    run_scenario(scenario, **TWO)


async def are_lost(environment: Environment, port: int, count: int) -> list[bool]:
    peers = []
    for _ in range(count):
        _, peer = await environment.network.connect(Client, host="n1", port=port)
        peers.append(cast(Client, peer))
    await asyncio.sleep(0.1)
    return [each.is_lost for each in peers]


THREE: dict[str, str] = {
    "listeners": "BROKERS://:9094,CLIENTS://:9092,CONTROLLER://:9093",
    "listener_security_protocol_map": "BROKERS:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter_broker_listener_name": "BROKERS",
    "controller_listener_names": "CONTROLLER",
}


def test_connections_are_counted_over_all_listeners() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await are_lost(environment, 9094, 1) == [False]
        assert await are_lost(environment, 9092, 2) == [False, True]

    run_scenario(scenario, max_connections="3", **THREE)


def test_clients_cannot_take_the_connections_that_nodes_need() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await are_lost(environment, 9092, 2) == [False, True]
        assert await are_lost(environment, 9094, 2) == [False, False]
        assert await are_lost(environment, 9093, 2) == [False, False]

    run_scenario(scenario, max_connections="2", **THREE)


def test_where_brokers_and_clients_share_a_listener_its_connections_are_limited() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await are_lost(environment, 9092, 2) == [False, True]

    run_scenario(scenario, max_connections="2", **TWO)


def test_a_listener_may_have_a_limit_of_its_own_and_it_is_dynamic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await are_lost(environment, 9094, 2) == [False, True]
        assert await are_lost(environment, 9092, 3) == [False, False, False]
        config = IncrementalAlterableConfig("listener.name.brokers.max.connections", 0, "3")
        request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(4, "1", [config])])
        (result,) = (await client.ask(request, 1)).responses
        assert result.error_code == 0
        await asyncio.sleep(0.1)
        assert await are_lost(environment, 9094, 3) == [False, False, True]

    run_scenario(scenario, **{"listener.name.brokers.max.connections": "1"}, **THREE)


RATED: dict[str, str] = {"max_connection_creation_rate": "2", "quota_window_num": "2", **THREE}


def test_connections_above_the_creation_rate_wait_and_none_is_closed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        of_brokers, of_clients, _ = harness.node.listeners

        async def accepted() -> list[int]:
            found = []
            for _ in range(8):
                found.append(of_clients.connections_accepted - before)
                await asyncio.sleep(0.5)
            return found

        await asyncio.sleep(10)
        before = of_clients.connections_accepted
        # Two of a full window, one above the rate; then two a second.
        others = asyncio.ensure_future(accepted())
        assert await are_lost(environment, 9092, 8) == [False] * 8
        found = await others
        assert found[1] == 3
        assert all(count <= 3 + number for number, count in enumerate(found))
        assert found[-1] == 8
        # Other nodes do not wait for clients.
        before = of_brokers.connections_accepted
        assert await are_lost(environment, 9094, 8) == [False] * 8
        assert of_brokers.connections_accepted == before + 8
        rendered = harness.node.registry.render()
        assert 'millbeck_connection_accept_throttle_seconds_total{listener="CLIENTS"} 2' in rendered
        assert 'millbeck_connection_accept_throttle_seconds_total{listener="BROKERS"} 0' in rendered

    run_scenario(scenario, **RATED)


def test_the_creation_rate_of_a_listener_is_dynamic_and_its_wait_ends_with_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        listener = harness.node.listeners[0]

        async def alter(rate: str | None) -> None:
            name = "listener.name.brokers.max.connection.creation.rate"
            config = IncrementalAlterableConfig(name, 0 if rate else 1, rate)
            request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(4, "1", [config])])
            (result,) = (await client.ask(request, 1)).responses
            assert result.error_code == 0
            await asyncio.sleep(0.1)

        before = listener.connections_accepted
        await are_lost(environment, 9094, 3)
        assert listener.connections_accepted == before + 3
        await alter("0")  # one in each window, as in Kafka
        await are_lost(environment, 9094, 3)
        assert listener.connections_accepted == before + 4
        await alter(None)
        assert listener.connections_accepted == before + 6
        await alter("0")
        await are_lost(environment, 9094, 3)  # and it stops with connections waiting

    run_scenario(scenario, **THREE)


def test_endpoints_are_those_of_the_names_asked_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        listening: Any = harness.node.listening
        (endpoint,) = listening.endpoints(["CONTROLLER"])
        assert (endpoint.listener, endpoint.host, endpoint.port) == ("CONTROLLER", harness.machine.name, 9093)
        assert listening.endpoints([]) == ()

    run_scenario(scenario, **TWO)
