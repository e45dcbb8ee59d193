"""Runs shares in this process, one after another, as a Spark task would."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor

from millbeck.pipeline.connect.tasks.running import run_work
from millbeck.pipeline.connect.tasks.work import Outcome, Work


class InlineEngine:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.job_count = 0

    def submit(self, work: Work, *, is_long: bool) -> asyncio.Future[Outcome]:
        self.job_count += 1
        loop = asyncio.get_running_loop()
        return asyncio.ensure_future(loop.run_in_executor(self._thread, _run, pickle.dumps(work)))

    async def close(self) -> None:
        self._thread.shutdown(wait=False)


def _run(work: bytes) -> Outcome:
    found: Outcome = pickle.loads(pickle.dumps(run_work(pickle.loads(work))))
    return found
