"""Long work without processes: a job runs whole at some later instant, and what it cost is charged afterwards.

A worker that is killed on the way is the interesting one. With the chance ``death`` a job ends at some call of its
files, as if its process had died there: everything before has happened, nothing after.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from millbeck.kernel.environment import Files, WorkerDied, Workplace, WorkStopped
from millbeck.testing.sim.loop import SimLoop
from millbeck.testing.sim.threads import CostMeter

Given = TypeVar("Given")
Gain = TypeVar("Gain")

CALLS_BEFORE_DEATH_MAX = 120


class _Death(BaseException):
    """No handler of the job may get in its way."""


class _Countdown:
    """Death comes with the last of so many calls."""

    def __init__(self, count: int) -> None:
        self.count = count

    def call(self) -> None:
        self.count -= 1
        if self.count <= 0:
            raise _Death


class _Mortal:
    """Files, or one file, of a worker that is going to die."""

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
            return _Mortal(result, self._countdown) if name == "open" else result

        return call


class SimWorkplace:
    def __init__(
        self, files: Files, loop: SimLoop, meter: CostMeter, errand: SimErrand[Any], on_report: Callable[[object], None]
    ) -> None:
        self.files = files
        self._loop = loop
        self._meter = meter
        self._errand = errand
        self._on_report = on_report

    def monotonic(self) -> float:
        return self._loop.time() + self._meter.seconds

    def pause(self, seconds: float) -> None:
        if self._errand.is_stopped:
            raise WorkStopped
        self._meter.charge(seconds)

    def report(self, progress: object) -> None:
        if self._errand.is_stopped:
            raise WorkStopped
        self._loop.call_later(self._meter.seconds, self._on_report, progress)

    def word(self) -> object:
        return self._errand.word


class SimErrand(Generic[Gain]):
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
        meter: CostMeter,
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
        self, job: Callable[[Workplace, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> SimErrand[Gain]:
        errand: SimErrand[Gain] = SimErrand(self._loop.create_future())
        place = SimWorkplace(self._worker_files(), self._loop, self._meter, errand, on_report)
        self._loop.call_later(self._generator.random() * self._delay_s, self._work, errand, place, job, argument)
        return errand

    def close(self) -> None:
        """There is nothing to end."""

    def _worker_files(self) -> Files:
        if self._generator.random() >= self.death:
            return self._files
        countdown = _Countdown(self._generator.randint(1, CALLS_BEFORE_DEATH_MAX))
        mortal: Any = _Mortal(self._files, countdown)
        return mortal  # type: ignore[no-any-return]

    def _work(self, errand: SimErrand[Any], place: SimWorkplace, job: Callable[..., Any], argument: Any) -> None:
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
        self._loop.call_later(delay, self._finish, errand, result, failure)

    def _finish(self, errand: SimErrand[Any], result: Any, failure: Exception | None) -> None:
        if errand.result.done():
            return
        if errand.is_stopped and failure is None:
            failure = WorkStopped()
        if failure is None:
            errand.result.set_result(result)
        else:
            errand.result.set_exception(failure)
