"""Sending the markers of decided transactions to the leaders of their partitions, until each has its own.

Theory of operation. A transaction is one `_Run`; what is left of it waits in one queue for all transactions. Once per
turn of the loop the queue is sorted by leader: what this node leads is written here and now, and for each other broker
one request at a time is under way, with everything that has gathered meanwhile. What fails for a reason that passes is
queued again after a rest. A topic that was deleted needs no marker. Nothing here is durable: when the coordinator's
partition is lost, its runs are dropped, and whoever leads it next begins anew from the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from millbeck.coordinator.runtime.host import TransactionEnd
from millbeck.coordinator.runtime.result import Reply
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
from millbeck.server.marker_writing import write_marker
from millbeck.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

REST_MS: Final = 50
REQUEST_MARKERS_MAX: Final = 1000
PURPOSE: Final = "txn-markers"

logger = logging.getLogger(__name__)


class _Run:
    """One transaction's markers; ``left`` are the partitions that are not known to have theirs."""

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
    def __init__(self, broker: Broker, complete: Callable[[Markers, Reply[bool]], None]) -> None:
        """``complete`` is called when every partition of a transaction has its marker."""
        self._broker = broker
        self._complete = complete
        self._runs: dict[str, _Run] = {}
        self._queue: list[_Waiting] = []
        self._is_scheduled = False
        self._outgoing: dict[int, list[_Waiting]] = {}
        self._sending: set[int] = set()
        self.unknown_destination_count = 0
        self.retry_count = 0

    def send(self, partition: Partition, markers: Markers) -> None:
        """``partition`` is the one that keeps the transaction; its epoch is the coordinator's."""
        known = self._runs.get(markers.transactional_id)
        if known is not None:
            known.is_dropped = True
        run = self._runs[markers.transactional_id] = _Run(partition, markers)
        self._enqueue((run, name) for name in markers.partitions)
        if not run.left:
            asyncio.get_running_loop().call_soon(self._finish, run)

    def drop(self, partition_index: int) -> None:
        """The coordinator's partition is led elsewhere."""
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
        """Markers that wait for their partition to have a leader."""
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
        queue, self._queue = self._queue, []
        for run, name in queue:
            if not run.is_dropped:
                self._route(run, name)

    def _route(self, run: _Run, name: TopicPartition) -> None:
        broker = self._broker
        if broker.image.topics.named(name.topic) is None:
            self._done(run, name)
            return
        registration = broker.image.topics.partition(*name)
        if registration is None or registration.leader < 0:
            self.unknown_destination_count += 1
            self._again(run, name)
        elif registration.leader == broker.node_id:
            write_marker(
                broker,
                name,
                run.end,
                Reply(lambda _: self._done(run, name), lambda error: self._failed(run, name, error)),
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
                self._failed(run, name, ApiError("no answer for it") if code is None else from_code(code))

    # Outcomes

    def _failed(self, run: _Run, name: TopicPartition, error: ApiError) -> None:
        if isinstance(error, UnsupportedForMessageFormat):
            self._done(run, name)
        elif isinstance(error, (TransactionCoordinatorFenced, InvalidProducerEpoch)):
            logger.warning("the markers of %s are given up: %s", run.markers.transactional_id, error)
            run.is_dropped = True
        else:
            self.retry_count += 1
            self._again(run, name)

    def _again(self, run: _Run, name: TopicPartition) -> None:
        if not run.is_dropped:
            self._broker.deadlines.after(REST_MS, lambda: self._enqueue([(run, name)]))

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
            logger.info("the end of the transaction of %s is not written: %s", run.markers.transactional_id, error)
            self._broker.deadlines.after(REST_MS, lambda: self._finish(run))

        self._complete(run.markers, Reply(completed, failed))


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
