"""How late the loop runs, how idle it is, and what the collector costs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.metrics import Registry
from millbeck.server.loop.monitor import (
    COLLECTION_INTERVAL_SECONDS,
    GIVING_BACK_INTERVAL_SECONDS,
    INTERVAL_SECONDS,
    EventLoopMonitor,
)
from millbeck.simulation import World


class BusyClock:
    """A clock on which the processor is busy for a share of the time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.share = 0.0
        self._since = loop.time()
        self._busy = 0.0

    def monotonic(self) -> float:
        return self._loop.time()

    def wall_ms(self) -> int:
        return 0

    def wall_ns(self) -> int:
        return 0

    def busy_seconds(self) -> float:
        now = self._loop.time()
        self._busy += (now - self._since) * self.share
        self._since = now
        return self._busy


def watched(scenario: Callable[[EventLoopMonitor, BusyClock, Registry], Coroutine[Any, Any, None]]) -> None:
    async def whole(environment: Environment) -> None:
        loop = asyncio.get_running_loop()
        clock, registry = BusyClock(loop), Registry()
        watch = EventLoopMonitor(loop, clock, registry)
        watch.start()
        try:
            await scenario(watch, clock, registry)
        finally:
            watch.stop()

    with World(1) as world:
        world.run(whole, limit_s=1000)


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """The collector as it was, whatever a test has set."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    assert gc.callbacks == callbacks


def test_the_idle_share_is_what_is_left_of_the_time() -> None:
    async def scenario(watch: EventLoopMonitor, clock: BusyClock, registry: Registry) -> None:
        await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert watch.idle_share == 1.0
        clock.share = 0.25
        await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert watch.idle_share == pytest.approx(0.75)
        text = registry.render()
        assert "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.75" in text
        assert "kafka_network_socketserver_networkprocessoravgidle_percent 0.75" in text
        clock.share = 3.0
        await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert watch.idle_share == 0.0

    watched(scenario)


def test_a_loop_on_time_shows_no_lag() -> None:
    async def scenario(watch: EventLoopMonitor, clock: BusyClock, registry: Registry) -> None:
        await asyncio.sleep(10 * INTERVAL_SECONDS)
        assert watch.lag.count >= 9
        assert watch.lag.total < 1

    watched(scenario)


def test_a_loop_that_was_stopped_shows_by_how_much() -> None:
    async def whole(environment: Environment) -> None:
        loop = asyncio.get_running_loop()
        watches: list[EventLoopMonitor] = []

        async def main(environment: Environment) -> None:
            watch = EventLoopMonitor(asyncio.get_running_loop(), environment.clock, Registry())
            watch.start()
            watches.append(watch)
            await asyncio.sleep(100)

        node = world.node("n1")
        node.start(main)
        await asyncio.sleep(1)
        node.pause(2.0)
        await asyncio.sleep(5)
        assert 1500 < watches[0].lag.total < 2100
        assert loop.time() > 5
        watches[0].stop()

    with World(1) as world:
        world.run(whole, limit_s=100)


def test_only_a_process_of_its_own_is_collected_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[float] = []

    async def scenario(watch: EventLoopMonitor, clock: BusyClock, registry: Registry) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(gc, "collect", lambda: collections.append(loop.time()))
        await asyncio.sleep(3 * COLLECTION_INTERVAL_SECONDS)
        assert collections == []
        watch.freeze_loaded_objects()
        collections.clear()
        await asyncio.sleep(3 * COLLECTION_INTERVAL_SECONDS + 5)
        assert len(collections) == 4
        clock.share = 0.5
        collections.clear()
        await asyncio.sleep(3 * COLLECTION_INTERVAL_SECONDS)
        assert collections == []

    watched(scenario)


def test_freed_memory_is_given_back_when_the_loop_has_time() -> None:
    async def scenario(watch: EventLoopMonitor, clock: BusyClock, registry: Registry) -> None:
        loop = asyncio.get_running_loop()
        begun: list[asyncio.Future[None]] = []

        def give_back() -> asyncio.Future[None]:
            begun.append(loop.create_future())
            return begun[-1]

        watch.freeze_loaded_objects(give_back)
        await asyncio.sleep(3 * GIVING_BACK_INTERVAL_SECONDS)
        assert len(begun) == 1, "asked again before it had ended"
        begun[0].set_result(None)
        await asyncio.sleep(1)
        assert len(begun) == 2
        begun[1].set_result(None)
        clock.share = 0.5
        await asyncio.sleep(3 * GIVING_BACK_INTERVAL_SECONDS)
        assert len(begun) == 2, "in the way of requests"
        clock.share = 0.1
        await asyncio.sleep(1)
        assert len(begun) == 3

    watched(scenario)


def test_pauses_of_the_collector_are_measured_and_the_callback_goes_with_the_watch() -> None:
    async def scenario(watch: EventLoopMonitor, clock: BusyClock, registry: Registry) -> None:
        watch.freeze_loaded_objects()
        before = watch.pauses.count
        gc.collect()
        assert watch.pauses.count == before + 1

    watched(scenario)
