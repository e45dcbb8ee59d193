"""Who leads, for a client that asked the wrong broker."""

from __future__ import annotations

from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.server.replicas.leader_hints import LeaderHint, addresses_of, leader_of
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, partition_of, run_scenario


class Calling:
    def __init__(self, harness: BrokerHarness) -> None:
        assert harness.node is not None
        self.broker = harness.node.broker
        (self.connection,) = harness.node.listeners[0].connections.values()


def test_the_newest_leader_is_named_by_name_and_by_id() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        assert harness.node is not None
        broker = harness.node.broker
        assert leader_of(broker, "t", 0) == leader_of(broker, topic_id, 0) == LeaderHint(1, 0)
        partition_of(harness).follow(7, 3, 3)
        assert leader_of(broker, "t", 0) == LeaderHint(7, 3)
        partition_of(harness).follow(-1, 4, 4)
        assert leader_of(broker, "t", 0) is None
        assert leader_of(broker, "t", 9) is None
        assert leader_of(broker, "unknown", 0) is None
        assert leader_of(broker, bytes(16), 0) is None

    run_scenario(scenario)


def test_addresses_are_those_of_the_clients_listener_each_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        call: Any = Calling(harness)
        (address,) = addresses_of(call, [1, 1, 9])
        assert (address.node_id, address.port, address.rack) == (1, 9092, "r")

    run_scenario(scenario, broker_rack="r")
