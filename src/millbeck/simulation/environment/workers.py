"""Worker jobs without processes: a job runs at a later instant, and its duration is charged afterwards.

The interesting case is a worker that is killed midway. With the chance ``death`` a job ends at some call of its
files, as if its process had died there: everything before has happened, nothing after.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from millbeck.kernel.environment import Files, WorkCancelled, WorkerContext, WorkerDied
from millbeck.simulation.environment.loop import SimLoop
from millbeck.simulation.environment.threads import LatencyMeter

Given = TypeVar("Given")
Gain = TypeVar("Gain")

CALLS_BEFORE_DEATH_MAX = 120


class _Death(BaseException):
    """Ends a job; not an `Exception`, so that the job cannot catch it."""


class _Countdown:
    """Counts calls and ends the job at the last one."""

    def __init__(self, count: int) -> None:
        self.count = count

    def call(self) -> None:
        self.count -= 1
        if self.count <= 0:
            raise _Death


class _FailingFiles:
    """Files, or one file, of a worker that will be killed."""

    def __init__(self, real: Any, countdown: _Countdown) -> None:
        self._real = real
        self._countdown = countdown

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self._countdown.call()
            result = found(*arguments)
            return _FailingFiles(result, self._countdown) if name == "open" else result

        return call


class SimWorkerContext:
    def __init__(
        self,
        files: Files,
        loop: SimLoop,
        meter: LatencyMeter,
        handle: SimWorkerHandle[Any],
        on_report: Callable[[object], None],
    ) -> None:
        self.files = files
        self._loop = loop
        self._meter = meter
        self._handle = handle
        self._on_report = on_report

    def monotonic(self) -> float:
        return self._loop.time() + self._meter.seconds

    def pause(self, seconds: float) -> None:
        if self._handle.is_stopped:
            raise WorkCancelled
        self._meter.charge(seconds)

    def report(self, progress: object) -> None:
        if self._handle.is_stopped:
            raise WorkCancelled
        self._loop.call_later(self._meter.seconds, self._on_report, progress)

    def word(self) -> object:
        return self._handle.word


class SimWorkerHandle(Generic[Gain]):
    def __init__(self, result: asyncio.Future[Gain]) -> None:
        self.result = result
        self.word: object = None
        self.is_stopped = False
        result.add_done_callback(self._stop_if_given_up)

    def _stop_if_given_up(self, result: asyncio.Future[Gain]) -> None:
        self.is_stopped = self.is_stopped or result.cancelled()

    def tell(self, word: object) -> None:
        self.word = word

    def stop(self) -> None:
        self.is_stopped = True


class SimWorkers:
    def __init__(
        self,
        loop: SimLoop,
        generator: random.Random,
        meter: LatencyMeter,
        files: Files,
        *,
        delay_s: float,
        death: float = 0.0,
    ) -> None:
        self.death = death
        self._loop = loop
        self._generator = generator
        self._meter = meter
        self._files = files
        self._delay_s = delay_s

    def start(
        self, job: Callable[[WorkerContext, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> SimWorkerHandle[Gain]:
        handle: SimWorkerHandle[Gain] = SimWorkerHandle(self._loop.create_future())
        place = SimWorkerContext(self._worker_files(), self._loop, self._meter, handle, on_report)
        self._loop.call_later(self._generator.random() * self._delay_s, self._work, handle, place, job, argument)
        return handle

    def close(self) -> None:
        """Does nothing: there are no processes."""

    def _worker_files(self) -> Files:
        if self._generator.random() >= self.death:
            return self._files
        countdown = _Countdown(self._generator.randint(1, CALLS_BEFORE_DEATH_MAX))
        mortal: Any = _FailingFiles(self._files, countdown)
        return mortal  # type: ignore[no-any-return]

    def _work(
        self, handle: SimWorkerHandle[Any], place: SimWorkerContext, job: Callable[..., Any], argument: Any
    ) -> None:
        meter = self._meter
        meter.is_in_job, meter.seconds = True, 0.0
        result: Any = None
        failure: Exception | None = None
        try:
            place.pause(0)
            result = job(place, argument)
        except _Death:
            failure = WorkerDied("the worker ended")
        except Exception as error:
            failure = error
        finally:
            meter.is_in_job = False
        delay = meter.seconds + self._generator.random() * self._delay_s
        self._loop.call_later(delay, self._finish, handle, result, failure)

    def _finish(self, handle: SimWorkerHandle[Any], result: Any, failure: Exception | None) -> None:
        if handle.result.done():
            return
        if handle.is_stopped and failure is None:
            failure = WorkCancelled()
        if failure is None:
            handle.result.set_result(result)
        else:
            handle.result.set_exception(failure)
