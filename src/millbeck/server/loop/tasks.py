"""The tasks of one node: kept until they end, heard when they fail, cancelled when the node stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """``report`` gets what a task raised; ``fail`` gets what is meant to end the process."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        report: Callable[[Exception], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._report = report
        self._fail = fail
        self.running: dict[asyncio.Task[None], None] = {}

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self.running[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, Exception):
                self._report(error)
            else:
                self._fail(error)

    async def cancel(self) -> None:
        """End all of them, and return when they have."""
        tasks = list(self.running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
