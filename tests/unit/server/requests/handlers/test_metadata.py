"""Metadata: all, none or some topics, made on first use, seen only by those who may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.security.authorizer import OPERATIONS_NOT_ASKED, SUPPORTED_OPERATIONS, Operation, ResourceType
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, delete, deny, partition_of, run_scenario


def about(*names: str | None, creates: bool = False, **fields: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates, **fields)


def by_id(*ids: bytes) -> MetadataRequest:
    topics = [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def codes(response: Any) -> dict[str, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", range(14))
def test_every_version_describes_brokers_and_topics(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2)
        assert harness.node is not None
        request = about("t", creates=version < 4)
        response = await client.ask(request, version)
        (broker,) = response.brokers
        assert (broker.node_id, broker.host, broker.port) == (1, harness.machine.address, 9092)
        assert response.cluster_id == (harness.node.cluster_id if version >= 2 else None)
        assert response.controller_id == (1 if version >= 1 else -1)
        (topic,) = response.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
        assert topic.topic_id == (topic_id if version >= 10 else ZERO_UUID)
        assert [each.partition_index for each in topic.partitions] == [0, 1]
        for each in topic.partitions:
            assert (each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes) == (0, 1, [1], [1])
            assert each.leader_epoch == (0 if version >= 7 else -1)
            assert each.offline_replicas == []
        assert topic.topic_authorized_operations == OPERATIONS_NOT_ASKED

    run_scenario(scenario)


def test_null_is_all_and_empty_is_none_but_in_version_zero() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "b")
        await create(client, "a")
        assert list(codes(await client.ask(MetadataRequest(topics=[]), 0))) == ["a", "b"]
        for version in (1, 4, 9, 12):
            assert list(codes(await client.ask(MetadataRequest(topics=None), version))) == ["a", "b"]
            assert codes(await client.ask(MetadataRequest(topics=[]), version)) == {}

    run_scenario(scenario)


@pytest.mark.parametrize("version", [0, 3, 9, 12])
def test_a_missing_topic_is_unknown_and_created_in_the_background(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = about("new", "__consumer_offsets", creates=True)
        asked = [client.send(request, version) for _ in range(3)]
        for answer in asked:
            response = await answer
            assert [(each.name, each.error_code) for each in response.topics] == [
                ("new", UnknownTopicOrPartition.code),
                ("__consumer_offsets", UnknownTopicOrPartition.code),
            ]
        await asyncio.sleep(0.5)
        response = await client.ask(request, version)
        assert [(each.error_code, len(each.partitions), each.is_internal) for each in response.topics] == [
            (0, 5, False),
            (0, 3, version > 0),
        ]

    run_scenario(scenario, num_partitions="5")


def test_a_client_that_creates_nothing_does_not_keep_another_from_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await client.ask(about("new"), 9)
        await client.ask(about("new", creates=True), 9)
        await asyncio.sleep(0.5)
        assert codes(await client.ask(about("new"), 9)) == {"new": 0}

    run_scenario(scenario)


def test_nothing_is_made_against_the_will_of_the_client_or_the_broker() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert codes(await client.ask(about("new"), 9)) == {"new": UnknownTopicOrPartition.code}
        assert codes(await client.ask(MetadataRequest(topics=None), 9)) == {}

    run_scenario(scenario)

    async def refused(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for version in (0, 3, 9):
            response = await client.ask(about("new", creates=True), version)
            assert codes(response) == {"new": UnknownTopicOrPartition.code}

    run_scenario(refused, auto_create_topics_enable="false")


@pytest.mark.parametrize("creates", [True, False])
def test_names_that_cannot_be_are_refused_and_do_not_harm_the_others(creates: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "fine")
        bad = ["", ".", "..", "../x", "a b", "x" * 250, "ü"]
        response = await client.ask(about(*bad, "fine", creates=creates), 9)
        assert codes(response) == dict.fromkeys(bad, InvalidTopic.code) | {"fine": 0}

    run_scenario(scenario)


def test_a_name_that_collides_is_not_made() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "a.b")
        for _ in range(2):
            assert codes(await client.ask(about("a_b", creates=True), 9)) == {"a_b": UnknownTopicOrPartition.code}
            await asyncio.sleep(0.5)

    run_scenario(scenario)


def test_ids_are_looked_up_from_version_twelve_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        for version in (12, 13):
            known, unknown = (await client.ask(by_id(topic_id, bytes(range(16))), version)).topics
            assert (known.error_code, known.name, known.topic_id) == (0, "t", topic_id)
            assert (unknown.error_code, unknown.name) == (UnknownTopicId.code, None)
            assert unknown.topic_id == bytes(range(16))
        for version in (10, 11):
            (refused,) = (await client.ask(by_id(topic_id), version)).topics
            assert refused.error_code == InvalidRequest.code
        (neither,) = (await client.ask(about(None), 12)).topics
        assert neither.error_code == InvalidTopic.code

    run_scenario(scenario)


def test_what_is_kept_is_forgotten_when_a_topic_goes() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await create(client)
        for _ in range(2):
            assert (await client.ask(about("t"), 12)).topics[0].topic_id == first
        await delete(client)
        assert codes(await client.ask(about("t"), 12)) == {"t": UnknownTopicOrPartition.code}
        second = await create(client)
        assert (await client.ask(about("t"), 12)).topics[0].topic_id == second != first

    run_scenario(scenario)


def test_what_is_kept_does_not_depend_on_who_asks_or_how() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for version in (9, 8, 12, 1):
            for fields in ({}, {"include_topic_authorized_operations": True} if version >= 8 else {}):
                (topic,) = (await client.ask(about("t", creates=version < 4, **fields), version)).topics
                assert (topic.topic_authorized_operations == OPERATIONS_NOT_ASKED) == (not fields)
        assert harness.node is not None
        assert harness.node.broker.metadata_replies.size_bytes > 0

    run_scenario(scenario)


def test_a_log_that_is_offline_makes_an_offline_replica() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        (topic,) = (await client.ask(about("t"), 9)).topics
        assert topic.partitions[0].offline_replicas == []
        partition_of(harness).log.mark_offline("a test")
        (topic,) = (await client.ask(about("t"), 9)).topics
        assert topic.partitions[0].offline_replicas == [1]

    run_scenario(scenario)


def test_clients_are_told_what_is_advertised_or_else_what_they_dialled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        (broker,) = (await client.ask(MetadataRequest(topics=[]), 9)).brokers
        assert (broker.host, broker.port, broker.rack) == ("broker.example", 1234, "r1")

    run_scenario(scenario, advertised_listeners="PLAINTEXT://broker.example:1234", broker_rack="r1")


# Who may.


def test_topics_that_may_not_be_described_are_hidden_from_all_and_refused_by_name() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, "secret")
        await create(client, "open")
        deny(harness, Operation.DESCRIBE, names=("secret", "nowhere"))
        assert list(codes(await client.ask(MetadataRequest(topics=None), 9))) == ["open"]
        refused = TopicAuthorizationFailed.code
        response = await client.ask(about("secret", "nowhere", "open"), 12)
        assert codes(response) == {"secret": refused, "nowhere": refused, "open": 0}
        assert response.topics[0].topic_id == ZERO_UUID
        (hidden,) = (await client.ask(by_id(topic_id), 12)).topics
        assert (hidden.error_code, hidden.name, hidden.topic_id) == (refused, None, topic_id)

    run_scenario(scenario)


def test_only_who_may_create_makes_topics_by_asking() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        deny(harness, Operation.DESCRIBE)
        assert codes(await client.ask(about("a", creates=True), 9)) == {"a": TopicAuthorizationFailed.code}
        deny(harness, Operation.CREATE)
        assert codes(await client.ask(about("a", creates=True), 9)) == {"a": TopicAuthorizationFailed.code}
        assert codes(await client.ask(about("a", creates=False), 9)) == {"a": UnknownTopicOrPartition.code}
        deny(harness, Operation.CREATE, names=("a", "kafka-cluster"))
        response = await client.ask(about("a", "b", creates=True), 9)
        assert codes(response) == {"a": TopicAuthorizationFailed.code, "b": UnknownTopicOrPartition.code}
        await asyncio.sleep(0.5)
        assert codes(await client.ask(about("a", "b"), 9)) == {"a": UnknownTopicOrPartition.code, "b": 0}
        assert list(harness.node.broker.image.topics.by_name) == ["b"]
        deny(harness, Operation.CREATE, names=("a",))
        await client.ask(about("a", creates=True), 9)
        await asyncio.sleep(0.5)
        assert codes(await client.ask(about("a"), 9)) == {"a": 0}

    run_scenario(scenario)


def test_authorized_operations_are_told_on_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        everything = sum(1 << each for each in SUPPORTED_OPERATIONS[ResourceType.TOPIC])
        request = about("t", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
        response = await client.ask(request, 9)
        assert response.topics[0].topic_authorized_operations == everything
        assert response.cluster_authorized_operations & (1 << Operation.CREATE)
        authorizer = deny(harness, Operation.WRITE, Operation.CREATE)
        response = await client.ask(request, 9)
        assert response.topics[0].topic_authorized_operations == everything - (1 << Operation.WRITE) - (
            1 << Operation.CREATE
        )
        assert not response.cluster_authorized_operations & (1 << Operation.CREATE)
        assert all("/" not in host for host in authorizer.hosts)
        deny(harness, Operation.DESCRIBE, names=("kafka-cluster",))
        assert (await client.ask(request, 9)).cluster_authorized_operations == 0

    run_scenario(scenario)


@pytest.mark.parametrize("version", [1, 8, 12])
def test_a_topic_that_is_named_often_is_answered_once(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        asked = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="none")] * 500
        answer = await client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=version < 4), version)
        assert [topic.name for topic in answer.topics] == ["t", "none"]

    run_scenario(scenario)
