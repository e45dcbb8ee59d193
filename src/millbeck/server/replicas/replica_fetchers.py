"""The replica fetchers of this node: ``num.replica.fetchers`` connections to each leader it follows.

`replication.fetcher` decides what to fetch and how to handle a response; this module gives it a connection. A response
is handled inside the connection's callback, which also sends the next request: no task and no queue between two
fetches. Slow work (truncating a log, a flush, listing the leader's offsets) runs in tasks of its own.

After any error of a connection, its partitions back off for ``replica.fetch.backoff.ms``. Then a new connection is
opened, to the leader's address in the metadata at that time.
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
from millbeck.kernel.errors import ApiError, KafkaStorageError, from_code
from millbeck.kernel.timer_wheel import Timer
from millbeck.replication.fetcher import FetchEffect, Fetcher, FetchLimits, FetchOffsets, TruncateLog, WaitForFlush
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.server.context import NodeContext
from millbeck.server.network.peer_security import LoginRefused, connect_to_peer
from millbeck.wire.messages.fetch import FetchResponse
from millbeck.wire.messages.log_offsets import (
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


class ReplicaLogOperations(Protocol):
    """The log operations that fetchers need; both return once the change is durable."""

    def truncate(
        self, partition: Partition, offset: int, *, starts_over: bool, is_wanted: Callable[[], bool]
    ) -> Awaitable[None]: ...

    def flush(self, partition: Partition) -> Awaitable[None]: ...


class BrokerEndpoints(Protocol):
    """The addresses of other brokers from the metadata, this broker's epoch, and the replication throttle."""

    def address_of(self, broker_id: int) -> Address | None:
        """The broker's address on the inter-broker listener; None when it is not registered or has no such listener."""

    def connection_settings(self) -> ConnectionSettings: ...

    def broker_epoch(self) -> int: ...

    def is_throttled(self, partition: Partition) -> bool:
        """Whether replicating this partition is throttled at the moment."""

    def copied(self, partition: Partition, size_bytes: int) -> None: ...


class ReplicaFetchers:
    """The partitions that this node follows, each assigned to a fetcher."""

    def __init__(
        self,
        context: NodeContext,
        logs: ReplicaLogOperations,
        endpoints: BrokerEndpoints,
        *,
        limits: Callable[[], FetchLimits],
        fetcher_count: Callable[[], int],
        request_timeout_ms: Callable[[], int],
    ) -> None:
        self.environment = context.environment
        self.deadlines = context.deadlines
        self.logs = logs
        self.endpoints = endpoints
        self.node_id = context.node_id
        self.limits = limits
        self.request_timeout_ms = request_timeout_ms
        self.spawn = context.spawn
        self.report: Callable[[Exception], None] = context.report
        self._fetcher_count = fetcher_count
        self.is_started = False
        self._is_closed = False
        self._connections: dict[tuple[int, int], FetcherConnection] = {}
        self._bytes_in_before = 0
        """The bytes received by connections that are closed."""
        self._connection_of: dict[Partition, FetcherConnection] = {}

    def start(self) -> None:
        """Start fetching; called once this broker is registered.

        Earlier fetches would carry no broker epoch, and a leader checks the epoch of a follower before it adds it to
        the ISR.
        """
        self.is_started = True
        for line in self._connections.values():
            line.begin()

    def follow(self, partition: Partition) -> None:
        """Start fetching from the partition's leader; a no-op when it has none, the local log is offline, or the node
        shuts down.

        A fetch for an offline log would report an end offset of records that can no longer be read. Metadata still
        arrives while a node shuts down, and its logs may be closed already.
        """
        self.stop(partition)
        if self._is_closed or partition.leader_id == NO_LEADER or partition.is_leader or partition.log.is_offline:
            return
        key = (partition.leader_id, _slot_of(partition) % self._fetcher_count())
        line = self._connections.get(key)
        if line is None:
            line = self._connections[key] = FetcherConnection(self, partition.leader_id)
        self._connection_of[partition] = line
        line.add(partition)

    def stop(self, partition: Partition) -> None:
        """Stop fetching a partition: it leads now, is gone, or will follow another leader."""
        line = self._connection_of.pop(partition, None)
        if line is not None:
            line.remove(partition)

    def close_idle(self) -> None:
        """Close connections without partitions; called after each metadata image."""
        for key, line in list(self._connections.items()):
            if not len(line.fetcher):
                del self._connections[key]
                self._bytes_in_before += line.fetcher.bytes_in
                line.close()

    def close(self) -> None:
        """Stop fetching for good."""
        self._is_closed = True
        self._connection_of.clear()
        lines, self._connections = list(self._connections.values()), {}
        for line in lines:
            self._bytes_in_before += line.fetcher.bytes_in
            line.close()

    @property
    def followed(self) -> list[Partition]:
        return list(self._connection_of)

    @property
    def lines(self) -> Mapping[tuple[int, int], FetcherConnection]:
        """The connections by leader id and fetcher index."""
        return self._connections

    @property
    def bytes_in(self) -> int:
        """The bytes fetched since the node started; a counter."""
        return self._bytes_in_before + sum(line.fetcher.bytes_in for line in self._connections.values())


class FetcherConnection:
    """A fetcher with its connection: connecting, fetching, backing off, or idle."""

    __slots__ = ("_connection", "_is_asking", "_is_closed", "_is_connecting", "_node", "_timer", "fetcher", "requests")

    def __init__(self, node: ReplicaFetchers, leader_id: int) -> None:
        self._node = node
        self._connection: Connection | None = None
        self._is_connecting = False
        self._is_asking = False
        self._is_closed = False
        self._timer: Timer | None = None
        self.requests = 0
        """The number of requests sent."""
        self.fetcher = Fetcher(
            leader_id,
            node.node_id,
            limits=node.limits(),
            now_ms=node.deadlines.now_ms,
            wall_ms=node.environment.clock.wall_ms,
            broker_epoch=node.endpoints.broker_epoch,
            is_throttled=node.endpoints.is_throttled,
            copied=node.endpoints.copied,
        )

    def add(self, partition: Partition) -> None:
        step = self.fetcher.add(partition)
        if step is not None:
            self._run_effect(step)
        self._schedule(0)

    def remove(self, partition: Partition) -> None:
        self.fetcher.remove(partition)

    def begin(self) -> None:
        self._schedule(0)

    @property
    def is_stuck(self) -> bool:
        """Whether there are partitions to fetch but no request, connect or timer is pending; True would be a bug."""
        is_moving = self._is_asking or self._is_connecting or self._timer is not None
        return self._node.is_started and not self._is_closed and not is_moving and self.fetcher.has_fetchable_partitions

    def close(self) -> None:
        self._is_closed = True
        self._cancel_timer()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Sending fetches.

    def _schedule(self, delay_ms: int) -> None:
        """Schedule the next fetch after a delay, unless one is already scheduled or in progress."""
        if self._timer is None and not self._is_asking and not self._is_connecting and not self._is_closed:
            self._timer = self._node.deadlines.after(delay_ms, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._send_fetch()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send_fetch(self) -> None:
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
                self._schedule(max(0, due_ms - self._node.deadlines.now_ms()))
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
            self._run_effect(step)
        self._send_fetch()

    async def _connect(self) -> None:
        leader_id = self.fetcher.leader_id
        try:
            address = self._node.endpoints.address_of(leader_id)
            if address is None:
                raise ConnectFailed(f"broker {leader_id} is not registered or has no inter-broker listener")
            connection = await connect_to_peer(
                self._node.environment.network, address, self._node.endpoints.connection_settings()
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
        self._send_fetch()

    def _lost(self, error: ApiError) -> None:
        """Drop the connection after an error, and reconnect after the fetch backoff."""
        self._is_asking = False
        self.fetcher.failed()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._is_closed:
            return
        level = logging.WARNING if isinstance(error, LoginRefused) else logging.INFO
        log.log(level, "fetching from broker %s: %s", self.fetcher.leader_id, error)
        self._cancel_timer()
        self._schedule(self._node.limits().backoff_ms)

    # Effects.

    def _run_effect(self, step: FetchEffect) -> None:
        if isinstance(step, FetchOffsets):
            self._find_offsets(step)
        elif isinstance(step, TruncateLog):
            self._node.spawn(self._run(step, self._truncate(step)))
        elif isinstance(step, WaitForFlush):
            self._node.spawn(self._run(step, self._flush(step)))

    async def _run(self, step: FetchEffect, work: Coroutine[Any, Any, None]) -> None:
        failure: ApiError | None = None
        try:
            await work
        except ApiError as error:
            failure = error
        except OSError as error:
            failure = KafkaStorageError(f"{step.partition.name}: {error}")
        self._done(step, failure)

    def _done(self, step: FetchEffect, error: ApiError | None = None) -> None:
        if step.partition.log.is_offline:
            self.fetcher.remove(step.partition)
        else:
            self.fetcher.resume(step, error)
        self._send_fetch()

    async def _truncate(self, step: TruncateLog) -> None:
        partition = step.partition
        log.info("truncating %s to offset %s, where it diverges from its leader", partition.name, step.offset)
        await self._node.logs.truncate(
            partition, step.offset, starts_over=step.starts_over, is_wanted=lambda: step.is_wanted
        )

    async def _flush(self, step: WaitForFlush) -> None:
        """Flush until everything is durable: a flush may already be running, and more may be written after it began."""
        partition, log_ = step.partition, step.partition.log
        while step.is_wanted and not log_.is_offline and log_.flushed_offset < log_.end_offset:
            ended = asyncio.Event()
            partition.on_flushed = ended.set
            await self._node.logs.flush(partition)
            if log_.flushed_offset < log_.end_offset:
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH_LOOK_SECONDS):
                        await ended.wait()

    def _find_offsets(self, step: FetchOffsets) -> None:
        """Request the start and end offset of the leader's log with two pipelined ListOffsets requests."""
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

    def _offsets_found(self, step: FetchOffsets, start_offset: int, end_offset: int) -> None:
        following = self.fetcher.on_offsets(step, start_offset, end_offset)
        if following is None:
            self._send_fetch()
        else:
            self._run_effect(following)


def _slot_of(partition: Partition) -> int:
    """A number that spreads partitions over the fetchers, the same in every process."""
    return int.from_bytes(partition.topic_id[:4], "big") + partition.name.partition
