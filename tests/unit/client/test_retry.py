"""Attempts are repeated while that may help and there is time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.backoff import Backoff
from millbeck.client.retry import Deadline, retrying
from millbeck.kernel.errors import InvalidRequest, LeaderNotAvailable
from tests.unit.client.fake_cluster import FakeCluster, simulate


def attempts(*outcomes: Any) -> tuple[Any, list[float]]:
    times: list[float] = []

    async def attempt(deadline: Deadline) -> Any:
        times.append(asyncio.get_running_loop().time())
        outcome = outcomes[min(len(times), len(outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return attempt, times


async def run(cluster: FakeCluster, attempt: Any, timeout_s: float = 10, retries_max: int = 100, **more: Any) -> Any:
    backoff = Backoff(cluster.environment.randomness, first_ms=100, max_ms=1000)
    return await retrying(attempt, timeout_s=timeout_s, backoff=backoff, retries_max=retries_max, **more)


def test_a_retriable_error_is_tried_again_after_a_while() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        attempt, times = attempts(LeaderNotAvailable(), LeaderNotAvailable(), "done")
        heard: list[Exception] = []
        assert await run(cluster, attempt, on_failure=heard.append) == "done"
        assert len(times) == 3
        assert 0.08 <= times[1] - times[0] <= 0.13
        assert 0.16 <= times[2] - times[1] <= 0.25
        assert len(heard) == 2

    simulate(scenario)


def test_a_final_error_is_raised_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        attempt, times = attempts(InvalidRequest("no"))
        with pytest.raises(InvalidRequest):
            await run(cluster, attempt)
        assert len(times) == 1

    simulate(scenario)


def test_the_last_error_is_raised_when_time_is_up() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        attempt, times = attempts(LeaderNotAvailable("still"))
        with pytest.raises(LeaderNotAvailable, match="still"):
            await run(cluster, attempt, timeout_s=3)
        assert times[-1] - times[0] <= 3

    simulate(scenario)


def test_the_last_error_tells_of_the_one_before() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        attempt, _ = attempts(LeaderNotAvailable("why"), InvalidRequest("in the end"))
        with pytest.raises(InvalidRequest) as raised:
            await run(cluster, attempt)
        assert str(raised.value.__cause__) == "why"

    simulate(scenario)


def test_retries_are_counted() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        attempt, times = attempts(LeaderNotAvailable())
        with pytest.raises(LeaderNotAvailable):
            await run(cluster, attempt, retries_max=2)
        assert len(times) == 3

    simulate(scenario)


def test_a_deadline_runs_out() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        deadline = Deadline(2)
        assert deadline.remaining_s == pytest.approx(2)
        await asyncio.sleep(1)
        assert not deadline.has_passed
        await asyncio.sleep(1.5)
        assert deadline.has_passed
        assert deadline.remaining_s == 0

    simulate(scenario)
