"""Reads the schema registry's topic from its leader, from the first record on, and then follows it.

Committed records only, in the order of the log, as registries read it. When the topic was deleted, created again or cut
short, everything is read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.client.consumer.fetched import CompletedFetch
from millbeck.kernel.errors import (
    ApiError,
    LeaderNotAvailable,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownServerError,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.schemas.registered import RegisteredSchemas
from millbeck.wire.messages.fetch import FetchedPartition, FetchPartition, FetchRequest, FetchResponse, FetchTopic
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from millbeck.metadata.image import TopicImage
    from millbeck.server.context import NodeContext
    from millbeck.server.network.broker_connections import BrokerConnections

FETCH_PURPOSE: Final = "schemas"
END_PURPOSE: Final = "schemas-end"
"""Another connection: the first one waits for new records."""
READ_COMMITTED: Final = 1
A_CONSUMER: Final = -1
LATEST: Final = -1
FETCH_WAIT_SECONDS: Final = 5.0
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
ANSWER_SECONDS_MAX: Final = 5.0
CATCH_UP_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 0.5

log = logging.getLogger(__name__)


class SchemasReader:
    def __init__(
        self, node: NodeContext, peers: Callable[[], BrokerConnections], topic: str, on_change: Callable[[], None]
    ) -> None:
        """``on_change`` is called when what a topic accepts may have changed."""
        self.schemas = RegisteredSchemas()
        self._node = node
        self._peers = peers
        self._topic = topic
        self._on_change = on_change
        self._topic_id: Uuid = ZERO_UUID
        self._position = 0
        self._moved = asyncio.Event()
        """Set, and replaced, whenever the position moves."""
        self._asking = asyncio.Lock()
        self._end = 0
        self._end_asked_s = -1.0
        """When the end was asked for that is known."""
        self._complaint = ""
        self._is_stopped = False

    def stop(self) -> None:
        """End `run` after its current request."""
        self._is_stopped = True

    async def run(self) -> None:
        """Follow the topic until stopped or cancelled."""
        while not self._is_stopped:
            try:
                await self._read_on()
                self._complaint = ""
            except ApiError as error:
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    log.warning("%s cannot be read, so new schemas are not accepted: %s", self._topic, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def catch_up(self) -> None:
        """Wait until everything that is committed now has been read. Raises `ApiError`, which a producer retries, if
        that takes too long."""
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                end = await self._committed_end()
                while self._position < end:
                    await self._moved.wait()
        except (ApiError, TimeoutError) as error:
            reason = f": {error}" if str(error) else ""
            raise RequestTimedOut(f"{self._topic}, which has the accepted schemas, could not be read{reason}") from None

    # reading

    def _image(self) -> TopicImage | None:
        """The topic in the metadata; a new one is read from its beginning."""
        topic = self._node.image.topics.named(self._topic)
        if topic is not None and topic.topic_id != self._topic_id:
            self._topic_id = topic.topic_id
            self._start_over(0)
        return topic

    def _start_over(self, offset: int) -> None:
        self.schemas = RegisteredSchemas()
        self._move(offset)

    def _move(self, offset: int) -> None:
        self._position = offset
        self._moved.set()
        self._moved = asyncio.Event()

    async def _read_on(self) -> None:
        topic = self._image()
        if topic is None:
            await asyncio.sleep(RETRY_SECONDS)
            return
        found = await self._fetched(topic)
        self._image()
        if self._topic_id != topic.topic_id:
            return
        if found.error_code == OffsetOutOfRange.code:
            log.warning("%s is read again from offset %d", self._topic, found.log_start_offset)
            self._start_over(max(0, found.log_start_offset))
            return
        if found.error_code:
            raise from_code(found.error_code)
        if found.records:
            await self._replay(found)

    async def _fetched(self, topic: TopicImage) -> FetchedPartition:
        partition = FetchPartition(0, fetch_offset=self._position, partition_max_bytes=FETCH_BYTES_MAX)
        request = FetchRequest(
            replica_id=A_CONSUMER,
            max_wait_ms=int(FETCH_WAIT_SECONDS * 1000),
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic.name, topic.topic_id, [partition])],
        )
        answer = await self._peers().request(
            _leader(topic),
            FETCH_PURPOSE,
            request,
            FetchResponse,
            timeout_s=FETCH_WAIT_SECONDS + ANSWER_SECONDS_MAX,
        )
        if answer.error_code:
            raise from_code(answer.error_code)
        for each in answer.responses:
            for found in each.partitions:
                return found
        raise UnknownServerError(f"the leader did not answer for {topic.name}")

    async def _replay(self, found: FetchedPartition) -> None:
        assert found.records is not None
        aborted = [(each.first_offset, each.producer_id) for each in found.aborted_transactions or ()]
        fetch = CompletedFetch(bytes(found.records), self._position, aborted=aborted)
        turns = TimeSlices(self._node.environment.clock)
        is_change = False
        while (records := fetch.read()) is not None:
            for record in records:
                is_change = self.schemas.replay(record.key, record.value) or is_change
                await turns.yield_to_loop()
        if is_change:
            self._on_change()
        self._move(fetch.next_offset)

    # the end

    async def _committed_end(self) -> int:
        """The end of the committed records, as of now or later; 0 without the topic."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        async with self._asking:
            if self._end_asked_s < now_s:
                asked_s = loop.time()
                topic = self._image()
                self._end = 0 if topic is None else await self._asked_end(topic)
                self._end_asked_s = asked_s
            return self._end

    async def _asked_end(self, topic: TopicImage) -> int:
        partition = ListOffsetsPartition(0, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=A_CONSUMER,
            isolation_level=READ_COMMITTED,
            topics=[ListOffsetsTopic(topic.name, [partition])],
        )
        answer = await self._peers().request(
            _leader(topic), END_PURPOSE, request, ListOffsetsResponse, timeout_s=ANSWER_SECONDS_MAX
        )
        for each in answer.topics:
            for found in each.partitions:
                if found.error_code:
                    raise from_code(found.error_code)
                return found.offset
        raise UnknownServerError(f"the leader did not answer for {topic.name}")


def _leader(topic: TopicImage) -> int:
    partition = topic.partitions.get(0)
    if partition is None or partition.leader < 0:
        raise LeaderNotAvailable(f"{topic.name}-0 has no leader")
    return partition.leader
