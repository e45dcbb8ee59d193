"""Send transaction markers to the leaders of the transaction's partitions, and retry until each has its marker.

Theory of operation. Each ending transaction is a `_Run`; its missing markers wait in one queue for all transactions.
The queue is distributed by leader, a limited number of markers per event loop iteration. Markers for partitions that
this node leads are written directly. Each other broker has one request in flight, and the next request carries all
markers that have accumulated. A marker that failed with a retriable error is queued again after a backoff. A deleted
topic needs no marker. Nothing here is durable: when this node loses the coordinator's partition, its runs are dropped,
and the next leader starts them again from the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import TransactionEnd
from millbeck.coordinator.transaction.markers import Markers
from millbeck.kernel.errors import (
    NONE,
    ApiError,
    InvalidProducerEpoch,
    TransactionCoordinatorFenced,
    UnsupportedForMessageFormat,
    from_code,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.replication.partition import Partition
from millbeck.server.transactions.marker_writer import write_marker
from millbeck.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from millbeck.server.transactions.context import TransactionContext

RETRY_BACKOFF_MS: Final = 50
REQUEST_MARKERS_MAX: Final = 1000
ITERATION_MARKERS_MAX: Final = 200
"""The maximum number of markers written or routed to another broker per event loop iteration."""
PURPOSE: Final = "txn-markers"

logger = logging.getLogger(__name__)


class _Run:
    """The markers of one transaction; ``left`` holds the partitions whose marker is not confirmed yet."""

    __slots__ = ("is_dropped", "left", "markers", "partition")

    def __init__(self, partition: Partition, markers: Markers) -> None:
        self.partition = partition
        self.markers = markers
        self.left = dict.fromkeys(markers.partitions)
        self.is_dropped = False

    @property
    def end(self) -> TransactionEnd:
        markers = self.markers
        return TransactionEnd(
            markers.producer_id,
            markers.producer_epoch,
            self.partition.leader_epoch,
            markers.is_committed,
            markers.transaction_version,
        )


_Waiting = tuple[_Run, TopicPartition]


class MarkerSender:
    def __init__(self, broker: TransactionContext, complete: Callable[[Markers, ResponseCallback[bool]], None]) -> None:
        """``complete`` is called when all partitions of a transaction have their marker."""
        self._broker = broker
        self._complete = complete
        self._runs: dict[str, _Run] = {}
        self._queue: deque[_Waiting] = deque()
        self._is_scheduled = False
        self._outgoing: dict[int, list[_Waiting]] = {}
        self._sending: set[int] = set()
        self.unknown_destination_count = 0
        self.retry_count = 0

    def send(self, partition: Partition, markers: Markers) -> None:
        """Send the markers of a transaction.

        ``partition`` is the coordinator's partition of ``__transaction_state``; its leader epoch is the coordinator
        epoch.
        """
        known = self._runs.get(markers.transactional_id)
        if known is not None:
            known.is_dropped = True
        run = self._runs[markers.transactional_id] = _Run(partition, markers)
        self._enqueue((run, name) for name in markers.partitions)
        if not run.left:
            asyncio.get_running_loop().call_soon(self._finish, run)

    def drop(self, partition_index: int) -> None:
        """Drop the runs of a coordinator partition that this node no longer leads."""
        for transactional_id, run in list(self._runs.items()):
            if run.partition.name.partition == partition_index:
                run.is_dropped = True
                del self._runs[transactional_id]

    @property
    def waiting_count(self) -> int:
        return len(self._queue) + sum(len(each) for each in self._outgoing.values())

    @property
    def run_count(self) -> int:
        return len(self._runs)

    @property
    def leaderless_count(self) -> int:
        """The number of markers whose partition has no leader."""
        topics = self._broker.image.topics
        return sum(
            1
            for run in self._runs.values()
            for name in run.left
            if (found := topics.partition(*name)) is None or found.leader < 0
        )

    # By leader

    def _enqueue(self, waiting: Iterable[_Waiting]) -> None:
        self._queue += waiting
        if self._queue and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._sort)

    def _sort(self) -> None:
        self._is_scheduled = False
        for _ in range(min(ITERATION_MARKERS_MAX, len(self._queue))):
            run, name = self._queue.popleft()
            if run.is_dropped:
                continue
            try:
                self._route(run, name)
            except Exception as error:
                self._unexpected(run, [name], error)
        self._enqueue(())

    def _unexpected(self, run: _Run, names: Iterable[TopicPartition], error: Exception) -> None:
        """Retry after an unexpected exception, without holding up the markers of other transactions."""
        self._broker.isolation.failed(("send markers", run.markers.transactional_id), error)
        for name in names:
            self._retry(run, name)

    def _route(self, run: _Run, name: TopicPartition) -> None:
        broker = self._broker
        if broker.image.topics.named(name.topic) is None:
            self._done(run, name)
            return
        registration = broker.image.topics.partition(*name)
        if registration is None or registration.leader < 0:
            self.unknown_destination_count += 1
            self._retry(run, name)
        elif registration.leader == broker.node_id:
            write_marker(
                broker,
                name,
                run.end,
                ResponseCallback(lambda _: self._done(run, name), lambda error: self._failed(run, name, error)),
            )
        else:
            self._outgoing.setdefault(registration.leader, []).append((run, name))
            if registration.leader not in self._sending:
                self._sending.add(registration.leader)
                broker.spawn(self._send_to(registration.leader))

    async def _send_to(self, leader: int) -> None:
        try:
            while waiting := self._outgoing.pop(leader, []):
                batch, rest = waiting[:REQUEST_MARKERS_MAX], waiting[REQUEST_MARKERS_MAX:]
                if rest:
                    self._outgoing[leader] = rest
                await self._send_batch(leader, [each for each in batch if not each[0].is_dropped])
        finally:
            self._sending.discard(leader)

    async def _send_batch(self, leader: int, batch: list[_Waiting]) -> None:
        by_run: dict[str, tuple[_Run, list[TopicPartition]]] = {}
        for run, name in batch:
            by_run.setdefault(run.markers.transactional_id, (run, []))[1].append(name)
        if not by_run:
            return
        request = WriteTxnMarkersRequest(markers=[_marker(run, names) for run, names in by_run.values()])
        try:
            answer = await self._broker.peers.request(
                leader,
                PURPOSE,
                request,
                WriteTxnMarkersResponse,
                timeout_s=self._broker.config.replication.request_timeout_ms / 1000,
            )
        except ApiError as error:
            for run, name in batch:
                self._failed(run, name, error)
            return
        except Exception as error:
            if len(by_run) == 1:
                self._unexpected(*next(iter(by_run.values())), error)
                return
            # One transaction's markers break the request: send each transaction's markers separately.
            for run, names in by_run.values():
                await self._send_batch(leader, [(run, name) for name in names])
            return
        codes = {
            (marker.producer_id, topic.name, each.partition_index): each.error_code
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        for run, name in batch:
            code = codes.get((run.markers.producer_id, *name))
            if code == NONE:
                self._done(run, name)
            else:
                self._failed(
                    run, name, ApiError("the response has no result for it") if code is None else from_code(code)
                )

    # Outcomes

    def _failed(self, run: _Run, name: TopicPartition, error: ApiError) -> None:
        if isinstance(error, UnsupportedForMessageFormat):
            self._done(run, name)
        elif isinstance(error, (TransactionCoordinatorFenced, InvalidProducerEpoch)):
            logger.warning("gave up sending the transaction markers of %s: %s", run.markers.transactional_id, error)
            run.is_dropped = True
        else:
            self.retry_count += 1
            self._retry(run, name)

    def _retry(self, run: _Run, name: TopicPartition) -> None:
        if not run.is_dropped:
            self._broker.deadlines.after(RETRY_BACKOFF_MS, lambda: self._enqueue([(run, name)]))

    def _done(self, run: _Run, name: TopicPartition) -> None:
        run.left.pop(name, None)
        if not run.left:
            self._finish(run)

    def _finish(self, run: _Run) -> None:
        if run.is_dropped or self._runs.get(run.markers.transactional_id) is not run:
            return

        def completed(_: bool) -> None:
            if self._runs.get(run.markers.transactional_id) is run:
                del self._runs[run.markers.transactional_id]

        def failed(error: ApiError) -> None:
            logger.info(
                "could not write the completion of the transaction of %s: %s", run.markers.transactional_id, error
            )
            self._broker.deadlines.after(RETRY_BACKOFF_MS, lambda: self._finish(run))

        self._complete(run.markers, ResponseCallback(completed, failed))


def _marker(run: _Run, names: list[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, partition in names:
        topics.setdefault(topic, []).append(partition)
    end = run.end
    return WritableTxnMarker(
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        transaction_result=end.is_committed,
        topics=[WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
        coordinator_epoch=end.coordinator_epoch,
        transaction_version=end.transaction_version,
    )
