"""Read a range of offsets of one partition in large chunks.

    reader = RangeReader(cluster, config, TopicPartition("orders", 0), start, end)
    while (chunk := await reader.next_chunk()) is not None:
        for columns in chunk.columns(): ...

It uses no fetch session, no group and keeps no position: chunks are requested one by one, and the next one is requested
while the caller works on the current one. If the leader names a preferred read replica (``client.rack``), that is used;
if it fails or lags behind, the leader is used again. Offsets may be missing anywhere (compaction, transaction markers):
the range ends when its end is reached or passed, or when no record is left before it.

Chunks grow from 1 MiB to ``chunk_bytes_max`` and shrink towards the end of the range, so that a short range does not
fetch records beyond it.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from millbeck.client.cluster import FETCH, Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.fetched_columns import CompletedColumnFetch
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    InconsistentTopicId,
    OffsetOutOfRange,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.wire.messages.fetch import FetchedPartition, FetchPartition, FetchRequest, FetchResponse, FetchTopic

CHUNK_BYTES_FIRST: Final = 1024 * 1024
CHUNK_BYTES_MAX: Final = 2 * 1024 * 1024
"""The maximum size of joined chunks. They still fit in the processor's caches; 8 MiB was a tenth slower overall."""
_CHUNK_BYTES_MIN: Final = 64 * 1024
_TOPIC_ID_FROM: Final = 13
_RESPONSE_MARGIN_S: Final = 1.0
_NO_REPLICA: Final = -1


class TopicRecreated(UnknownTopicId):
    """The topic was deleted and created again with another id."""

    retriable = False


class RangeUnreadable(OffsetOutOfRange):
    """Part of the range does not exist: deleted by retention, or lost because the log was truncated."""

    def __init__(self, message: str, log_start_offset: int) -> None:
        super().__init__(message)
        self.log_start_offset = log_start_offset
        """The current log start offset; -1 if the start of the range was not deleted."""


class _Answer(NamedTuple):
    chunk: CompletedColumnFetch | None
    next_offset: int


class RangeReader:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        partition: TopicPartition,
        start_offset: int,
        end_offset: int,
        *,
        topic_id: Uuid = ZERO_UUID,
        with_headers: bool = False,
        chunk_bytes_max: int = CHUNK_BYTES_MAX,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._partition = partition
        self._topic_id = topic_id
        self._with_headers = with_headers
        self._end_offset = end_offset
        self._chunk_bytes_max = chunk_bytes_max
        self._chunk_bytes = min(CHUNK_BYTES_FIRST, chunk_bytes_max)
        self._replica = _NO_REPLICA
        self._ahead: asyncio.Task[_Answer] | None = None
        self.next_offset = start_offset
        """The start offset of the next chunk."""

    async def next_chunk(self) -> CompletedColumnFetch | None:
        """The next chunk; None at the end of the range. Raises `RangeUnreadable`, `TopicRecreated`, `ApiError`."""
        while self.next_offset < self._end_offset:
            task = self._ahead or self._ask()
            self._ahead = None
            answer = await task
            self.next_offset = answer.next_offset
            if answer.chunk is None:
                continue
            if self.next_offset < self._end_offset:
                self._ahead = self._ask()
                # Yield once, so that the request is sent before the caller continues.
                await asyncio.sleep(0)
            return answer.chunk
        return None

    def _ask(self) -> asyncio.Task[_Answer]:
        return self._cluster.spawn(self._fetch(self.next_offset))

    async def _fetch(self, offset: int) -> _Answer:
        self._cluster.add_topics([self._partition.topic])
        return await self._cluster.retrying(lambda deadline: self._attempt(offset, deadline))

    async def _attempt(self, offset: int, deadline: Deadline) -> _Answer:
        """Fetch until a chunk has arrived; raises a retriable error if it should be retried after a backoff."""
        while True:
            node_id = await self._node(deadline)
            try:
                found = await self._request(node_id, offset, deadline)
                if found.error_code:
                    raise self._error(found, offset)
            except ApiError:
                if self._replica != _NO_REPLICA:
                    # A follower may lag behind or be gone; only the leader's error counts.
                    self._replica = _NO_REPLICA
                    continue
                raise
            if found.preferred_read_replica >= 0 and found.preferred_read_replica in self._cluster.metadata.brokers:
                self._replica = found.preferred_read_replica
                continue
            if found.records:
                answer = self._answer(found, offset)
                if answer is not None:
                    return answer
            self._check_end(found, offset)
            if not found.records:
                return _Answer(None, self._end_offset)
            self._chunk_bytes = min(2 * self._chunk_bytes, self._chunk_bytes_max)

    async def _node(self, deadline: Deadline) -> int:
        """The node to fetch from: preferred replica or leader. Checks that the topic id is still the same."""
        metadata = self._cluster.metadata
        topic, partition = self._partition
        if topic not in metadata.topics or metadata.partition(topic, partition).leader_id not in metadata.brokers:
            await self._cluster.refresh(deadline)
        if self._topic_id not in (ZERO_UUID, metadata.topic_id(topic)):
            # The cached metadata may be older than the range.
            await self._cluster.refresh(deadline)
        known = metadata.topic_id(topic)
        if self._topic_id == ZERO_UUID:
            self._topic_id = known
        elif known not in (ZERO_UUID, self._topic_id):
            raise TopicRecreated(f"topic {topic} was deleted and created again: this is another topic of the same name")
        return self._replica if self._replica != _NO_REPLICA else metadata.leader(topic, partition).node_id

    async def _request(self, node_id: int, offset: int, deadline: Deadline) -> FetchedPartition:
        config = self._config
        topic, partition = self._partition
        connection = await self._cluster.connection(node_id, FETCH, deadline=deadline)
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(config.fetch_max_bytes, self._chunk_bytes),
            isolation_level=int(config.reads_committed),
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=self._topic_id,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            current_leader_epoch=self._cluster.metadata.partition(topic, partition).leader_epoch,
                            fetch_offset=offset,
                            partition_max_bytes=self._chunk_bytes,
                        )
                    ],
                )
            ],
            rack_id=config.client_rack if self._replica == _NO_REPLICA else "",
        )
        response = await connection.request(
            request,
            FetchResponse,
            timeout_s=(config.request_timeout_ms + config.fetch_max_wait_ms) / 1000 + _RESPONSE_MARGIN_S,
            version_max=None if self._topic_id != ZERO_UUID else _TOPIC_ID_FROM - 1,
        )
        if response.error_code:
            raise from_code(response.error_code)
        for endpoint in response.node_endpoints:
            self._cluster.metadata.learn_broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
        for answered in response.responses:
            for found in answered.partitions:
                if found.partition_index == partition:
                    return found
        raise UnknownServerError(f"the broker did not answer for {self._partition}")

    def _error(self, found: FetchedPartition, offset: int) -> ApiError:
        error = from_code(found.error_code)
        leader = found.current_leader
        if leader.leader_id >= 0:
            self._cluster.metadata.set_leader(*self._partition, leader.leader_id, leader.leader_epoch)
        if isinstance(error, OffsetOutOfRange) and self._replica == _NO_REPLICA:
            return RangeUnreadable(
                f"{self._partition} no longer has offset {offset}: it starts at {found.log_start_offset} now",
                found.log_start_offset,
            )
        if isinstance(error, UnknownTopicId | InconsistentTopicId | UnknownTopicOrPartition):
            # The metadata tells whether the topic was deleted or created again.
            self._cluster.metadata.forget_topics([self._partition.topic])
        return error

    def _answer(self, found: FetchedPartition, offset: int) -> _Answer | None:
        """The chunk; None if it does not contain one complete batch."""
        assert found.records is not None
        aborted = [(entry.first_offset, entry.producer_id) for entry in found.aborted_transactions or ()]
        chunk = CompletedColumnFetch(
            found.records,
            offset,
            self._end_offset,
            aborted=aborted if self._config.reads_committed else None,
            checks_crcs=self._config.check_crcs,
            limit_bytes=self._config.decompressed_max_bytes,
            with_headers=self._with_headers,
        )
        next_offset = chunk.skip_to_end()
        if next_offset <= offset:
            return None
        remaining = self._end_offset - next_offset
        wanted_bytes = len(found.records) * remaining // (next_offset - offset) * 5 // 4
        grown = min(2 * self._chunk_bytes, self._chunk_bytes_max)
        self._chunk_bytes = max(_CHUNK_BYTES_MIN, min(grown, wanted_bytes))
        return _Answer(chunk, next_offset)

    def _check_end(self, found: FetchedPartition, offset: int) -> None:
        """Check an empty response: fine if no record is left in the range, an error if the log ends earlier."""
        end = found.last_stable_offset if self._config.reads_committed else found.high_watermark
        if not found.records and end < self._end_offset:
            raise RangeUnreadable(
                f"{self._partition} ends at offset {end} now, before {self._end_offset}, which was there when the "
                f"range was planned (asked from {offset})",
                -1,
            )

    async def close(self) -> None:
        """Cancel the fetch in flight; the cluster stays open."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.wait({self._ahead})
            self._ahead = None
