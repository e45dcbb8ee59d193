"""What only the controller can do reaches it in an envelope, and the answer comes back as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    NotController,
    RequestTimedOut,
    TopicAuthorizationFailed,
)
from millbeck.security.authorizer import Operation
from millbeck.server.metadata.controller_channel import ControllerChannel
from millbeck.server.requests.forwarding import Forwarder
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.nodes import UpdateFeaturesRequest
from millbeck.wire.messages.quorum import DescribeQuorumRequest
from millbeck.wire.messages.replicas import ListPartitionReassignmentsRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import Denies, create, run_scenario
from tests.unit.server.harness.fake_quorum import SaysWhoLeads, as_quorum

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}


def forwarding(harness: BrokerHarness, *, port: int = 9093) -> SaysWhoLeads:
    """Let the node believe that another one decides, which is itself by way of its controllers' listener."""
    assert harness.node is not None
    broker = harness.node.broker
    quorum = SaysWhoLeads()
    channel = ControllerChannel(
        broker.environment,
        as_quorum(quorum),
        local=None,
        settings=lambda: ConnectionSettings(connect_timeout_s=1.0),
    )
    quorum.lead(1, port)
    broker.forwarder = Forwarder(as_quorum(quorum), channel, is_controller=True)
    return quorum


def creation(*names: str, timeout_ms: int = 30_000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name, num_partitions=2, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_forwarded_request_is_answered_in_its_own_version(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        forwarding(harness)
        (result,) = (await client.ask(creation("t"), version)).topics
        assert (result.name, result.error_code) == ("t", 0)
        (again,) = (await client.ask(creation("t"), version)).topics
        assert again.error_code == 36

    run_scenario(scenario, **TWO)


def test_the_client_is_judged_not_the_broker() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        forwarding(harness)
        asked = Denies(lambda operation, _, name: operation is Operation.CREATE and name in ("kafka-cluster", "no"))
        harness.node.broker.authorizer = asked
        results = {each.name: each.error_code for each in (await client.ask(creation("yes", "no"), 7)).topics}
        assert results == {"yes": 0, "no": TopicAuthorizationFailed.code}

    run_scenario(scenario, **TWO)


def test_a_broker_that_may_not_act_for_the_cluster_forwards_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        forwarding(harness)
        harness.node.broker.authorizer = Denies(lambda operation, *_: operation is Operation.CLUSTER_ACTION)
        (result,) = (await client.ask(creation("t"), 7)).topics
        assert result.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario, **TWO)


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(0, 0), (-1, 0), (2000, 2), (1 << 30, 60), (None, 30)])
def test_nobody_decides_in_time(timeout_ms: int | None, seconds: float) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        forwarding(harness, port=1)
        began = asyncio.get_running_loop().time()
        if timeout_ms is None:
            answer = await client.ask(DescribeQuorumRequest(), 0)
            assert answer.error_code == RequestTimedOut.code
        else:
            (result,) = (await client.ask(creation("t", timeout_ms=timeout_ms), 7, timeout_s=100)).topics
            assert result.error_code == RequestTimedOut.code
        assert asyncio.get_running_loop().time() - began == pytest.approx(seconds, abs=0.2)

    run_scenario(scenario, **TWO)


def test_nothing_is_decided_for_who_waits_no_time() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        (result,) = (await client.ask(creation("t", timeout_ms=0), 7)).topics
        assert result.error_code == RequestTimedOut.code
        await asyncio.sleep(1)
        assert harness.node is not None
        assert harness.node.broker.image.topics.named("t") is None

    run_scenario(scenario)


def test_a_timeout_that_kafka_does_not_read_may_be_zero() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await client.ask(ListPartitionReassignmentsRequest(timeout_ms=0), 0)).error_code == 0
        assert (await client.ask(UpdateFeaturesRequest(timeout_ms=0), 1)).error_code == 0

    run_scenario(scenario)


def test_a_decision_that_is_not_committed_in_time_is_not_waited_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        requests: Any = harness.node.listeners[0].requests

        async def hang(call: Any, request: Any) -> Any:
            await asyncio.sleep(1000)

        requests.handlers[19].run = hang
        began = asyncio.get_running_loop().time()
        (result,) = (await client.ask(creation("t", timeout_ms=2000), 7)).topics
        assert result.error_code == RequestTimedOut.code
        assert asyncio.get_running_loop().time() - began < 2.1

    run_scenario(scenario)


def test_a_client_that_gives_up_soon_does_not_end_what_others_wait_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        node = harness.node
        handlers: Any = node.listeners[1].requests
        usual, envelopes = handlers.handlers[58].run, 0

        async def slow(call: Any, request: Any) -> Any:
            nonlocal envelopes
            envelopes += 1
            await asyncio.sleep(1)
            return await usual(call, request)

        handlers.handlers[58].run = slow
        quorum = SaysWhoLeads()
        channels = node.channels
        channel = ControllerChannel(
            node.broker.environment,
            as_quorum(quorum),
            local=None,
            settings=channels.forwarding._settings,
        )
        quorum.lead(1, 9093)
        node.broker.forwarder = Forwarder(as_quorum(quorum), channel, is_controller=True)
        hasty = await harness.connect(environment)
        patient = client.send(creation("patient"), 7)
        (given_up,) = (await hasty.ask(creation("hasty", timeout_ms=100), 7)).topics
        (result,) = (await patient).topics
        assert (given_up.error_code, result.error_code, envelopes) == (RequestTimedOut.code, 0, 2)

    run_scenario(scenario, **TWO)


def test_a_controller_that_is_no_longer_active_passes_the_request_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        quorum = forwarding(harness)
        quorum.is_active = True
        handler: Any = harness.node.listeners[0].requests

        async def lost(call: Any, request: Any) -> Any:
            await asyncio.sleep(0.1)
            quorum.is_active = False
            raise NotController

        handler.handlers[19].run = lost
        (result,) = (await client.ask(creation("t"), 7)).topics
        assert result.error_code == 0

    run_scenario(scenario, **TWO)


def test_topics_made_on_first_use_are_made_by_the_controller() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        forwarding(harness)
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        (missing,) = (await client.ask(wanted, 9)).topics
        await asyncio.sleep(0.5)
        (topic,) = (await client.ask(wanted, 9)).topics
        assert missing.error_code == 3
        assert (topic.name, topic.error_code, len(topic.partitions)) == ("new", 0, 1)

    run_scenario(scenario, **TWO)


def test_topics_are_asked_for_again_when_a_node_says_that_it_is_not_the_active_controller() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        forwarding(harness)
        handlers: Any = harness.node.listeners[1].requests
        usual, refusals = handlers.handlers[19].run, 3

        async def refuse_a_few_times(call: Any, request: Any) -> Any:
            nonlocal refusals
            if refusals:
                refusals -= 1
                raise NotController
            return await usual(call, request)

        handlers.handlers[19].run = refuse_a_few_times
        assert await harness.node.broker.create_missing(["a", "b"], timeout_s=10) == {}
        assert refusals == 0
        await asyncio.sleep(0.5)
        assert harness.node.broker.image.topics.by_name.keys() >= {"a", "b"}

    run_scenario(scenario, **TWO)


def test_a_controller_that_is_not_there_is_an_error_of_each_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        forwarding(harness, port=1)
        began = asyncio.get_running_loop().time()
        errors = await harness.node.broker.create_missing(["a", "b"], timeout_s=2)
        assert {name: type(error) for name, error in errors.items()} == {"a": RequestTimedOut, "b": RequestTimedOut}
        assert asyncio.get_running_loop().time() - began == pytest.approx(2, abs=0.1)

    run_scenario(scenario, **TWO)


def test_a_broker_may_ask_in_its_own_name() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, "there")
        forwarding(harness)
        answer = await harness.node.broker.forwarder.ask(creation("there", "t"), CreateTopicsResponse, timeout_s=5)
        assert {each.name: each.error_code for each in answer.topics} == {"there": 36, "t": 0}

    run_scenario(scenario, **TWO)
