from __future__ import annotations

from millbeck.kernel.environment import Environment
from millbeck.server.metadata.decision_statistics import DecisionStatistics
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, run_scenario


def test_decisions_and_their_times_are_counted() -> None:
    statistics = DecisionStatistics()
    statistics.decided(0.25)
    assert (statistics.decision_count, statistics.fault_count) == (1, 0)
    assert (statistics.processing_ms.count, statistics.processing_ms.total) == (1, 250)


def test_the_driver_counts_what_it_decides() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        statistics = harness.node.broker.quorum.statistics
        before = statistics.decision_count
        await create(client)
        assert statistics.decision_count > before
        assert statistics.processing_ms.count == statistics.decision_count
        assert statistics.fault_count == 0

    run_scenario(scenario)
