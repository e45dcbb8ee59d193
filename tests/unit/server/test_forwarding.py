"""What only the controller can do reaches it in an envelope, and the answer comes back as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asking import Denies, create, in_house
from house import Client, House
from leading import SaysWhoLeads, as_quorum

from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    NotController,
    RequestTimedOut,
    TopicAuthorizationFailed,
)
from millbeck.security.authorizer import Operation
from millbeck.server.controller_channel import ControllerChannel
from millbeck.server.forwarding import Forwarder
from millbeck.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}


def forwarding(house: House, *, port: int = 9093) -> SaysWhoLeads:
    """Let the node believe that another one decides, which is itself by way of its controllers' listener."""
    assert house.node is not None
    broker = house.node.broker
    quorum = SaysWhoLeads()
    channel = ControllerChannel(
        broker.environment,
        as_quorum(quorum),
        local=None,
        broker=broker,
        settings=lambda: ConnectionSettings(connect_timeout_s=1.0),
    )
    quorum.lead(1, port)
    broker.forwarder = Forwarder(as_quorum(quorum), channel, is_controller=True)
    return quorum


def creation(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name, num_partitions=2, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_forwarded_request_is_answered_in_its_own_version(version: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        forwarding(house)
        (result,) = (await client.ask(creation("t"), version)).topics
        assert (result.name, result.error_code) == ("t", 0)
        (again,) = (await client.ask(creation("t"), version)).topics
        assert again.error_code == 36

    in_house(scenario, **TWO)


def test_the_client_is_judged_not_the_broker() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        forwarding(house)
        asked = Denies(lambda operation, _, name: operation is Operation.CREATE and name in ("kafka-cluster", "no"))
        house.node.broker.authorizer = asked
        results = {each.name: each.error_code for each in (await client.ask(creation("yes", "no"), 7)).topics}
        assert results == {"yes": 0, "no": TopicAuthorizationFailed.code}

    in_house(scenario, **TWO)


def test_a_broker_that_may_not_act_for_the_cluster_forwards_nothing() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        forwarding(house)
        house.node.broker.authorizer = Denies(lambda operation, *_: operation is Operation.CLUSTER_ACTION)
        (result,) = (await client.ask(creation("t"), 7)).topics
        assert result.error_code == ClusterAuthorizationFailed.code

    in_house(scenario, **TWO)


def test_nobody_decides_in_time() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        forwarding(house, port=1)
        (result,) = (await client.ask(creation("t"), 7, timeout_s=100)).topics
        assert result.error_code == RequestTimedOut.code

    in_house(scenario, **TWO)


def test_a_controller_that_is_no_longer_active_passes_the_request_on() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        quorum = forwarding(house)
        quorum.is_active = True
        handler: Any = house.node.listeners[0].requests

        async def lost(call: Any, request: Any) -> Any:
            await asyncio.sleep(0.1)
            quorum.is_active = False
            raise NotController

        handler.handlers[19].run = lost
        (result,) = (await client.ask(creation("t"), 7)).topics
        assert result.error_code == 0

    in_house(scenario, **TWO)


def test_topics_made_on_first_use_are_made_by_the_controller() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        forwarding(house)
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        (topic,) = (await client.ask(wanted, 9)).topics
        assert (topic.name, topic.error_code, len(topic.partitions)) == ("new", 0, 1)

    in_house(scenario, **TWO)


def test_a_broker_may_ask_in_its_own_name() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        await create(client, "there")
        forwarding(house)
        answer = await house.node.broker.forwarder.ask(creation("there", "t"), CreateTopicsResponse, 7)
        assert {each.name: each.error_code for each in answer.topics} == {"there": 36, "t": 0}

    in_house(scenario, **TWO)
