"""Run long jobs of a group shard on a thread; the result comes back as an operation on the shard.

When the shard was unloaded or replaced meanwhile, the result is discarded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard_runner import ShardRunner, ShardState
from millbeck.kernel.environment import Environment
from millbeck.server.loop.tasks import run_off_loop

logger = logging.getLogger(__name__)

T = TypeVar("T")

GroupHost = ShardRunner[GroupShard, GroupRecord]


class ShardBackground:
    def __init__(
        self,
        environment: Environment,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        host_of: Callable[[], GroupHost | None],
    ) -> None:
        """``host_of`` returns the `ShardRunner` of the shard, None when the shard was unloaded."""
        self._environment = environment
        self._spawn = spawn
        self._host_of = host_of

    def run(
        self, job: Callable[[], T], then: Callable[[T, int], Result[GroupRecord, None]], failed: Callable[[], None]
    ) -> None:
        self._spawn(self._run(job, then, failed))

    async def _run(
        self, job: Callable[[], T], then: Callable[[T, int], Result[GroupRecord, None]], failed: Callable[[], None]
    ) -> None:
        try:
            result = await run_off_loop(self._environment.threads, job)
        except Exception:
            logger.exception("a job of a group coordinator failed")
            failed()
            return
        host = self._host_of()
        if host is None or host.state is not ShardState.ACTIVE:
            return
        now_ms = self._environment.clock.wall_ms()
        host.write(lambda _: then(result, now_ms), ResponseCallback(lambda _: None, lambda _: failed()), now_ms)
