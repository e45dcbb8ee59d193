"""Client of the share coordinators: read and write the persisted state of share partitions.

Used by partition leaders and group coordinators. The key determines the coordinator's broker. On this broker the shard
is called directly. Requests to another broker are batched: one request per operation and group is in flight, and the
next one carries what has accumulated. Retriable errors (the coordinator is loading, moved or does not respond) are
retried with backoff, on the coordinator's current broker, until `SECONDS_MAX` have passed: clients wait for the result,
and there may be no coordinator for as long as no controller can be elected. All operations are idempotent, so retries
are safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millbeck.coordinator.partitioner import partition_for
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey, StateWrite
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
    UnknownServerError,
    by_code,
)
from millbeck.kernel.names import SHARE_GROUP_STATE_TOPIC
from millbeck.server.coordinators.share_coordinator import key_text
from millbeck.server.share import persister_requests
from millbeck.server.share.persister_requests import PersistedState, PersisterOperation, PersisterRequest

if TYPE_CHECKING:
    from millbeck.server.share.context import ShareContext

PURPOSE: Final = "share-state"
BACKOFF_MS_FIRST: Final = 20
BACKOFF_MS_MAX: Final = 1000
SECONDS_MAX: Final = 10.0
"""The time after which an operation is not retried any more; the last attempt may take as long again."""

_RETRIABLE: Final = (
    NotCoordinator,
    CoordinatorNotAvailable,
    CoordinatorLoadInProgress,
    NetworkException,
    RequestTimedOut,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
)


class Persister:
    def __init__(self, broker: ShareContext) -> None:
        self._broker = broker
        self._queues: dict[tuple[int, int, str], list[PersisterRequest]] = {}
        """Queued requests by broker, index of the operation in `_KINDS`, and group."""
        self._busy: dict[tuple[int, int, str], None] = {}
        self._is_closed = False

    # Operations

    def read(self, key: ShareKey, leader_epoch: int, reply: ResponseCallback[PersistedState]) -> None:
        self._run(PersisterRequest(persister_requests.READ, key, leader_epoch, reply))

    def write(self, key: ShareKey, written: StateWrite, reply: ResponseCallback[bool]) -> None:
        self._run(PersisterRequest(persister_requests.WRITE, key, written, reply))

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, reply: ResponseCallback[bool]) -> None:
        self._run(PersisterRequest(persister_requests.INITIALIZE, key, (state_epoch, start_offset), reply))

    def delete(self, key: ShareKey, reply: ResponseCallback[bool]) -> None:
        self._run(PersisterRequest(persister_requests.DELETE, key, None, reply))

    def summary(self, key: ShareKey, reply: ResponseCallback[PersistedState]) -> None:
        self._run(PersisterRequest(persister_requests.SUMMARY, key, None, reply))

    def close(self) -> None:
        """Stop retrying."""
        self._is_closed = True

    # Finding the coordinator

    def _run(self, request: PersisterRequest) -> None:
        broker = self._broker
        if request.deadline_ms is None:
            request.deadline_ms = broker.deadlines.now_ms() + int(SECONDS_MAX * 1000)
        topic = broker.image.topics.named(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            broker.auto_creation.request([SHARE_GROUP_STATE_TOPIC])
            self._retry(request, CoordinatorNotAvailable())
            return
        registration = topic.partitions.get(partition_for(key_text(request.key), len(topic.partitions)))
        leader = -1 if registration is None else registration.leader
        if leader == broker.node_id:
            reply: ResponseCallback[Any] = ResponseCallback(
                request.reply.reply, lambda error: self._failed(request, error)
            )
            request.kind.run_here(broker.share_state, request, reply, broker.now_ms())
        elif leader < 0:
            self._retry(request, CoordinatorNotAvailable())
        else:
            place = (leader, _KINDS.index(request.kind), request.key.group_id)
            self._queues.setdefault(place, []).append(request)
            if place not in self._busy:
                self._busy[place] = None
                broker.spawn(self._send_all(place))

    # Another broker

    async def _send_all(self, place: tuple[int, int, str]) -> None:
        try:
            while found := self._queues.pop(place, None):
                await self._send(place, found)
        finally:
            del self._busy[place]

    async def _send(self, place: tuple[int, int, str], found: list[PersisterRequest]) -> None:
        node_id, kind_index, group_id = place
        kind = _KINDS[kind_index]
        # Operations that waited for the previous request may have exceeded their deadline by now.
        for late in [each for each in found if self._is_late(each)]:
            found.remove(late)
            late.reply.fail(CoordinatorNotAvailable(f"broker {node_id} does not answer"))
        if not found:
            return
        # Two operations on one share partition need two requests.
        first, rest = _distinct(found)
        if rest:
            self._queues[place] = rest + self._queues.get(place, [])
        try:
            response = await self._broker.peers.request(
                node_id, PURPOSE, kind.request(group_id, first), kind.response, timeout_s=SECONDS_MAX
            )
        except ApiError as error:
            for request in first:
                self._failed(request, error)
            return
        results = {
            (topic.topic_id, result.partition): result for topic in response.results for result in topic.partitions
        }
        for request in first:
            result = results.get((request.key.topic_id, request.key.partition))
            if result is None:
                self._failed(request, UnknownServerError("the share coordinator's response lacks a partition"))
            elif result.error_code:
                error_class = by_code.get(result.error_code, UnknownServerError)
                self._failed(request, error_class(result.error_message or ""))
            else:
                request.reply.reply(kind.value(result))

    # Retrying

    def _failed(self, request: PersisterRequest, error: ApiError) -> None:
        if isinstance(error, _RETRIABLE):
            self._retry(request, error)
        else:
            request.reply.fail(error)

    def _retry(self, request: PersisterRequest, error: ApiError) -> None:
        request.tries += 1
        if self._is_late(request) or self._is_closed:
            request.reply.fail(error)
            return
        pause_ms = min(BACKOFF_MS_FIRST << min(request.tries - 1, 10), BACKOFF_MS_MAX)
        self._broker.deadlines.after(pause_ms, lambda: self._run(request))

    def _is_late(self, request: PersisterRequest) -> bool:
        return request.deadline_ms is not None and self._broker.deadlines.now_ms() >= request.deadline_ms


_KINDS: Final[tuple[PersisterOperation, ...]] = (
    persister_requests.READ,
    persister_requests.WRITE,
    persister_requests.INITIALIZE,
    persister_requests.DELETE,
    persister_requests.SUMMARY,
)


def _distinct(found: list[PersisterRequest]) -> tuple[list[PersisterRequest], list[PersisterRequest]]:
    """The first request for each share partition, and the remaining ones."""
    first: dict[ShareKey, PersisterRequest] = {}
    rest = []
    for request in found:
        if request.key in first:
            rest.append(request)
        else:
            first[request.key] = request
    return list(first.values()), rest
