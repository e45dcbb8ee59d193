"""DescribeTopicPartitions: topics in pages, from a cursor on."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from millbeck.security.authorizer import SUPPORTED_OPERATIONS, Operation, ResourceType
from millbeck.server.requests.handlers.describe_topic_partitions import error_reply
from millbeck.wire.messages.metadata import Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario


def asking(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    topics = [DescribeTopicPartitionsTopic(name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


def shown(response: Any) -> list[tuple[str, int, list[int]]]:
    return [
        (topic.name, topic.error_code, [each.partition_index for each in topic.partitions]) for topic in response.topics
    ]


def test_named_topics_come_sorted_with_everything_about_them() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "b", partitions=2)
        topic_id = await create(client, "a")
        response = await client.ask(asking("b", "a", "b"), 0)
        assert shown(response) == [("a", 0, [0]), ("b", 0, [0, 1])]
        assert response.next_cursor is None
        topic = response.topics[0]
        assert (topic.topic_id, topic.is_internal) == (topic_id, False)
        assert topic.topic_authorized_operations == sum(1 << each for each in SUPPORTED_OPERATIONS[ResourceType.TOPIC])
        (partition,) = topic.partitions
        assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes, partition.isr_nodes) == (
            1,
            0,
            [1],
            [1],
        )
        assert (partition.eligible_leader_replicas, partition.offline_replicas) == ([], [])

    run_scenario(scenario)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 7, 100])
def test_pages_of_any_size_show_every_partition_once(limit: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for name, count in (("a", 3), ("b", 1), ("c", 2)):
            await create(client, name, partitions=count)
        seen: list[tuple[str, int]] = []
        cursor = None
        for _ in range(20):
            response = await client.ask(asking(limit=limit, cursor=cursor), 0)
            page = [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]
            assert len(page) <= limit
            seen += page
            cursor = response.next_cursor
            if cursor is None:
                break
        assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]

    run_scenario(scenario)


def test_the_brokers_limit_and_a_limit_of_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "a", partitions=5)
        response = await client.ask(asking(), 0)
        assert shown(response) == [("a", 0, [0, 1])]
        assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("a", 2)
        for limit in (0, -3):
            assert shown(await client.ask(asking(limit=limit), 0)) == [("a", 0, [0])]

    run_scenario(scenario, max_request_partition_size_limit="2")


def test_a_cursor_may_point_at_what_is_gone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "a")
        await create(client, "c", partitions=3)
        assert shown(await client.ask(asking(cursor=Cursor("b", 5)), 0)) == [("c", 0, [0, 1, 2])]
        assert shown(await client.ask(asking(cursor=Cursor("c", 2)), 0)) == [("c", 0, [2])]
        assert shown(await client.ask(asking("a", "c", cursor=Cursor("d", 0)), 0)) == []
        (refused,) = (await client.ask(asking("a", cursor=Cursor("a", -1)), 0)).topics
        assert refused.error_code == InvalidRequest.code

    run_scenario(scenario)


def test_missing_and_impossible_names_are_told_apart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        response = await client.ask(asking("nowhere", "../x"), 0)
        assert shown(response) == [("../x", InvalidTopic.code, []), ("nowhere", UnknownTopicOrPartition.code, [])]

    run_scenario(scenario)


def test_what_may_not_be_described_is_left_out_of_all_and_refused_by_name() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for name in ("a", "b"):
            await create(client, name)
        deny(harness, Operation.DESCRIBE, names=("a", "nowhere"))
        assert shown(await client.ask(asking(), 0)) == [("b", 0, [0])]
        refused = TopicAuthorizationFailed.code
        response = await client.ask(asking("a", "b", "nowhere"), 0)
        assert shown(response) == [("a", refused, []), ("b", 0, [0]), ("nowhere", refused, [])]
        assert response.topics[0].topic_id == bytes(16)

    run_scenario(scenario)


def test_an_error_for_the_whole_is_said_for_every_topic() -> None:
    assert error_reply(None, 0, UnknownServerError()) is None
    answer = error_reply(asking("a", "b"), 0, UnknownServerError())
    assert answer is not None
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("a", -1), ("b", -1)]
