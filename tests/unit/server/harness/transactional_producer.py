"""A transactional producer that says exactly what a test wants said, to a whole node in the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from millbeck.kernel.errors import ConcurrentTransactions
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.log_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import find_coordinator


def transaction_harness(seed: int = 1, **settings: str) -> BrokerHarness:
    """A node with few partitions of its own topics."""
    defaults = {"transaction_state_log_replication_factor": "1", "transaction_state_log_num_partitions": "3"}
    return BrokerHarness(seed, **(defaults | {"transaction_state_log_min_isr": "1"} | settings))


class Transacting:
    """``version`` 0 adds partitions first, as clients up to transaction version 1 do; 2 does not."""

    def __init__(self, client: Client, name: str = "tx", version: int = 2) -> None:
        self.client = client
        self.name = name
        self.version = version
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[int, int] = {}

    async def prepare(self, partition_count: int = 2) -> Transacting:
        topic = CreatableTopic("t", num_partitions=partition_count, replication_factor=1)
        await self.client.ask(CreateTopicsRequest(topics=[topic]), 7)
        for key_type in (0, 1):
            await find_coordinator(self.client, self.name, key_type=key_type)
        assert await self.init() == 0
        return self

    async def init(self, timeout_ms: int = 60_000, tries: int = 50) -> int:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)
        for _ in range(tries):
            answer = await self.client.ask(request, 5)
            if answer.error_code != ConcurrentTransactions.code:
                break
            await asyncio.sleep(0.01)
        if not answer.error_code:
            self.adopt(answer)
        return int(answer.error_code)

    def adopt(self, answer: Any) -> None:
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}

    async def add(self, *partitions: int) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic("t", list(partitions))],
        )
        answer = await self.client.ask(request, 3)
        (topic,) = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in topic.results_by_partition]

    def batch(self, *values: bytes, partition: int = 0, **changes: Any) -> bytes:
        fields: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequences.get(partition, 0),
            "is_transactional": True,
        }
        return one_batch(*values, **(fields | changes))

    def produce_request(self, data: bytes, partition: int = 0, **changes: Any) -> ProduceRequest:
        topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(partition, data)])]
        fields: dict[str, Any] = {"transactional_id": self.name, "acks": -1, "timeout_ms": 1000, "topic_data": topics}
        return ProduceRequest(**(fields | changes))

    async def produce(self, *values: bytes, partition: int = 0, **changes: Any) -> int:
        data = self.batch(*values, partition=partition, **changes)
        version = 12 if self.version >= 2 else 11
        answer = await self.client.ask(self.produce_request(data, partition), version)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if code == 0:
            self.sequences[partition] = self.sequences.get(partition, 0) + len(values)
        return code

    async def end(self, is_committed: bool, tries: int = 50, epoch: int | None = None) -> int:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=is_committed,
        )
        for _ in range(tries):
            answer = await self.client.ask(request, 5 if self.version >= 2 else 4)
            if answer.error_code != ConcurrentTransactions.code:
                break
            await asyncio.sleep(0.01)
        if self.version >= 2 and not answer.error_code:
            self.adopt(answer)
        return int(answer.error_code)

    async def add_offsets(self, group: str) -> int:
        request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
        return int((await self.client.ask(request, 4)).error_code)

    async def commit_offset(self, group: str, offset: int, **changes: Any) -> int:
        topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, offset)])]
        fields: dict[str, Any] = {
            "transactional_id": self.name,
            "group_id": group,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "topics": topics,
        }
        answer = await self.client.ask(TxnOffsetCommitRequest(**(fields | changes)), 5 if self.version >= 2 else 4)
        return int(answer.topics[0].partitions[0].error_code)


async def stable_offset(client: Client, partition: int = 0) -> int:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(partition, timestamp=-1)])]
    answer = await client.ask(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=topics), 6)
    return int(answer.topics[0].partitions[0].offset)


async def aborted(client: Client, partition: int = 0) -> list[tuple[int, int]]:
    """Producer and first offset of each aborted transaction that a reader is told of."""
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=partition, partition_max_bytes=1 << 20)])]
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=1, topics=topics
    )
    answer = await client.ask(request, 11)
    found = answer.responses[0].partitions[0].aborted_transactions or []
    return [(each.producer_id, each.first_offset) for each in found]


def statuses(harness: BrokerHarness) -> dict[str, str]:
    """The state of every transactional id."""
    assert harness.node is not None
    shards = harness.node.broker.transactions.read_all(lambda shard, at: shard.transactions())
    return {each.transactional_id: each.status.shown for each in shards}


async def settled(harness: BrokerHarness) -> dict[str, str]:
    """The states, once no marker is on its way."""
    while any(status.startswith("Prepare") for status in statuses(harness).values()):
        await asyncio.sleep(0.01)
    return statuses(harness)


class Denying(AllowAll):
    """Everything is allowed but what ``is_denied`` names."""

    def __init__(self, is_denied: Callable[[Operation, ResourceType, str], bool]) -> None:
        self._is_denied = is_denied

    def authorize(
        self, principal: Any, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return not self._is_denied(operation, resource_type, resource_name)


def denying(operation: Operation, resource_type: ResourceType, name: str) -> Denying:
    return Denying(lambda *asked: asked == (operation, resource_type, name))
