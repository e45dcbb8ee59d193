"""A simulated machine with a name, a disk and a clock, and the process that runs on it.

The machine outlives its processes. ``start`` runs a main coroutine as a new process with its own `Environment`; it ends
when the coroutine returns or raises, by ``crash`` (kill -9: the page cache survives, peers see the connection close) or
by ``power_loss`` (unsynced data is lost, and peers get no packets until the machine is back).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Environment
from millbeck.simulation.environment.clock import SimClock
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.network import SimNetwork
from millbeck.simulation.environment.process import Process
from millbeck.simulation.environment.randomness import SimRandomness
from millbeck.simulation.environment.threads import LatencyMeter, SimThreads
from millbeck.simulation.environment.workers import SimWorkers

if TYPE_CHECKING:
    from millbeck.simulation.environment.world import World

Main = Callable[[Environment], Awaitable[object]]


class ProcessEnd(Enum):
    RETURNED = "returned"
    RAISED = "raised"
    CRASHED = "crashed"
    LOST_POWER = "lost power"


class ProcessRun:
    """One life of a node's process."""

    def __init__(self, node: SimHost, process: Process, environment: Environment) -> None:
        self.node = node
        self.process = process
        self.environment = environment
        self.ending: ProcessEnd | None = None
        self.error: BaseException | None = None
        self.leftover_task_count = 0
        self._ended: list[asyncio.Future[None]] = []

    @property
    def is_running(self) -> bool:
        return self.ending is None

    async def wait(self) -> ProcessEnd:
        """Wait until the process has ended for any reason."""
        while self.ending is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._ended.append(waiter)
            await waiter
        return self.ending

    def end(self, ending: ProcessEnd, error: BaseException | None) -> None:
        self.ending = ending
        self.error = error
        for waiter in self._ended:
            if not waiter.done():
                waiter.set_result(None)


class SimHost:
    def __init__(self, world: World, name: str, *, is_harness: bool = False) -> None:
        self.name = name
        self.address = world.network.add_machine(name)
        self.clock = SimClock(world.loop, world.options.wall_start_ms)
        self.disk = SimDisk(
            world.generator(f"disk/{name}"),
            now_ms=self.clock.wall_ms,
            trace=lambda *event: world.trace.add(name, *event),
            charge=self._charge,
        )
        self.disk.faults = world.options.disk_faults()
        self.run: ProcessRun | None = None
        self._world = world
        self._is_harness = is_harness
        self._meter = LatencyMeter(self._hold)
        self._start_count = 0
        self._blocked_until = 0.0
        self._files: SimFiles | None = None

    @property
    def is_running(self) -> bool:
        return self.run is not None and self.run.is_running

    def start(self, main: Main, *, may_fail: bool = False) -> ProcessRun:
        """Start a process. An exception that ends ``main`` fails the world's run unless ``may_fail``."""
        if self.is_running:
            raise RuntimeError(f"{self.name} is already running")
        world = self._world
        run = self.boot()
        world.trace.add("start", run.process.name)

        async def body() -> None:
            # Boots are never simultaneous.
            await asyncio.sleep(world.boot_delay())
            await main(run.environment)

        def done(task: asyncio.Task[None]) -> None:
            if run.is_running:
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                self._ended(run, error, may_fail=may_fail)

        task = run.process.context.copy().run(world.loop.create_task, body())
        task.add_done_callback(done)
        return run

    def boot(self) -> ProcessRun:
        """Start a process without a main coroutine, as the test harness uses."""
        world = self._world
        self._start_count += 1
        self._blocked_until = 0.0
        suffix = "" if self._is_harness else f"/{self._start_count}"
        process = Process(self.name + suffix, self.name, is_harness=self._is_harness)
        world.network.set_power(self.name, is_up=True)
        self._files = self.disk.mount()
        environment = Environment(
            clock=self.clock,
            randomness=SimRandomness(world.generator(f"random/{process.name}")),
            files=self._files,
            network=SimNetwork(world.network, process),
            threads=SimThreads(
                world.loop,
                world.generator(f"threads/{process.name}"),
                self._meter,
                delay_s=world.options.thread_delay_s,
            ),
            workers=SimWorkers(
                world.loop,
                world.generator(f"workers/{process.name}"),
                self._meter,
                self._files,
                delay_s=world.options.thread_delay_s,
                death=world.options.worker_death,
            ),
        )
        self.run = ProcessRun(self, process, environment)
        return self.run

    def _ended(self, run: ProcessRun, error: BaseException | None, *, may_fail: bool) -> None:
        is_exit = isinstance(error, SystemExit)
        run.leftover_task_count = len(run.process.unfinished_tasks())
        ending = ProcessEnd.RETURNED if error is None else ProcessEnd.RAISED
        if error is not None and not may_fail and not is_exit:
            self._world.fail(f"the main coroutine of {run.process.name} raised", error)
        self._kill(ending, error, is_silent=False)

    def exited(self, error: BaseException) -> None:
        """End the process because a callback raised ``SystemExit``."""
        self._kill(ProcessEnd.RAISED, error, is_silent=False)

    def crash(self) -> None:
        """Kill the process as ``kill -9`` does. Must be called from outside the process."""
        self._kill(ProcessEnd.CRASHED, None, is_silent=False)

    def power_loss(self, survival: float | None = None) -> None:
        """Cut the power; each unsynced change is kept with probability ``survival``, which is drawn when None."""
        if self.is_running:
            self._kill(ProcessEnd.LOST_POWER, None, is_silent=True)
        self._world.network.set_power(self.name, is_up=False)
        self.disk.power_loss(survival)

    def _kill(self, ending: ProcessEnd, error: BaseException | None, *, is_silent: bool) -> None:
        run = self.run
        if run is None or not run.is_running:
            return
        world = self._world
        world.trace.add(ending.value, run.process.name)
        world.forget_process(run.process)
        if self._files is not None:
            self.disk.unmount(self._files)
        world.network.process_died(run.process, is_silent=is_silent)
        run.end(ending, error)

    def pause(self, seconds: float) -> None:
        """Stop the process for a while as SIGSTOP does: its code does not run, its kernel still answers."""
        if self.run is not None and self.is_running:
            self._world.trace.add("pause", self.name, seconds)
            self._world.loop.hold(self.run.process, seconds)

    def jump_wall(self, milliseconds: int) -> None:
        self._world.trace.add("wall jump", self.name, milliseconds)
        self.clock.jump_wall(milliseconds)

    def _charge(self, seconds: float) -> None:
        self._meter.charge(seconds)

    def _hold(self, seconds: float) -> None:
        """Stop the whole process for the duration of a blocking call on its event loop; durations add up."""
        if self.run is not None and self.is_running and not self._is_harness:
            now = self._world.loop.time()
            self._blocked_until = max(now, self._blocked_until) + seconds
            self._world.loop.hold(self.run.process, self._blocked_until - now)


def stream(seed: int | str, name: str) -> random.Random:
    """A random generator for one purpose, so that a change to one use does not affect the others."""
    return random.Random(f"{seed}/{name}")
