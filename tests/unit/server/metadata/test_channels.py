"""Each kind of request to the controller has a channel of its own."""

from __future__ import annotations

from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario


def test_no_two_kinds_of_requests_share_a_channel() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        kinds = harness.node.channels.all
        assert len({id(each) for each in kinds}) == len(kinds)
        assert len({each._settings().client_id for each in kinds}) == len(kinds)

    run_scenario(scenario)
