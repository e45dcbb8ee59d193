"""Producers repeat what was not answered, in order and with the same sequence numbers, until it is."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

from millbeck.records import batch
from millbeck.simulation.histories.history import History, SendOutcome
from millbeck.simulation.workloads.produce_and_read import HistoryProducer, NodeAccess
from millbeck.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse


class Clock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000


class Environment:
    clock = Clock()


class FlakyClient:
    """A connection that is lost after so many produce requests, answered or not."""

    def __init__(self, harness: FlakyCluster, lives: int) -> None:
        self._harness = harness
        self._lives = lives

    async def ask(self, request: Any, version: int, *, timeout_s: float = 0) -> Any:
        assert isinstance(request, InitProducerIdRequest)
        return InitProducerIdResponse(producer_id=7)

    def send(self, request: Any, version: int) -> Any:
        future = asyncio.get_running_loop().create_future()
        if self._lives <= 0:
            future.set_exception(ConnectionError("lost"))
            future.exception()
            return future
        self._lives -= 1
        data = request.topic_data[0].partition_data[0].records
        offset = self._harness.append(data)
        if self._lives == 0 and self._harness.dice.random() < 0.5:
            future.set_exception(ConnectionError("lost after the append"))
            future.exception()
        else:
            answer = PartitionProduceResponse(index=0, base_offset=offset)
            future.set_result(
                ProduceResponse(responses=[TopicProduceResponse(name="history", partition_responses=[answer])])
            )
        return future

    def close(self) -> None: ...


class FlakyCluster(NodeAccess):
    def __init__(self, seed: int) -> None:
        super().__init__(cast(Any, Environment()), "n", 1)
        self.dice = random.Random(seed)
        self.log: list[tuple[int, str]] = []
        self._known: dict[int, int] = {}
        self.is_calm = True

    async def connect(self) -> Any:
        return FlakyClient(self, self.dice.randint(1, 6))

    def append(self, data: bytes) -> int:
        """What an idempotent log does: a sequence it knows gets its old offset, the next one is appended."""
        header = batch.read_header(data)
        if header.base_sequence in self._known:
            return self._known[header.base_sequence]
        offset = self._known[header.base_sequence] = len(self.log)
        for record in batch.records_of(data):
            assert header.base_sequence + (len(self.log) - offset) == len(self.log), "a gap in the sequence"
            self.log.append((len(self.log), bytes(record.value or b"").decode()))
        return offset


def test_everything_is_acknowledged_once_and_in_order_over_connections_that_break(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("millbeck.simulation.workloads.produce_and_read.RETRY_SECONDS", 0)
    for seed in range(20):
        cluster, history = FlakyCluster(seed), History()
        producer = HistoryProducer(cluster, history, "p", 0, random.Random(seed))
        monkeypatch.setattr(producer._dice, "random", lambda: 0.9)
        asyncio.run(producer.run(30))
        assert {send.outcome for send in history.sends} == {SendOutcome.ACKNOWLEDGED}
        assert [value for _, value in cluster.log] == [send.value for send in history.sends]
        assert [(send.offset, send.value) for send in history.sends] == cluster.log
