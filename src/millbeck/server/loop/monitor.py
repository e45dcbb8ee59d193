"""How the event loop is doing: how late it runs, how busy it is, and how long garbage collection stops it.

The loop is a broker's request handlers and network threads in one, so its idle share is what Kafka's two idle
percentages show. Collections are kept off the hot path: what is loaded is frozen out of the collector's sight
(`settle`), and a full collection is made when the loop has been idle for a while.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from typing import Any, Final

from millbeck.kernel.environment import Clock
from millbeck.kernel.metrics import Registry

INTERVAL_SECONDS: Final = 0.25
IDLE_SHARE_FOR_COLLECTION: Final = 0.95
COLLECTION_INTERVAL_SECONDS: Final = 60.0
YOUNG_OBJECTS: Final = 2_000
"""Allocations between collections of the youngest generation. A collection costs up to half a microsecond for each: at
50,000 every one of them stopped the loop for 20 ms."""


class LoopWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, registry: Registry) -> None:
        self._loop = loop
        self._clock = clock
        self._handle: asyncio.TimerHandle | None = None
        self._expected_at = 0.0
        self._busy_before = 0.0
        self._measured_at = 0.0
        self._collected_at = 0.0
        self._pause_began = 0.0
        self._collects_when_idle = False
        self.idle_share = 1.0
        self.lag = registry.histogram(
            "millbeck_loop_lag_ms", "Milliseconds by which the event loop ran a timer late."
        ).child()
        self.lateness_ms = [self.lag]
        """Who else wants to know, under another name."""
        self.pauses = registry.histogram("millbeck_gc_pause_ms", "Milliseconds a garbage collection took.").child()
        for name, what in (
            ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "request handling"),
            ("kafka_network_socketserver_networkprocessoravgidle_percent", "the network"),
        ):
            idle = registry.gauge(name, f"Share of time in which the event loop, which does {what}, was idle.").child()
            idle.read = self._read_idle_share

    def _read_idle_share(self) -> float:
        return self.idle_share

    def start(self) -> None:
        self._busy_before = self._clock.busy_seconds()
        self._measured_at = self._collected_at = self._loop.time()
        self._arm()

    def settle(self) -> None:
        """Everything loaded so far stays: take it out of the collector's sight, and collect the rest when idle.

        Only for a process of the node's own: what is set here is the whole process's, and the collector's list of
        callbacks would keep a simulated node that crashed for ever.
        """
        self._collects_when_idle = True
        gc.callbacks.append(self._collection)
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, 10, 1000)

    def settle_again(self) -> None:
        """Much that stays was added, as by a large metadata change: take that out of sight too."""
        if self._collects_when_idle:
            gc.freeze()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self._collection in gc.callbacks:
            gc.callbacks.remove(self._collection)

    def _arm(self) -> None:
        self._expected_at = self._loop.time() + INTERVAL_SECONDS
        self._handle = self._loop.call_at(self._expected_at, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        late_ms = max(0.0, now - self._expected_at) * 1000
        for histogram in self.lateness_ms:
            histogram.record(late_ms)
        busy = self._clock.busy_seconds()
        elapsed = now - self._measured_at
        if elapsed > 0:
            self.idle_share = min(1.0, max(0.0, 1 - (busy - self._busy_before) / elapsed))
        self._busy_before, self._measured_at = busy, now
        is_idle = self.idle_share > IDLE_SHARE_FOR_COLLECTION
        if self._collects_when_idle and is_idle and now - self._collected_at > COLLECTION_INTERVAL_SECONDS:
            self._collected_at = now
            gc.collect()
        self._arm()

    def _collection(self, phase: str, details: Mapping[str, Any]) -> None:
        if phase == "start":
            self._pause_began = self._clock.monotonic()
        else:
            self.pauses.record((self._clock.monotonic() - self._pause_began) * 1000)
