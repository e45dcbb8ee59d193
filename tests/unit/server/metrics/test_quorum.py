"""Commits are counted and timed as their images come, for half a minute."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, run_scenario


def values(harness: BrokerHarness) -> dict[str, float]:
    assert harness.node is not None
    prefix = "kafka_server_raftmetrics_"
    return {
        line.split()[0].removeprefix(prefix): float(line.split()[1])
        for line in harness.node.render_metrics().splitlines()
        if line.startswith(prefix)
    }


def test_commits_of_the_last_half_minute_are_counted_and_timed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await asyncio.sleep(40)
        before: Any = values(harness)
        assert (before["append_records_rate"], before["commit_latency_avg"], before["commit_latency_max"]) == (0, 0, 0)
        harness.machine.disk.faults.sync_cost_s = 0.5
        await create(client, partitions=3)
        after = values(harness)
        count = after["log_end_offset"] - before["log_end_offset"]
        assert count > 3
        assert abs(after["append_records_rate"] - count / 30) < 0.001
        assert 500 <= after["commit_latency_avg"] <= after["commit_latency_max"] < 5000
        assert (after["current_leader"], after["current_vote"], after['current_state{current_state="leader"}']) == (
            1,
            1,
            1,
        )

    run_scenario(scenario)


def test_what_was_committed_before_the_start_does_not_count() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        harness.machine.crash()
        await asyncio.sleep(300)
        await harness.start()
        assert values(harness)["commit_latency_max"] < 1000

    run_scenario(scenario)
