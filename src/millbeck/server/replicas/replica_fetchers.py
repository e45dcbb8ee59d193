"""The fetchers of this node: a connection for each leader it follows, times ``num.replica.fetchers``.

`replication.fetcher` decides what to ask and what an answer means; this gives it a connection. An answer is taken
inside the connection's callback, and the next request leaves from there: no task and no queue between two fetches.
What needs time (cutting a log, a flush, asking where the leader's log begins) runs beside it.

Whatever goes wrong with a connection, everybody on it rests for ``replica.fetch.backoff.ms`` and then a new one is
opened, to wherever the metadata says that the leader is by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.errors import ConnectFailed
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, KafkaStorageError, from_code
from millbeck.kernel.timer_wheel import Timer
from millbeck.replication.fetcher import AwaitFlush, Fetcher, FetchLimits, FindOffsets, Step, Truncate
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.server.deadlines import Deadlines
from millbeck.wire.messages.fetch import FetchResponse
from millbeck.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

REPLICA_STATE_FROM: Final = 15
LATEST: Final = -1
EARLIEST: Final = -2
FLUSH_LOOK_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class ReplicaLogs(Protocol):
    """What fetchers ask of the node's logs; both end when the disk has it."""

    def truncate(
        self, partition: Partition, offset: int, *, starts_over: bool, is_wanted: Callable[[], bool]
    ) -> Awaitable[None]: ...

    def flush(self, partition: Partition) -> Awaitable[None]: ...


class Neighbourhood(Protocol):
    """Where the other brokers are, as the metadata has it, and who we are to them."""

    def address_of(self, broker_id: int) -> Address | None:
        """On the listener for brokers; None while it is not registered, or has no such listener."""

    def connection_settings(self) -> ConnectionSettings: ...

    def broker_epoch(self) -> int: ...

    def is_held_back(self, partition: Partition) -> bool:
        """Whether copying it is throttled for now."""

    def copied(self, partition: Partition, size_bytes: int) -> None: ...


class ReplicaFetchers:
    """Every partition this node follows, with the fetcher it is on."""

    def __init__(
        self,
        environment: Environment,
        deadlines: Deadlines,
        logs: ReplicaLogs,
        neighbourhood: Neighbourhood,
        *,
        node_id: int,
        limits: Callable[[], FetchLimits],
        fetcher_count: Callable[[], int],
        request_timeout_ms: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[Exception], None],
    ) -> None:
        self.environment = environment
        self.deadlines = deadlines
        self.logs = logs
        self.neighbourhood = neighbourhood
        self.node_id = node_id
        self.limits = limits
        self.request_timeout_ms = request_timeout_ms
        self.spawn = spawn
        self.report = report
        self._fetcher_count = fetcher_count
        self.is_started = False
        self._lines: dict[tuple[int, int], FetchLine] = {}
        self._bytes_in_before = 0
        """Of lines that are closed."""
        self._line_of: dict[Partition, FetchLine] = {}

    def start(self) -> None:
        """Fetch from now on. Before this node is registered its fetches would carry no epoch, and leaders, who look at
        a follower's epoch when its fetch says something new, would not let it into the ISR.
        """
        self.is_started = True
        for line in self._lines.values():
            line.begin()

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader from now on; nothing when it has none.

        Nothing either while the log is offline: a fetch would claim what it held, as if it still could be read.
        """
        self.stop(partition)
        if partition.leader_id == NO_LEADER or partition.is_leader or partition.log.is_offline:
            return
        key = (partition.leader_id, _slot_of(partition) % self._fetcher_count())
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = FetchLine(self, partition.leader_id)
        self._line_of[partition] = line
        line.add(partition)

    def stop(self, partition: Partition) -> None:
        """The partition leads, or is gone, or will follow another leader."""
        line = self._line_of.pop(partition, None)
        if line is not None:
            line.remove(partition)

    def close_idle(self) -> None:
        """Let go of connections to brokers that lead nothing we have; after each image."""
        for key, line in list(self._lines.items()):
            if not len(line.fetcher):
                del self._lines[key]
                self._bytes_in_before += line.fetcher.bytes_in
                line.close()

    def close(self) -> None:
        self._line_of.clear()
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            self._bytes_in_before += line.fetcher.bytes_in
            line.close()

    @property
    def followed(self) -> list[Partition]:
        return list(self._line_of)

    @property
    def lines(self) -> Mapping[tuple[int, int], FetchLine]:
        """By leader, and by number among those to the same leader."""
        return self._lines

    @property
    def bytes_in(self) -> int:
        """Since the node started; it never shrinks."""
        return self._bytes_in_before + sum(line.fetcher.bytes_in for line in self._lines.values())


class FetchLine:
    """One fetcher with its connection: connecting, asking, resting, or idle."""

    __slots__ = ("_connection", "_is_asking", "_is_closed", "_is_connecting", "_node", "_timer", "fetcher", "requests")

    def __init__(self, node: ReplicaFetchers, leader_id: int) -> None:
        self._node = node
        self._connection: Connection | None = None
        self._is_connecting = False
        self._is_asking = False
        self._is_closed = False
        self._timer: Timer | None = None
        self.requests = 0
        """Sent so far."""
        self.fetcher = Fetcher(
            leader_id,
            node.node_id,
            limits=node.limits(),
            now_ms=node.deadlines.now_ms,
            wall_ms=node.environment.clock.wall_ms,
            broker_epoch=node.neighbourhood.broker_epoch,
            is_held_back=node.neighbourhood.is_held_back,
            copied=node.neighbourhood.copied,
        )

    def add(self, partition: Partition) -> None:
        step = self.fetcher.add(partition)
        if step is not None:
            self._perform(step)
        self._arrange(0)

    def remove(self, partition: Partition) -> None:
        self.fetcher.remove(partition)

    def begin(self) -> None:
        self._arrange(0)

    @property
    def is_stuck(self) -> bool:
        """Whether there is something to ask, and nothing on its way that will. That would be a defect."""
        is_moving = self._is_asking or self._is_connecting or self._timer is not None
        return self._node.is_started and not self._is_closed and not is_moving and self.fetcher.has_questions

    def close(self) -> None:
        self._is_closed = True
        self._cancel_timer()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Asking.

    def _arrange(self, delay_ms: int) -> None:
        """Look for something to ask after a while; the earliest such wish counts."""
        if self._timer is None and not self._is_asking and not self._is_connecting and not self._is_closed:
            self._timer = self._node.deadlines.after(delay_ms, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self._ask()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ask(self) -> None:
        if self._is_asking or self._is_connecting or self._is_closed or not len(self.fetcher):
            return
        if not self._node.is_started:
            return
        connection = self._connection
        if connection is None:
            self._is_connecting = True
            self._node.spawn(self._connect())
            return
        self._cancel_timer()
        self.fetcher.limits = self._node.limits()
        request = self.fetcher.request()
        if request is None:
            due_ms = self.fetcher.due_ms
            if due_ms is not None:
                self._arrange(max(0, due_ms - self._node.deadlines.now_ms()))
            return
        self._is_asking = True
        self.requests += 1
        timeout_s = (request.max_wait_ms + self._node.request_timeout_ms()) / 1000
        try:
            connection.submit(
                request, FetchResponse, self._answered, timeout_s=timeout_s, version_min=REPLICA_STATE_FROM
            )
        except ApiError as error:
            self._lost(error)

    def _answered(self, outcome: Any) -> None:
        self._is_asking = False
        if isinstance(outcome, ApiError):
            self._lost(outcome)
            return
        try:
            steps = self.fetcher.replied(outcome)
        except Exception as error:
            self._node.report(error)
            self._lost(KafkaStorageError("an unexpected error"))
            return
        for step in steps:
            self._perform(step)
        self._ask()

    async def _connect(self) -> None:
        leader_id = self.fetcher.leader_id
        try:
            address = self._node.neighbourhood.address_of(leader_id)
            if address is None:
                raise ConnectFailed(f"broker {leader_id} is not there")
            connection = await Connection.open(
                self._node.environment.network, address, self._node.neighbourhood.connection_settings()
            )
        except ApiError as error:
            self._is_connecting = False
            self._lost(error)
            return
        except BaseException:
            self._is_connecting = False
            raise
        self._is_connecting = False
        if self._is_closed:
            connection.close()
            return
        self._connection = connection
        self._ask()

    def _lost(self, error: ApiError) -> None:
        """Start over with a new connection after a rest."""
        self._is_asking = False
        self.fetcher.failed()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._is_closed:
            return
        log.info("fetching from broker %s: %s", self.fetcher.leader_id, error)
        self._cancel_timer()
        self._arrange(self._node.limits().backoff_ms)

    # Steps.

    def _perform(self, step: Step) -> None:
        if isinstance(step, FindOffsets):
            self._find_offsets(step)
        elif isinstance(step, Truncate):
            self._node.spawn(self._run(step, self._truncate(step)))
        elif isinstance(step, AwaitFlush):
            self._node.spawn(self._run(step, self._flush(step)))

    async def _run(self, step: Step, work: Coroutine[Any, Any, None]) -> None:
        failure: ApiError | None = None
        try:
            await work
        except ApiError as error:
            failure = error
        except OSError as error:
            failure = KafkaStorageError(f"{step.partition.name}: {error}")
        self._done(step, failure)

    def _done(self, step: Step, error: ApiError | None = None) -> None:
        if step.partition.log.is_offline:
            self.fetcher.remove(step.partition)
        else:
            self.fetcher.resume(step, error)
        self._ask()

    async def _truncate(self, step: Truncate) -> None:
        partition = step.partition
        log.info("%s is cut to %s, where its leader's history goes on", partition.name, step.offset)
        await self._node.logs.truncate(
            partition, step.offset, starts_over=step.starts_over, is_wanted=lambda: step.is_wanted
        )

    async def _flush(self, step: AwaitFlush) -> None:
        """Until everything is on the disk: a flush may be under way already, and there may be more behind it."""
        partition, log_ = step.partition, step.partition.log
        while step.is_wanted and not log_.is_offline and log_.flushed_offset < log_.end_offset:
            ended = asyncio.Event()
            partition.on_flushed = ended.set
            await self._node.logs.flush(partition)
            if log_.flushed_offset < log_.end_offset:
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH_LOOK_SECONDS):
                        await ended.wait()

    def _find_offsets(self, step: FindOffsets) -> None:
        """Where the leader's log begins and ends, both asked at once, answered in order."""
        connection = self._connection
        if connection is None:
            self._done(step, ConnectFailed("the connection is gone"))
            return
        found: list[int] = []

        def answered(outcome: Any) -> None:
            if isinstance(outcome, ApiError):
                self._done(step, outcome)
                return
            (result,) = outcome.topics[0].partitions
            if result.error_code:
                self._done(step, from_code(result.error_code))
                return
            found.append(result.offset)
            if len(found) == 2:
                self._offsets_found(step, found[0], found[1])

        for timestamp in (EARLIEST, LATEST):
            asked = ListOffsetsPartition(step.partition.name.partition, step.leader_epoch, timestamp)
            request = ListOffsetsRequest(
                replica_id=self._node.node_id, topics=[ListOffsetsTopic(step.partition.name.topic, [asked])]
            )
            connection.submit(request, ListOffsetsResponse, answered, timeout_s=self._node.request_timeout_ms() / 1000)

    def _offsets_found(self, step: FindOffsets, start_offset: int, end_offset: int) -> None:
        following = self.fetcher.offsets_found(step, start_offset, end_offset)
        if following is None:
            self._ask()
        else:
            self._perform(following)


def _slot_of(partition: Partition) -> int:
    """Spreads partitions over fetchers, the same way in every process."""
    return int.from_bytes(partition.topic_id[:4], "big") + partition.name.partition
