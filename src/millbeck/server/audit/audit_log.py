"""Passes audit events of the node's components to the sinks, each through its own bounded queue.

`AuditLog.record` never waits: if a sink is too slow, events are dropped and counted. Events come from rare or slow
paths (logins, denials, metadata changes, throttled clients), not from the data path.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from millbeck.kernel.units import KIB, MIB
from millbeck.security.audit.events import AuditEvent, AuditKind, line_of
from millbeck.security.audit.folding import Folding, Repeats

if TYPE_CHECKING:
    from millbeck.kernel.environment import Clock
    from millbeck.server.loop.deadlines import Deadlines

QUEUED_MAX: Final = 10_000
QUEUED_BYTES_MAX: Final = 16 * MIB
LINES_AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 256 * KIB
"""Of this and `LINES_AT_ONCE`, what is reached first ends a batch; one line is always written."""
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS_MAX: Final = 5.0

log = logging.getLogger(__name__)


class AuditSink(Protocol):
    """A destination of audit lines."""

    name: str

    async def write(self, lines: Sequence[str]) -> int:
        """Write lines in this order; after an exception they are written again. Returns how many of them were left out
        because they can never be written here."""


class SinkQueue:
    """The queue of one sink, and the task that writes it."""

    def __init__(
        self, sink: AuditSink, *, queued_max: int = QUEUED_MAX, queued_bytes_max: int = QUEUED_BYTES_MAX
    ) -> None:
        self._sink = sink
        self._queued_max = queued_max
        self._queued_bytes_max = queued_bytes_max
        self._lines: deque[str] = deque()
        self._bytes = 0
        """The size of the queued lines, which are ASCII."""
        self._wanted = asyncio.Event()
        self._writing = asyncio.Lock()
        """Held during a write: the last ones, at `close`, do not overlap one that is under way."""
        self._is_failing = False
        self.dropped = 0
        self.written = 0

    @property
    def name(self) -> str:
        return self._sink.name

    def put(self, line: str) -> None:
        if len(self._lines) >= self._queued_max or self._bytes + len(line) > self._queued_bytes_max:
            self.dropped += 1
            return
        self._lines.append(line)
        self._bytes += len(line)
        self._wanted.set()

    async def run(self) -> None:
        """Write lines while the node runs."""
        while True:
            await self._wanted.wait()
            if not await self.write_some():
                await asyncio.sleep(RETRY_SECONDS)

    async def write_some(self) -> bool:
        """Write a batch of lines; returns whether that succeeded."""
        async with self._writing:
            return await self._write_first()

    async def _write_first(self) -> bool:
        some = self._first_lines()
        left_out = 0
        try:
            if some:
                left_out = await self._sink.write(some)
        except Exception as error:  # a failed disk or topic must not stop the node
            if not self._is_failing:
                log.warning("the audit %s cannot be written and is tried again: %s", self.name, error)
            self._is_failing = True
            return False
        self._is_failing = False
        for _ in some:
            self._bytes -= len(self._lines.popleft())
        self.written += len(some) - left_out
        self.dropped += left_out
        if not self._lines:
            self._wanted.clear()
        return True

    def _first_lines(self) -> list[str]:
        some: list[str] = []
        size_bytes = 0
        for line in islice(self._lines, LINES_AT_ONCE):
            size_bytes += len(line)
            if some and size_bytes > BYTES_AT_ONCE:
                break
            some.append(line)
        return some

    async def close(self) -> None:
        """Write the remaining lines, without retries."""
        while self._lines and await self.write_some():
            pass


class AuditLog:
    def __init__(
        self,
        sinks: Sequence[AuditSink],
        *,
        clock: Clock,
        deadlines: Deadlines,
        node_id: int,
        kinds: Collection[AuditKind],
        repeat_ms: int,
    ) -> None:
        self.queues = [SinkQueue(sink) for sink in sinks]
        self.counts: Counter[AuditKind] = Counter()
        """The number of events by kind, including repetitions."""
        self._clock = clock
        self._deadlines = deadlines
        self._node_id = node_id
        self._kinds = frozenset(kinds)
        self._folding = Folding(repeat_ms)
        self._is_waiting = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._tasks = [spawn(queue.run()) for queue in self.queues]

    def record(self, event: AuditEvent) -> None:
        if event.kind not in self._kinds:
            return
        self.counts[event.kind] += 1
        now_ms = self._deadlines.now_ms()
        if self._folding.record(event, now_ms):
            self._put(line_of(event, wall_ms=self._clock.wall_ms(), node_id=self._node_id))
        self._wait(now_ms)

    def _wait(self, now_ms: int) -> None:
        ends_ms = self._folding.next_end_ms()
        if ends_ms is not None and not self._is_waiting:
            self._is_waiting = True
            self._deadlines.after(max(ends_ms - now_ms, 0), self._expire)

    def _expire(self) -> None:
        self._is_waiting = False
        now_ms = self._deadlines.now_ms()
        self._put_repeats(self._folding.expire(now_ms))
        self._wait(now_ms)

    def _put_repeats(self, found: list[Repeats]) -> None:
        for each in found:
            more = {"repeated": each.count, "seconds": round(each.seconds, 1)}
            self._put(line_of(each.event, wall_ms=self._clock.wall_ms(), node_id=self._node_id, more=more))

    def _put(self, line: str) -> None:
        for queue in self.queues:
            queue.put(line)

    async def close(self) -> None:
        """Write all remaining lines, for at most a few seconds."""
        self._put_repeats(self._folding.flush(self._deadlines.now_ms()))
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await asyncio.gather(*(queue.close() for queue in self.queues))
        except TimeoutError:
            log.warning("not all of the audit could be written")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
