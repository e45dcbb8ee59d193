"""The controller of a node follows the node's settings."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import UnsupportedVersion
from millbeck.server.controller_role import ControllerRole
from millbeck.server.metadata.channels import ControllerChannels
from millbeck.simulation.cluster import CONTROLLER_PORT, SimCluster
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.metadata import DescribeClusterRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario


def test_defaults_of_new_topics_are_the_nodes() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=-1, replication_factor=-1)])
        (result,) = (await client.ask(request, 7)).topics
        assert (result.error_code, result.num_partitions) == (0, 4)

    run_scenario(scenario, num_partitions="4", default_replication_factor="1")


def test_a_controller_with_a_listener_says_where_it_is_and_one_without_does_not() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        controllers = harness.node.broker.image.cluster.controllers
        found = {number: [each.port for each in one.endpoints] for number, one in controllers.items()}
        assert found == ({1: [9093]} if harness.node.config.controller_addresses() else {})

    run_scenario(scenario)
    run_scenario(scenario, listeners="PLAINTEXT://:9092,CTL://:9093", controller_listener_names="CTL")


def test_a_controller_waits_for_a_cluster_that_has_a_place_for_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        broker = harness.node.broker
        codes = [UnsupportedVersion.code, 0]

        class Channel:
            async def request(self, message: object, response: type[Any], *, timeout_s: float, **_: Any) -> Any:
                return response(error_code=codes.pop(0), error_message=None)

        part = ControllerRole(broker, cast(ControllerChannels, SimpleNamespace(controllers=Channel())))
        image = broker.image
        broker.image = replace(image, features=replace(image.features, levels={"metadata.version": 14}))
        joining = asyncio.create_task(part.join(()))
        await asyncio.sleep(5)
        assert len(codes) == 2, "nobody is asked who can only refuse"
        broker.image = image
        await asyncio.wait_for(joining, 5)
        assert codes == [], "a controller that is behind is asked again"

    run_scenario(scenario)


def test_every_controller_of_a_new_cluster_is_known_and_names_the_active_one() -> None:
    cluster = SimCluster(4, is_combined=False)

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        for member in cluster.controllers:
            async with asyncio.timeout(30):
                while len(await _controllers_at(environment, member.name)) < 3:
                    await asyncio.sleep(0.2)
            client = await _connect(environment, member.name)
            answer = await client.ask(DescribeClusterRequest(endpoint_type=2), 2)
            client.close()
            active = cluster.active_controller()
            assert active is not None
            assert answer.controller_id == active.number
            assert [(each.broker_id, each.port) for each in answer.brokers] == [
                (each.number, CONTROLLER_PORT) for each in cluster.controllers
            ]

    with cluster.world as world:
        world.run(scenario, limit_s=60)


async def _controllers_at(environment: Environment, machine: str) -> list[int]:
    try:
        client = await _connect(environment, machine)
    except OSError:
        return []
    try:
        answer = await client.ask(DescribeClusterRequest(endpoint_type=2), 2)
        return [each.broker_id for each in answer.brokers]
    finally:
        client.close()


async def _connect(environment: Environment, machine: str) -> WireClient:
    client = WireClient()
    await environment.network.connect(lambda: client, host=machine, port=CONTROLLER_PORT)
    return client
