"""Requests that many tests of a whole node make, and an authorizer that says no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from millbeck.kernel.errors import CoordinatorNotAvailable
from millbeck.kernel.ids import ZERO_UUID
from millbeck.records import control
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.server.metadata.reply_cache import MetadataReplies
from millbeck.storage.producer_state import AppendOrigin
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from millbeck.wire.messages.groups import Coordinator, FindCoordinatorRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch

NOW_MS = 1_700_000_000_000


def run_scenario(scenario: Any, **settings: Any) -> Any:
    return BrokerHarness(**settings).run(scenario)


async def create(client: Client, name: str = "t", partitions: int = 1, **configs: Any) -> bytes:
    """Create a topic; its id."""
    settings = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name, num_partitions=partitions, replication_factor=1, configs=settings)]
    )
    (result,) = (await client.ask(request, 7)).topics
    assert result.error_code == 0, result
    topic_id: bytes = result.topic_id
    return topic_id


async def find_coordinator(client: Client, key: str = "g", key_type: int = 0) -> Coordinator:
    """Who coordinates a key, once the internal topic has been created."""
    while True:
        answer = await client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6)
        found: Coordinator = answer.coordinators[0]
        if found.error_code != CoordinatorNotAvailable.code:
            return found
        await asyncio.sleep(0.05)


async def delete(client: Client, name: str = "t") -> None:
    (result,) = (
        await client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000), 6)
    ).responses
    assert result.error_code == 0, result


async def produce(
    client: Client, *values: bytes, topic: str = "t", index: int = 0, acks: int = 1, **fields: Any
) -> int:
    """Append one batch; the offset of its first record."""
    data = PartitionProduceData(index, one_batch(*values, **fields))
    request = ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    (answer,) = (await client.ask(request, 9)).responses[0].partition_responses
    assert answer.error_code == 0, answer
    offset: int = answer.base_offset
    return offset


def fetch(
    *partitions: tuple[int, int] | FetchPartition,
    topic: str = "t",
    topic_id: bytes = ZERO_UUID,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 50_000_000,
    committed: bool = False,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[int, ...] = (),
) -> FetchRequest:
    """A fetch of one topic's partitions, each ``(index, offset)``; ``session`` is id and epoch."""
    wanted = [
        each
        if isinstance(each, FetchPartition)
        else FetchPartition(each[0], fetch_offset=each[1], partition_max_bytes=partition_max_bytes)
        for each in partitions
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(committed),
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic, topic_id, wanted)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(topic, topic_id, list(forgotten))] if forgotten else [],
    )


def results(response: Any) -> dict[int, Any]:
    """Results of a fetch by partition index."""
    return {result.partition_index: result for topic in response.responses for result in topic.partitions}


def partition_of(harness: BrokerHarness, name: str = "t", index: int = 0) -> Partition:
    assert harness.node is not None
    return harness.node.broker.topics.partition(name, index)


def leases(harness: BrokerHarness, name: str = "t") -> int:
    """How many leases on the files of a topic's logs are out."""
    assert harness.node is not None
    topic = harness.node.broker.topics.by_name[name]
    return sum(segment.handle.leases for each in topic.partitions.values() for segment in each.log.segments)


def append_straight(partition: Partition, batch: bytes, *, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
    """Put a batch into a partition's log past the handlers, as a transaction's coordinator would."""
    partition.log.stage(batch, leader_epoch=partition.leader_epoch, now_ms=NOW_MS, origin=origin)
    partition.log.write_staged()
    partition.advance_high_watermark()


def in_transaction(*values: bytes, producer_id: int, sequence: int = 0) -> bytes:
    return one_batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def end_of_transaction(producer_id: int, *, committed: bool) -> bytes:
    return control.marker_batch(
        control.EndTransaction(committed=committed, coordinator_epoch=1),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=NOW_MS,
    )


class Denies:
    """Says no to what ``denies`` names; a question is (operation, resource type, name)."""

    def __init__(self, denies: Callable[[Operation, ResourceType, str], bool]) -> None:
        self._denies = denies
        self.hosts: list[str] = []
        self.epoch = 0

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        self.hosts.append(host)
        return not self._denies(operation, resource_type, resource_name)

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        return not self._denies(operation, resource_type, "*")


def deny(harness: BrokerHarness, *operations: Operation, names: tuple[str, ...] | None = None) -> Denies:
    """From now on the node refuses these operations (all when none is given), on these names alone if any."""
    assert harness.node is not None
    authorizer = Denies(
        lambda operation, _, name: (not operations or operation in operations) and (names is None or name in names)
    )
    harness.node.broker.authorizer = authorizer
    harness.node.broker.metadata_replies = MetadataReplies()
    return authorizer
