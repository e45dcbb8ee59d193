"""Appends the node's own batches to a topic partition, on this node or on the partition's leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import (
    ApiError,
    LeaderNotAvailable,
    UnknownServerError,
    UnknownTopicOrPartition,
    by_code,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.records.validation import validate
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.server.local_topics import rules_of
from millbeck.storage.config import LogConfig
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

if TYPE_CHECKING:
    from millbeck.server.context import NodeContext
    from millbeck.server.network.broker_connections import BrokerConnections

ANSWER_SECONDS_MAX: Final = 30.0


class TopicWriter:
    def __init__(self, node: NodeContext, peers: Callable[[], BrokerConnections], purpose: str) -> None:
        """``purpose`` names the connections to other brokers."""
        self._node = node
        self._peers = peers
        self._purpose = purpose

    def config_of(self, topic: str) -> LogConfig:
        node = self._node
        return LogConfig.resolve(node.layers(node.image, node.image.configs.of_topic(topic)))

    async def append(self, name: str, number: int, data: bytes) -> None:
        """Append a batch with ``acks=all``; partition ``number`` is taken modulo the topic's. Raises `ApiError`."""
        node = self._node
        topic = node.image.topics.named(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"topic {name} does not exist")
        index = number % len(topic.partitions)
        leader = topic.partitions[index].leader
        if leader < 0:
            raise LeaderNotAvailable(f"{name}-{index} has no leader")
        if leader == node.node_id:
            await self._append_here(TopicPartition(name, index), data)
            return
        produced = TopicProduceData(name, topic.topic_id, [PartitionProduceData(index, data)])
        request = ProduceRequest(acks=-1, timeout_ms=int(ANSWER_SECONDS_MAX * 1000), topic_data=[produced])
        timeout_s = ANSWER_SECONDS_MAX + 5
        answer = await self._peers().request(leader, self._purpose, request, ProduceResponse, timeout_s=timeout_s)
        for partition in answer.responses[0].partition_responses:
            if partition.error_code:
                raise by_code.get(partition.error_code, UnknownServerError)(partition.error_message or "")

    async def _append_here(self, place: TopicPartition, data: bytes) -> None:
        node = self._node
        partition = node.topics.led_partition(*place)
        now_ms = node.now_ms()
        validated = await node.in_thread(validate, data, rules_of(self.config_of(place.topic)), now_ms)
        completed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def complete(error: ApiError | None) -> None:
            if completed.done():
                return
            if error is None:
                completed.set_result(None)
            else:
                completed.set_exception(error)

        partition.append(validated, CallbackAppend(complete), now_ms=now_ms)
        await completed
