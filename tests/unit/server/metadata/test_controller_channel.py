"""The channel finds the active controller, whoever it is, and gives up when time is up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import NotController, RequestTimedOut
from millbeck.server.metadata.controller_channel import ControllerChannel
from millbeck.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario
from tests.unit.server.harness.fake_quorum import SaysWhoLeads, as_quorum

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}
QUESTION = DescribeClusterRequest(endpoint_type=2)


def channel(
    harness: BrokerHarness, environment: Environment, quorum: SaysWhoLeads, *, is_controller: bool = False
) -> Any:
    assert harness.node is not None
    broker = harness.node.broker
    return ControllerChannel(
        environment,
        as_quorum(quorum),
        local=broker.inner_requests if is_controller else None,
        settings=lambda: ConnectionSettings(client_id="test", connect_timeout_s=1.0),
    )


def test_it_asks_the_leader() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        quorum.lead(1, 9093)
        answer = await asking.request(QUESTION, DescribeClusterResponse, timeout_s=5)
        assert [each.broker_id for each in answer.brokers] == [1]
        asking.close()

    run_scenario(scenario, **TWO)


def test_it_waits_for_a_leader_and_goes_there_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        asked = asyncio.create_task(asking.request(QUESTION, DescribeClusterResponse, timeout_s=60))
        await asyncio.sleep(20)
        quorum.lead(1, 9093)
        began = asyncio.get_running_loop().time()
        assert (await asked).error_code == 0
        assert asyncio.get_running_loop().time() - began < 0.2
        asking.close()

    run_scenario(scenario, **TWO)


def test_a_leader_that_cannot_be_reached_is_not_waited_for_when_there_is_another() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        quorum.lead(2, 1)
        asked = asyncio.create_task(asking.request(QUESTION, DescribeClusterResponse, timeout_s=60))
        await asyncio.sleep(5)
        assert not asked.done()
        quorum.lead(1, 9093, epoch=2)
        assert (await asyncio.wait_for(asked, 3)).error_code == 0
        asking.close()

    run_scenario(scenario, **TWO)


def test_not_controller_is_asked_again_until_time_is_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        count = 0

        def refuse(call: Any, request: Any) -> Any:
            nonlocal count
            count += 1
            return DescribeClusterResponse(error_code=NotController.code)

        handlers: Any = harness.node.listeners[1].requests
        handlers.handlers[60].run = refuse
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        quorum.lead(1, 9093)
        began = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimedOut):
            await asking.request(QUESTION, DescribeClusterResponse, timeout_s=10)
        assert 9.9 < asyncio.get_running_loop().time() - began < 10.5
        assert 8 < count < 40
        asking.close()

    run_scenario(scenario, **TWO)


def test_the_leader_here_is_asked_without_a_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        quorum = SaysWhoLeads(node_id=1)
        asking = channel(harness, environment, quorum, is_controller=True)
        quorum.lead(1, 1)
        from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

        request = CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=1, replication_factor=1)])
        answer = await asking.request(request, CreateTopicsResponse, timeout_s=5)
        assert answer.topics[0].error_code == 0
        asking.close()

    run_scenario(scenario)


def test_waiting_for_others_who_connect_counts_as_well() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        harness.world.node("n2")
        harness.world.network.partition(["n1", "harness"], ["n2"])
        quorum.lead(2, 9093, host="n2")
        began = asyncio.get_running_loop().time()
        asked = [asking.request(QUESTION, DescribeClusterResponse, timeout_s=2.5) for _ in range(8)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in answers} == {RequestTimedOut}
        assert asyncio.get_running_loop().time() - began < 2.6
        asking.close()

    run_scenario(scenario)


def test_closing_ends_the_wait() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        asking = channel(harness, environment, SaysWhoLeads())
        asked = asyncio.create_task(asking.request(QUESTION, DescribeClusterResponse, timeout_s=60))
        await asyncio.sleep(1)
        asking.close()
        with pytest.raises(RequestTimedOut):
            await asyncio.wait_for(asked, 2)

    run_scenario(scenario)


def test_what_an_older_leader_left_unanswered_is_asked_of_the_new_one_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        handlers: Any = harness.node.listeners[1].requests
        usual, asked = handlers.handlers[60].run, asyncio.Event()

        async def hang(call: Any, request: Any) -> Any:
            asked.set()
            await asyncio.sleep(1000)

        handlers.handlers[60].run = hang
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        quorum.lead(1, 9093)
        waiting = asyncio.create_task(asking.request(QUESTION, DescribeClusterResponse, timeout_s=60))
        await asked.wait()
        handlers.handlers[60].run = usual
        quorum.lead(1, 9093, epoch=2)
        assert (await asyncio.wait_for(waiting, 2)).error_code == 0
        asking.close()

    run_scenario(scenario, **TWO)


def test_a_request_that_is_not_answered_in_time_is_sent_again_on_another_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        handlers: Any = harness.node.listeners[1].requests
        usual, count = handlers.handlers[60].run, 0

        async def hang_twice(call: Any, request: Any) -> Any:
            nonlocal count
            count += 1
            if count <= 2:
                await asyncio.sleep(1000)
            return usual(call, request)

        handlers.handlers[60].run = hang_twice
        quorum = SaysWhoLeads()
        asking = channel(harness, environment, quorum)
        quorum.lead(1, 9093)
        began = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimedOut):
            await asking.request(QUESTION, DescribeClusterResponse, timeout_s=4, attempt_s_max=2)
        answer = await asking.request(QUESTION, DescribeClusterResponse, timeout_s=4, attempt_s_max=2)
        assert answer.error_code == 0
        assert asyncio.get_running_loop().time() - began < 4.5
        assert count == 3
        asking.close()

    run_scenario(scenario, **TWO)
