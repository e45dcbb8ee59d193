"""A full queue of the threads is waited for, by the metadata log as by everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.server.loop.tasks import run_off_loop
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, delete, run_scenario


class FullAtFirst:
    """Threads that refuse some jobs before they take one."""

    def __init__(self, refusal_count: int) -> None:
        self.refusal_count = refusal_count

    def run(self, job: Callable[..., Any], *arguments: Any) -> Any:
        if self.refusal_count:
            self.refusal_count -= 1
            raise BlockingIOError

        async def work() -> Any:
            return job(*arguments)

        return work()


def full_at_first(refusal_count: int) -> Any:
    return FullAtFirst(refusal_count)


def test_a_job_waits_for_room() -> None:
    assert asyncio.run(run_off_loop(full_at_first(3), divmod, 7, 2)) == (3, 1)


def test_what_the_job_raises_is_not_taken_for_a_full_queue() -> None:
    def job() -> None:
        raise BlockingIOError("the job's own")

    with pytest.raises(BlockingIOError, match="the job's own"):
        asyncio.run(run_off_loop(full_at_first(1), job))


def test_a_deleted_topic_with_more_partitions_than_threads_take_jobs_does_not_end_the_node() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        threads: Any = harness.node.environment.threads
        threads._waiting_count_max = 2
        await create(client, "many", 30, file_delete_delay_ms="0")
        await delete(client, "many")
        await create(client, "next")
        assert not harness.node.failed.done()

    run_scenario(scenario)
