"""DescribeProducers: who writes to a partition, and what each has open."""

from __future__ import annotations

from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import TopicAuthorizationFailed, UnknownServerError, UnknownTopicOrPartition
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers.producers import error_reply
from millbeck.storage.producer_state import AppendOrigin
from millbeck.wire.messages.transactions import DescribeProducersRequest, DescribeProducersTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import (
    NOW_MS,
    append_straight,
    create,
    deny,
    end_of_transaction,
    in_transaction,
    partition_of,
    produce,
    run_scenario,
)


def asking(*indexes: int, topic: str = "t") -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[DescribeProducersTopic(topic, list(indexes))])


async def told(client: Client, *indexes: int, topic: str = "t") -> list[Any]:
    partitions: list[Any] = (await client.ask(asking(*indexes, topic=topic), 0)).topics[0].partitions
    return partitions


def test_idempotent_and_transactional_producers_are_described() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"plain")
        await produce(client, b"a", b"b", producer_id=5, producer_epoch=2, base_sequence=0)
        append_straight(partition_of(harness), in_transaction(b"open", producer_id=7))
        (partition,) = await told(client, 0)
        assert (partition.partition_index, partition.error_code) == (0, 0)
        rows = [
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.current_txn_start_offset,
            )
            for each in partition.active_producers
        ]
        assert rows == [(5, 2, 1, NOW_MS, -1), (7, 0, 0, NOW_MS, 3)]
        append_straight(partition_of(harness), end_of_transaction(7, committed=True), origin=AppendOrigin.COORDINATOR)
        (partition,) = await told(client, 0)
        ended = partition.active_producers[1]
        assert (ended.current_txn_start_offset, ended.coordinator_epoch) == (-1, 1)

    run_scenario(scenario)


def test_a_partition_named_often_is_described_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        asked = [DescribeProducersTopic("t", [0, 1, 0] * 100), DescribeProducersTopic("t", [1])]
        (topic,) = (await client.ask(DescribeProducersRequest(topics=asked), 0)).topics
        assert [each.partition_index for each in topic.partitions] == [0, 1]

    run_scenario(scenario)


def test_partitions_that_are_not_there_or_not_to_be_read_are_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert [each.error_code for each in await told(client, 0, 4)] == [0, UnknownTopicOrPartition.code]
        assert [each.error_code for each in await told(client, 0, topic="no")] == [UnknownTopicOrPartition.code]
        deny(harness, Operation.READ)
        for topic in ("t", "no"):
            assert [each.error_code for each in await told(client, 0, topic=topic)] == [TopicAuthorizationFailed.code]

    run_scenario(scenario)


def test_an_error_for_the_whole_is_said_for_every_partition() -> None:
    assert error_reply(None, 0, UnknownServerError()) is None
    answer = error_reply(asking(0, 1), 0, UnknownServerError())
    assert answer is not None
    assert [each.error_code for each in answer.topics[0].partitions] == [-1, -1]
