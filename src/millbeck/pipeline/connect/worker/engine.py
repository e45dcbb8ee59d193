"""What runs shares: Spark, or in tests something simpler."""

from __future__ import annotations

import asyncio
from typing import Protocol

from millbeck.pipeline.connect.tasks.work import Outcome, Work


class Engine(Protocol):
    """Runs shares in tasks."""

    @property
    def job_count(self) -> int:
        """How many jobs were started."""

    def submit(self, work: Work, *, is_long: bool) -> asyncio.Future[Outcome]:
        """Run a share soon. The future never fails: what goes wrong is in the outcome."""

    async def close(self) -> None: ...
