"""Brokers that ask each other: one connection for each purpose, opened anew when it is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.connection import ConnectionSettings
from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.kernel.environment import Environment
from millbeck.server.network.broker_connections import BrokerConnections
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client


def test_connections_are_kept_by_purpose_and_opened_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        peers = BrokerConnections(
            environment,
            node_id=7,
            address_of=lambda node_id: Address("n1", 9092) if node_id == 1 else None,
            connection_settings=ConnectionSettings,
        )

        async def ask(node_id: int, purpose: str) -> Any:
            return await peers.request(node_id, purpose, MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)

        assert (await ask(1, "a")).brokers
        first = peers._connections[1, "a"]
        await ask(1, "a")
        await ask(1, "b")
        assert peers._connections[1, "a"] is first
        assert len(peers._connections) == 2
        assert first.settings.client_id == "broker-7-a"
        first.close()
        await ask(1, "a")
        assert peers._connections[1, "a"] is not first
        with pytest.raises(ConnectFailed):
            await ask(2, "a")
        peers.close()
        with pytest.raises(Disconnected):
            await ask(1, "a")

    BrokerHarness().run(scenario)


def test_requests_to_a_broker_that_is_cut_off_all_end_within_their_timeouts() -> None:
    """They wait for each other to connect: a connection takes 10 seconds to fail."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        harness.world.node("n2")
        harness.world.network.set_power("n2", is_up=False)
        peers = BrokerConnections(
            environment,
            node_id=7,
            address_of=lambda _: Address("n2", 9092),
            connection_settings=ConnectionSettings,
        )

        async def ask() -> Any:
            return await peers.request(2, "a", MetadataRequest(topics=[]), MetadataResponse, timeout_s=15)

        loop = asyncio.get_running_loop()
        began_s = loop.time()
        ended = await asyncio.gather(*(ask() for _ in range(5)), return_exceptions=True)
        assert loop.time() - began_s == pytest.approx(15, abs=0.1)
        assert [type(each) for each in ended] == [ConnectFailed] + 4 * [RequestTimeout]
        peers.close()

    BrokerHarness().run(scenario)
