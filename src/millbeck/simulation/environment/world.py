"""A simulated world: machines, a network and one virtual clock, all from one seed.

    world = World(seed=7)
    node = world.node("n1")
    node.start(serve)                                # async (Environment) -> None: the node's process

    async def scenario(environment: Environment) -> None:       # runs on the harness's own machine
        transport, client = await environment.network.connect(Client, host="n1", port=9092)
        ...
        node.crash(); node.start(serve)

    world.run(scenario, limit_s=60)                  # virtual seconds

The same seed and options give the same ``world.trace.digest()`` in every process of the same Python version. A run that
fails carries the seed, the options and the last events in the notes of its exception.
"""

from __future__ import annotations

import asyncio
import gc
import random
import warnings
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack
from typing import Any, TypeVar

from millbeck.kernel.environment import Environment
from millbeck.simulation.environment.fabric import Fabric
from millbeck.simulation.environment.loop import SimLoop
from millbeck.simulation.environment.network import SimServer
from millbeck.simulation.environment.node import ProcessRun, SimHost, stream
from millbeck.simulation.environment.options import WorldOptions
from millbeck.simulation.environment.process import PROCESS, Process
from millbeck.simulation.environment.strict import strict_mode
from millbeck.simulation.environment.trace import Trace

T = TypeVar("T")

_EVENTS_SHOWN = 40


class SimulationFailed(Exception):
    """An exception that no code awaited: in a callback, an abandoned task or a node's main coroutine."""


class World:
    def __init__(self, seed: int, options: WorldOptions | None = None) -> None:
        self.seed = seed
        self.options = options or WorldOptions()
        self.loop = SimLoop(self.generator("order"), order_is_drawn=self.options.order_is_drawn)
        self.loop.services = _Services(self)
        self.loop.on_exit = self._exited
        self.trace = Trace(self.loop.time)
        self.network = Fabric(self.loop, self.generator("network"), self.options.network, self.trace.add)
        self._boots = self.generator("boots")
        self._nodes: dict[str, SimHost] = {}
        self._killed_tasks: list[asyncio.Task[Any]] = []
        self._failures: list[tuple[str, BaseException | None]] = []
        self.harness = SimHost(self, "harness", is_harness=True)
        self.harness_run = self.harness.boot()

    def generator(self, name: str) -> random.Random:
        return stream(self.seed, name)

    def node(self, name: str) -> SimHost:
        """The machine with this name, created on first use."""
        if name not in self._nodes:
            self._nodes[name] = SimHost(self, name)
        return self._nodes[name]

    @property
    def nodes(self) -> list[SimHost]:
        return list(self._nodes.values())

    def boot_delay(self) -> float:
        return self._boots.random() * 0.001

    def run(self, scenario: Callable[[Environment], Coroutine[Any, Any, T]], *, limit_s: float) -> T:
        """Run a scenario on the harness's machine to its end; may be called again, at a later virtual time."""
        self.loop.deadline = self.loop.time() + limit_s
        with ExitStack() as stack:
            stack.callback(_restore_collector, gc.isenabled())
            # A collection at an arbitrary moment would run finalizers at an arbitrary moment.
            gc.disable()
            if self.options.is_strict:
                stack.enter_context(strict_mode(lambda leak: self.fail("a leak", leak)))
            try:
                context = self.harness_run.process.context.copy()
                task = context.run(self.loop.create_task, scenario(self.harness_run.environment))
                result = self.loop.run_until_complete(task)
                self._raise_failures()
            except BaseException as error:
                # The scenario may have failed because of something that raised elsewhere first.
                for message in self.clear_failures():
                    error.add_note(message)
                error.add_note(self.describe())
                raise
        return result

    def close(self) -> None:
        """End all processes and release those that were killed. A world must be closed before it is discarded."""
        for node in self.nodes:
            node.crash()
        self.forget_process(self.harness_run.process)
        with warnings.catch_warnings():
            # What they were about to await is never begun.
            warnings.simplefilter("ignore", RuntimeWarning)
            _close_coroutines(self._killed_tasks)
            # Some have scheduled new work while they were closed.
            _close_coroutines(asyncio.all_tasks(self.loop))
            self._killed_tasks.clear()
        self.loop.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def describe(self) -> str:
        """Describe how to reproduce this run, and its last events."""
        lines = [f"World(seed={self.seed}, options={self.options!r})", f"digest {self.trace.digest()}"]
        lines += [f"  {event}" for event in self.trace.recent()[-_EVENTS_SHOWN:]]
        return "\n".join(lines)

    def fail(self, message: str, error: BaseException | None) -> None:
        """Make the run fail once its scenario has ended."""
        self._failures.append((message, error))

    def clear_failures(self) -> list[str]:
        """Clear the failures so far, for a scenario that expects them; returns their messages."""
        self._collect_failures()
        messages = [_failure_text(failure) for failure in self._failures]
        self._failures.clear()
        return messages

    def _collect_failures(self) -> None:
        for context in self.loop.failures:
            error = context.get("exception")
            self._failures.append((f"{context.get('message')} in {context.get('process')}", error))
        self.loop.failures.clear()

    def _raise_failures(self) -> None:
        self._collect_failures()
        if self._failures:
            failures, self._failures = self._failures, []
            cause = next((error for _, error in failures if error is not None), None)
            raise SimulationFailed("; ".join(map(_failure_text, failures[:5]))) from cause

    def forget_process(self, process: Process) -> None:
        """Stop a process permanently. Its coroutines are kept, so that their ``finally`` blocks do not run."""
        process.is_alive = False
        process.is_held = True
        process.held.clear()
        for task in process.unfinished_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            self._killed_tasks.append(task)
        process.tasks.clear()

    def _exited(self, process: Process, error: BaseException) -> None:
        for node in self._nodes.values():
            if node.run is not None and node.run.process is process:
                node.exited(error)

    def run_of(self, process: Process | None) -> ProcessRun:
        for node in (self.harness, *self._nodes.values()):
            if node.run is not None and node.run.process is process:
                return node.run
        raise RuntimeError("no simulated process is running here")


class _Services:
    """The services behind the event loop's own network and executor calls, found through the running process."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def create_server(
        self, make_protocol: Callable[[], asyncio.BaseProtocol], host: str | None = None, port: int = 0, **_: Any
    ) -> SimServer:
        process = self._world.run_of(PROCESS.get()).process
        bound = self._world.network.listen(process, make_protocol, host or "", port or 0)
        return SimServer(self._world.network, process, bound)

    async def create_connection(
        self, make_protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> Any:
        process = self._world.run_of(PROCESS.get()).process
        return await self._world.network.connect(process, make_protocol, host, port)

    def addresses(self, host: str, port: int) -> list[Any]:
        process = self._world.run_of(PROCESS.get()).process
        machine = self._world.network.find_machine(host, process.machine_name)
        return [(2, 1, 6, "", (machine.address, port))]

    def run_in_thread(self, function: Callable[..., T], *arguments: Any) -> Any:
        return self._world.run_of(PROCESS.get()).environment.threads.run(function, *arguments)


def _failure_text(failure: tuple[str, BaseException | None]) -> str:
    message, error = failure
    return message if error is None else f"{message}: {error!r}"


def _restore_collector(was_enabled: bool) -> None:
    if was_enabled:
        gc.enable()


def _close_coroutines(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        try:
            task.get_coro().close()
        except BaseException:
            # Output of a process that no longer exists.
            continue
