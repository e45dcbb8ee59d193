from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.shard_runner import ShardState
from millbeck.host import real_environment
from millbeck.server.coordinators.shard_background import ShardBackground


class Host:
    """Stands for a shard's host: it carries out what it is given, or refuses it."""

    def __init__(self, *, is_refusing: bool = False) -> None:
        self.state = ShardState.ACTIVE
        self.is_refusing = is_refusing
        self.results: list[Any] = []

    def write(self, operation: Any, reply: Any, now_ms: int) -> None:
        self.results.append(operation(None))
        if self.is_refusing:
            reply.fail(RuntimeError())


async def outcome(job: Any, host: Host | None) -> tuple[list[Any], int]:
    """What `then` was given, and how often `failed` was called."""
    tasks: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        tasks.append(asyncio.create_task(work))

    found: list[Any] = []
    failures: list[None] = []

    def then(result: Any, now_ms: int) -> Result[Any, None]:
        found.append(result)
        return Result()

    background = ShardBackground(real_environment(), spawn, lambda: host)  # type: ignore[arg-type, return-value]
    background.run(job, then, lambda: failures.append(None))
    await asyncio.gather(*tasks)
    return found, len(failures)


def test_a_job_s_result_comes_back_to_its_shard() -> None:
    assert asyncio.run(outcome(lambda: 7, Host())) == ([7], 0)


def test_a_job_that_fails_is_told_of() -> None:
    assert asyncio.run(outcome(lambda: 1 // 0, Host())) == ([], 1)


def test_a_result_that_cannot_be_written_is_told_of() -> None:
    assert asyncio.run(outcome(lambda: 7, Host(is_refusing=True))) == ([7], 1)


def test_a_shard_that_is_gone_hears_nothing() -> None:
    closed = Host()
    closed.state = ShardState.CLOSED
    assert asyncio.run(outcome(lambda: 7, None)) == ([], 0)
    assert asyncio.run(outcome(lambda: 7, closed)) == ([], 0)
