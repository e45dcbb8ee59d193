"""Jobs off the event loop, without threads: a job runs at a later instant, and its result arrives later still.

The time between the two is the duration of the job, such as that of a sync; so a crash can happen between the effect of
a job and the arrival of its result at the event loop. Jobs may overtake each other, as they do on real threads.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from millbeck.host.threads import complete
from millbeck.simulation.environment.loop import SimLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LatencyMeter:
    """Adds up the duration of the running job's disk calls. Outside a job, calls hold the process instead.

    A running node must not be blocked by its disk: while ``on_held`` is set, it is called for every such call.
    """

    __slots__ = ("hold", "is_in_job", "on_held", "seconds")

    def __init__(self, hold: Callable[[float], None]) -> None:
        self.hold = hold
        self.is_in_job = False
        self.on_held: Callable[[], None] | None = None
        self.seconds = 0.0

    def charge(self, seconds: float) -> None:
        if self.is_in_job:
            self.seconds += seconds
        else:
            if self.on_held is not None:
                self.on_held()
            self.hold(seconds)


class SimThreads:
    def __init__(
        self,
        loop: SimLoop,
        generator: random.Random,
        meter: LatencyMeter,
        *,
        delay_s: float,
        waiting_count_max: int = 4096,
    ) -> None:
        self._loop = loop
        self._generator = generator
        self.meter = meter
        self._delay_s = delay_s
        self._waiting_count_max = waiting_count_max
        self._unfinished_count = 0

    def run(self, job: Callable[[*Ts], T], *arguments: *Ts) -> asyncio.Future[T]:
        if self._unfinished_count >= self._waiting_count_max:
            raise BlockingIOError(errno.EAGAIN, "too many jobs wait for a thread")
        self._unfinished_count += 1
        future: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._generator.random() * self._delay_s, self._work, future, job, arguments)
        return future

    def _work(self, future: asyncio.Future[Any], job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        if future.cancelled():
            self._unfinished_count -= 1
            return
        meter = self.meter
        meter.is_in_job, meter.seconds = True, 0.0
        result, failure = None, None
        try:
            result = job(*arguments)
        except Exception as error:
            failure = error
        finally:
            meter.is_in_job = False
        delay = meter.seconds + self._generator.random() * self._delay_s / 4
        self._loop.call_later(delay, self._finish, future, result, failure)

    def _finish(self, future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
        self._unfinished_count -= 1
        complete(future, result, failure)
