"""Jobs off the loop that may have to wait for room: the threads' queue is bounded, and being full is no failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

from millbeck.kernel.environment import Threads

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

RETRY_SECONDS: Final = 0.001


async def run_off_loop(threads: Threads, job: Callable[[*Ts], T], *arguments: *Ts) -> T:
    """Run a job on a thread once there is room for it; raises what the job raises."""
    while True:
        try:
            running = threads.run(job, *arguments)
        except BlockingIOError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return await running
