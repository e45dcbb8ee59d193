"""Monitor of the event loop: its lag, its idle share, and the pauses of garbage collection.

The event loop does the work of Kafka's request handler and network threads, so its idle share is exported under both of
Kafka's idle percentages. Garbage collection is kept off the hot path: `freeze_loaded_objects` freezes what was loaded
at start, and a full collection runs when the loop has been idle for a while. When idle, a thread also returns memory
freed in the allocator to the system.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from typing import Any, Final

from millbeck.kernel.environment import Clock
from millbeck.kernel.metrics import Registry

INTERVAL_SECONDS: Final = 0.25
IDLE_SHARE_FOR_COLLECTION: Final = 0.95
COLLECTION_INTERVAL_SECONDS: Final = 60.0
IDLE_SHARE_FOR_GIVING_BACK: Final = 0.8
GIVING_BACK_INTERVAL_SECONDS: Final = 15.0
YOUNG_OBJECTS: Final = 2_000
"""Allocations between collections of the youngest generation. A collection costs up to half a microsecond for each
allocated object: at 50,000 every collection stopped the loop for 20 ms."""


YOUNG_COLLECTIONS: Final = 5
"""Collections of the youngest generation between those of the next, which holds the survivors."""


class EventLoopMonitor:
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
        self._gave_back_at = 0.0
        self._give_back: Callable[[], asyncio.Future[None]] | None = None
        self._giving_back: asyncio.Future[None] | None = None
        self.idle_share = 1.0
        self.lag = registry.histogram(
            "millbeck_loop_lag_ms", "Delay in milliseconds with which the event loop ran a timer."
        ).child()
        self.lateness_ms = [self.lag]
        """Histograms that record the lag, under other metric names as well."""
        self.pauses = registry.histogram(
            "millbeck_gc_pause_ms", "Duration of a garbage collection in milliseconds."
        ).child()
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
        self._measured_at = self._collected_at = self._gave_back_at = self._loop.time()
        self._arm()

    def freeze_loaded_objects(self, give_back: Callable[[], asyncio.Future[None]] | None = None) -> None:
        """Freeze all objects loaded so far (`gc.freeze`), and run full collections when idle.

        ``give_back`` is called when the loop is idle; it starts a thread that returns freed memory to the system.

        Only for a node that does not share its process: the settings are process-wide, and the collector's list of
        callbacks would keep a crashed simulated node alive forever.
        """
        self._collects_when_idle = True
        self._give_back = give_back
        gc.callbacks.append(self._collection)
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, 2000)

    def refreeze_gc(self) -> None:
        """Freeze again after many long-lived objects were added or removed, as by a large metadata change."""
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
        if (
            self._give_back is not None
            and self.idle_share > IDLE_SHARE_FOR_GIVING_BACK
            and now - self._gave_back_at > GIVING_BACK_INTERVAL_SECONDS
            # Do not call again while a thread hangs on a dead disk.
            and (self._giving_back is None or self._giving_back.done())
        ):
            self._gave_back_at = now
            self._giving_back = self._give_back()
        self._arm()

    def _collection(self, phase: str, details: Mapping[str, Any]) -> None:
        if phase == "start":
            self._pause_began = self._clock.monotonic()
        else:
            self.pauses.record((self._clock.monotonic() - self._pause_began) * 1000)
