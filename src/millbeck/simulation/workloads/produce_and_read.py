"""Idempotent producers and tailing readers that never give up.

Each producer writes to one partition with its own sequence numbers and a few batches in flight, and resends unanswered
batches in order on a new connection. Each reader follows one partition with long polls. Values are unique and name
their producer, so the checkers can tell a lost record from a repeated one.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, cast

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import CorruptMessage
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.histories.history import History, Send
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from millbeck.wire.messages.transactions import InitProducerIdRequest

TOPIC: Final = "history"
RETRY_SECONDS: Final = 0.05
REPLY_SECONDS: Final = 5.0
TOPIC_EXISTS: Final = 36
RETRIABLE: Final = frozenset({3, 5, 6, 7, 8, 9, 15, 19, 20, 41, 56, 74, 76, 78, 100})
"""Retriable errors: a replica lags, no longer leads or does not exist yet, or its disk is full."""
FETCH_BYTES: Final = 1_000_000

Trouble = (ConnectionError, OSError, TimeoutError, asyncio.TimeoutError)


class NodeAccess:
    """How to connect to the node, also after restarts."""

    def __init__(self, environment: Environment, host: str, port: int) -> None:
        self.environment = environment
        self.host = host
        self.port = port
        self.is_calm = False
        """Whether the faults are over, so that producers finish."""
        self.is_over = False
        """Whether everything is acknowledged, so that readers finish."""
        self.think_s = 0.2
        """The maximum length of a producer's pauses."""
        self.on_acknowledged: Callable[[int, int], None] = lambda partition, last_offset: None
        self.on_read: Callable[[int, int], None] = lambda partition, last_offset: None
        """Called when a client gets an acknowledgement or reads a record, with the partition and the last offset."""

    async def connect(self) -> WireClient:
        """Connect, retrying until it succeeds."""
        while True:
            try:
                _, client = await asyncio.wait_for(
                    self.environment.network.connect(WireClient, host=self.host, port=self.port), REPLY_SECONDS
                )
                return cast(WireClient, client)
            except Trouble:
                await asyncio.sleep(RETRY_SECONDS)

    async def connect_to(self, partition: int) -> WireClient:
        """Connect to the leader of the partition."""
        return await self.connect()

    async def create_topic(self, partition_count: int, options: dict[str, str], *, replication_factor: int = 1) -> None:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    TOPIC,
                    num_partitions=partition_count,
                    replication_factor=replication_factor,
                    configs=[CreatableTopicConfig(name, value) for name, value in options.items()],
                )
            ]
        )
        while True:
            client = await self.connect()
            try:
                (result,) = (await client.ask(request, 7, timeout_s=REPLY_SECONDS)).topics
                if result.error_code in (0, TOPIC_EXISTS):
                    return
            except Trouble:
                pass
            finally:
                client.close()
            await asyncio.sleep(RETRY_SECONDS)


class InFlight:
    """A batch that was not answered yet."""

    __slots__ = ("data", "sends")

    def __init__(self, data: bytes, sends: list[Send]) -> None:
        self.data = data
        self.sends = sends


class HistoryProducer:
    def __init__(self, cluster: NodeAccess, history: History, name: str, partition: int, dice: random.Random) -> None:
        self._cluster = cluster
        self._history = history
        self._name = name
        self._partition = partition
        self._dice = dice
        self._unanswered: deque[InFlight] = deque()
        self._producer_id = -1
        self._is_known = False
        self._sequence = 0
        self._count = 0
        self._batch_count = 0

    async def run(self, batch_count: int) -> None:
        """Produce until the faults are over and at least ``batch_count`` batches are acknowledged."""
        while not self._is_done(batch_count):
            client = await self._cluster.connect_to(self._partition)
            try:
                if self._producer_id < 0:
                    reply = await client.ask(InitProducerIdRequest(transactional_id=None), 4, timeout_s=REPLY_SECONDS)
                    self._producer_id = reply.producer_id if reply.error_code == 0 else -1
                    continue
                await self._converse(client, batch_count)
            except Trouble:
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                client.close()

    def _is_done(self, batch_count: int) -> bool:
        return not self._unanswered and not self._makes_more(batch_count)

    def _makes_more(self, batch_count: int) -> bool:
        return self._batch_count < batch_count or not self._cluster.is_calm

    async def _converse(self, client: WireClient, batch_count: int) -> None:
        """Resend unanswered batches, then continue, until the connection fails."""
        replies = deque(self._send(client, waiting) for waiting in self._unanswered)
        window = self._window()
        while replies or self._makes_more(batch_count):
            # A broker that does not know the producer takes any batch for its first: the second must not be that one.
            while self._makes_more(batch_count) and len(replies) < (window if self._is_known else 1):
                waiting = self._make()
                self._unanswered.append(waiting)
                replies.append(self._send(client, waiting))
            await self._handle_reply(replies.popleft())
            if self._dice.random() < 0.3:
                await asyncio.sleep(self._dice.random() * self._cluster.think_s)

    def _window(self) -> int:
        """How many batches may be in flight."""
        return self._dice.randint(1, 5)

    def _make(self) -> InFlight:
        sends = []
        for _ in range(self._dice.randint(1, 4)):
            self._count += 1
            sends.append(self._history.send(self._name, str(self._partition), f"{self._name}-{self._count}"))
        records = [Record(-1, self._cluster.environment.clock.wall_ms(), None, send.value.encode()) for send in sends]
        data = batch.build(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequence)
        self._sequence += len(sends)
        self._batch_count += 1
        return InFlight(data, sends)

    def _send(self, client: WireClient, waiting: InFlight) -> asyncio.Future[object]:
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(self._partition, waiting.data)])
            ],
        )
        return client.send(request, 9)

    async def _handle_reply(self, reply: asyncio.Future[object]) -> None:
        response = await asyncio.wait_for(reply, REPLY_SECONDS)
        answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
        if answer.error_code in RETRIABLE:
            await asyncio.sleep(RETRY_SECONDS)
            raise ConnectionError(f"error {answer.error_code}: start over in order")
        assert answer.error_code == 0, f"{self._name} was refused: {answer}"
        self._is_known = True
        waiting = self._unanswered.popleft()
        for index, send in enumerate(waiting.sends):
            send.acknowledged(answer.base_offset + index)
        self._cluster.on_acknowledged(self._partition, answer.base_offset + len(waiting.sends) - 1)


class HistoryReader:
    def __init__(self, cluster: NodeAccess, history: History, name: str, partition: int) -> None:
        self._cluster = cluster
        self._history = history
        self._name = name
        self._partition = partition
        self._assignment = 0
        self.position = 0

    async def run(self) -> None:
        """Follow the partition until the run is over."""
        while not self._cluster.is_over:
            client = await self._cluster.connect_to(self._partition)
            try:
                while not self._cluster.is_over:
                    records = await self.poll(client, max_wait_ms=500)
                    self._history.poll(self._name, self._assignment, str(self._partition), records)
            except Trouble:
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                client.close()

    async def read_all(self, *, end_offset: int = 0) -> list[tuple[int, str]]:
        """Read the partition from the start, for the final check.

        All below ``end_offset`` is known to be committed; the high watermark of a new leader may be lower for a moment.
        """
        self.position = 0
        everything: list[tuple[int, str]] = []
        while True:
            client = await self._cluster.connect_to(self._partition)
            try:
                while records := await self.poll(client, max_wait_ms=0):
                    everything += records
                if self.position >= end_offset:
                    return everything
            except Trouble:
                pass
            finally:
                client.close()
            await asyncio.sleep(RETRY_SECONDS)

    async def poll(self, client: WireClient, *, max_wait_ms: int) -> list[tuple[int, str]]:
        wanted = FetchPartition(self._partition, fetch_offset=self.position, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, topics=[FetchTopic(TOPIC, partitions=[wanted])]
        )
        response = await client.ask(request, 10, timeout_s=REPLY_SECONDS)
        (found,) = response.responses[0].partitions
        if found.error_code in RETRIABLE:
            raise ConnectionError(f"error {found.error_code}")
        assert found.error_code == 0, f"{self._name} at {self.position}: error {found.error_code}"
        try:
            records = [
                (record.offset, bytes(record.value or b"").decode())
                for one in batch.split(found.records or b"", partial_tail=True)
                for record in batch.records_of(one.data)
                if record.offset >= self.position
            ]
        except CorruptMessage as error:
            raise ConnectionError(f"the received data is damaged: {error}") from error
        if records:
            self.position = records[-1][0] + 1
            self._cluster.on_read(self._partition, records[-1][0])
        return records


async def work(
    cluster: NodeAccess,
    history: History,
    dice: random.Random,
    run_faults: Callable[[], Awaitable[None]],
    *,
    producer_count: int,
    partition_count: int,
    batch_count: int,
) -> None:
    """Produce and read while ``run_faults`` runs, until all have finished; then read everything once more."""
    producers = [
        HistoryProducer(cluster, history, f"p{number}", number % partition_count, random.Random(dice.random()))
        for number in range(producer_count)
    ]
    readers = [HistoryReader(cluster, history, f"c{partition}", partition) for partition in range(partition_count)]
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(producer.run(batch_count)) for producer in producers]
        following = [tasks.create_task(reader.run()) for reader in readers]
        await run_faults()
        cluster.is_calm = True
        await asyncio.gather(*working)
        cluster.is_over = True
        await asyncio.gather(*following)
    for partition in range(partition_count):
        history.record_final_read(str(partition), await HistoryReader(cluster, history, "final", partition).read_all())
