"""The virtual-time loop by itself."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from millbeck.simulation.environment import loop as loop_module
from millbeck.simulation.environment.loop import SimLoop, SimulationStuck
from millbeck.simulation.environment.process import Process


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    made = SimLoop(random.Random(1))
    yield made
    made.close()


def test_time_jumps_to_the_next_timer(loop: SimLoop) -> None:
    async def scenario() -> list[float]:
        seen = [loop.time()]
        for delay in (3600, 0.5, 0, 86400):
            await asyncio.sleep(delay)
            seen.append(loop.time())
        return seen

    before = time.monotonic()
    assert loop.run_until_complete(scenario()) == [0.0, 3600.0, 3600.5, 3600.5, 90000.5]
    assert time.monotonic() - before < 5


def test_unmodified_asyncio_runs(loop: SimLoop) -> None:
    async def worker(queue: asyncio.Queue[float], lock: asyncio.Lock, results: list[Any]) -> None:
        while True:
            item = await queue.get()
            async with lock:
                await asyncio.sleep(item)
                results.append((loop.time(), item))
            queue.task_done()

    async def scenario() -> object:
        queue: asyncio.Queue[float] = asyncio.Queue(maxsize=2)
        lock = asyncio.Lock()
        results: list[Any] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.25):
                await asyncio.sleep(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.25)
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker(queue, lock, results)) for _ in range(2)]
            for number in (1.0, 2.0, 3.0):
                await queue.put(number)
            await queue.join()
            for task in workers:
                task.cancel()
        return results

    assert loop.run_until_complete(scenario()) == [(1.5, 1.0), (3.5, 2.0), (6.5, 3.0)]


def test_timers_fire_in_order_and_cancelled_ones_never(loop: SimLoop) -> None:
    fired: list[object] = []
    for number in (5, 1, 3):
        loop.call_later(number, fired.append, number)
    loop.call_later(2, fired.append, "cancelled").cancel()
    loop.call_at(1, fired.append, "same instant, later")
    loop.run_until_complete(asyncio.sleep(10))
    assert fired == [1, "same instant, later", 3, 5]


def test_cancelled_timers_do_not_pile_up(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "_CANCELLED_TIMERS_BEFORE_PURGE", 10)
    for _ in range(1000):
        loop.call_later(100, print).cancel()
    assert len(loop._timers) < 50


def test_a_loop_with_nothing_to_wait_for_says_so(loop: SimLoop) -> None:
    async def forever() -> None:
        await loop.create_future()

    with pytest.raises(SimulationStuck, match="no callback is scheduled"):
        loop.run_until_complete(forever())


def test_the_deadline_is_virtual(loop: SimLoop) -> None:
    loop.deadline = 10.0
    with pytest.raises(SimulationStuck, match="deadline"):
        loop.run_until_complete(asyncio.sleep(11))
    assert loop.time() <= 10.0


def test_callbacks_that_feed_each_other_are_stopped(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "_CALLBACKS_PER_INSTANT_MAX", 1000)

    def again() -> None:
        loop.call_soon(again)

    loop.call_soon(again)
    with pytest.raises(SimulationStuck, match="endlessly"):
        loop.run_until_complete(asyncio.sleep(1))


def _order(seed: int, *, order_is_drawn: bool = True) -> list[str]:
    loop = SimLoop(random.Random(seed), order_is_drawn=order_is_drawn)
    processes = [Process(name, name) for name in "abc"]
    seen: list[str] = []
    for number in range(4):
        for process in processes:
            loop.call_soon(seen.append, f"{process.name}{number}", context=process.context)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    return seen


def test_the_order_between_processes_is_drawn_and_within_one_is_kept() -> None:
    orders = {tuple(_order(seed)) for seed in range(10)}
    assert len(orders) > 5
    for order in orders:
        for name in "abc":
            assert [entry for entry in order if entry[0] == name] == [f"{name}{number}" for number in range(4)]
    assert _order(3) == _order(3)
    assert _order(3, order_is_drawn=False) == [f"{name}{number}" for number in range(4) for name in "abc"]


def test_a_held_process_does_nothing_and_catches_up_in_order(loop: SimLoop) -> None:
    process = Process("n", "n")
    seen: list[object] = []
    for number in range(3):
        loop.call_later(number + 1, lambda number=number: seen.append((number, loop.time())), context=process.context)
    loop.hold(process, 2.5)
    loop.run_until_complete(asyncio.sleep(10))
    assert seen == [(0, 2.5), (1, 2.5), (2, 3.0)]


def test_holds_overlap(loop: SimLoop) -> None:
    process = Process("n", "n")
    seen: list[object] = []
    loop.call_later(1, lambda: seen.append(loop.time()), context=process.context)
    loop.hold(process, 2)
    loop.hold(process, 5)
    loop.run_until_complete(asyncio.sleep(10))
    assert seen == [5.0]


def test_a_dead_process_does_nothing_ever(loop: SimLoop) -> None:
    process = Process("n", "n")
    seen: list[object] = []
    loop.call_later(1, seen.append, 1, context=process.context)
    process.is_alive, process.is_held = False, True
    loop.run_until_complete(asyncio.sleep(10))
    assert seen == []


def test_what_a_callback_raises_is_kept(loop: SimLoop) -> None:
    def fail() -> None:
        raise ValueError("in a callback")

    loop.call_soon(fail)
    loop.run_until_complete(asyncio.sleep(1))
    assert [type(failure["exception"]) for failure in loop.failures] == [ValueError]


def test_an_exit_inside_a_process_ends_that_process_only(loop: SimLoop) -> None:
    process, ended = Process("n", "n"), []
    loop.on_exit = lambda which, error: ended.append((which, getattr(error, "code", None)))

    def leave() -> None:
        raise SystemExit(3)

    loop.call_soon(leave, context=process.context)
    loop.run_until_complete(asyncio.sleep(1))
    assert ended == [(process, 3)]


def test_garbage_is_collected_at_fixed_steps(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    collected = []
    monkeypatch.setattr(loop_module, "_CALLBACKS_BEFORE_COLLECTION", 100)
    monkeypatch.setattr(gc, "collect", lambda generation: collected.append(loop.callback_count))

    async def scenario() -> None:
        for _ in range(350):
            await asyncio.sleep(0.01)

    loop.run_until_complete(scenario())
    assert len(collected) >= 3
