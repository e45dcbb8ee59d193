"""Topics come, grow, lose their beginning and go; each by itself, and only for those who may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers import topics
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, fetch, partition_of, produce, results, run_scenario

# CreateTopics.


def creating(*names: str, validate_only: bool = False, **fields: Any) -> CreateTopicsRequest:
    fields = {"num_partitions": 1, "replication_factor": 1} | fields
    return CreateTopicsRequest(topics=[CreatableTopic(name, **fields) for name in names], validate_only=validate_only)


def codes(rows: Any) -> dict[str, int]:
    return {row.name: row.error_code for row in rows}


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_a_topic_that_takes_records_at_once(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = creating("t", num_partitions=2, configs=[CreatableTopicConfig("retention.ms", "1000")])
        (topic,) = (await client.ask(request, version)).topics
        assert (topic.error_code, topic.error_message) == (0, None)
        if version >= 5:
            assert (topic.num_partitions, topic.replication_factor) == (2, 1)
            by_name = {each.name: each for each in topic.configs}
            assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == ("1000", 1)
        assert harness.node is not None
        image = harness.node.broker.image.topics.named("t")
        assert image is not None
        assert topic.topic_id == (image.topic_id if version >= 7 else bytes(16))
        assert await produce(client, b"x", index=1) == 0
        assert partition_of(harness).log.config.retention_ms == 1000

    run_scenario(scenario)


def test_what_cannot_be_created_is_refused_by_itself() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "there")
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic("fine", num_partitions=1, replication_factor=1),
                CreatableTopic("there", num_partitions=1, replication_factor=1),
                CreatableTopic("../x", num_partitions=1, replication_factor=1),
                CreatableTopic("many", num_partitions=1, replication_factor=3),
                CreatableTopic("none", num_partitions=0, replication_factor=1),
                CreatableTopic(
                    "odd",
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig("no.such.option", "1")],
                ),
            ]
        )
        response = await client.ask(request, 7)
        assert codes(response.topics) == {
            "fine": 0,
            "there": TopicAlreadyExists.code,
            "../x": InvalidTopic.code,
            "many": InvalidReplicationFactor.code,
            "none": InvalidPartitions.code,
            "odd": InvalidConfig.code,
        }
        assert all(topic.error_message for topic in response.topics if topic.error_code)

    run_scenario(scenario)


def test_defaults_are_the_brokers_and_validation_changes_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        request = creating("t", num_partitions=-1, replication_factor=-1, validate_only=True)
        (topic,) = (await client.ask(request, 7)).topics
        assert (topic.error_code, topic.num_partitions) == (0, 4)
        assert harness.node.broker.image.topics.named("t") is None
        request.validate_only = False
        assert codes((await client.ask(request, 7)).topics) == {"t": 0}
        assert len(harness.node.broker.topics.by_name["t"].partitions) == 4

    run_scenario(scenario, num_partitions="4")


def test_creation_needs_the_cluster_or_the_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        deny(harness, Operation.CREATE, names=("kafka-cluster", "a"))
        response = await client.ask(creating("a", "b"), 7)
        assert codes(response.topics) == {"a": TopicAuthorizationFailed.code, "b": 0}
        deny(harness, Operation.CREATE, names=("a",))
        assert codes((await client.ask(creating("a"), 7)).topics) == {"a": 0}
        deny(harness, Operation.DESCRIBE_CONFIGS)
        (hidden,) = (await client.ask(creating("c"), 7)).topics
        assert hidden.topic_config_error_code == TopicAuthorizationFailed.code
        assert hidden.num_partitions == -1
        assert not hidden.configs

    run_scenario(scenario)


# DeleteTopics.


def deleting(*names: str, ids: tuple[bytes, ...] = (), version: int = 6) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    states = [DeleteTopicState(name=name) for name in names]
    states += [DeleteTopicState(name=None, topic_id=each) for each in ids]
    return DeleteTopicsRequest(topics=states, timeout_ms=1000)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "t")
        response = await client.ask(deleting("t", "nowhere", version=version), version)
        assert codes(response.responses) == {"t": 0, "nowhere": UnknownTopicOrPartition.code}
        assert harness.node is not None
        assert harness.node.broker.topics.by_name == {}
        assert "t-0" not in environment_names(harness)

    run_scenario(scenario)


def environment_names(harness: BrokerHarness) -> list[str]:
    return list(harness.machine.disk.find_directory("/data").entries)


def test_deletion_by_id_and_the_mixtures_that_are_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first, second = await create(client, "a"), await create(client, "b")
        (gone,) = (await client.ask(deleting(ids=(first,)), 6)).responses
        assert (gone.error_code, gone.name, gone.topic_id) == (0, "a", first)
        (again,) = (await client.ask(deleting(ids=(first,)), 6)).responses
        assert again.error_code == UnknownTopicId.code
        both = DeleteTopicsRequest([DeleteTopicState("b", second), DeleteTopicState(None, bytes(16))], timeout_ms=1000)
        for refused in (await client.ask(both, 6)).responses:
            assert refused.error_code == InvalidRequest.code
        response = await client.ask(deleting("b", "b"), 6)
        assert {each.error_code for each in response.responses} == {InvalidRequest.code}

    run_scenario(scenario)


def test_a_deleted_topic_may_be_made_again_and_is_another() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await create(client)
        await produce(client, b"old")
        await client.ask(deleting("t"), 6)
        second = await create(client)
        assert second != first
        assert await produce(client, b"new") == 0
        assert b"old" not in results(await client.ask(fetch((0, 0)), 11))[0].records

    run_scenario(scenario)


def test_deletion_may_be_switched_off() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert codes((await client.ask(deleting("t"), 6)).responses) == {"t": TopicDeletionDisabled.code}

    run_scenario(scenario, delete_topic_enable="false")


def test_who_may_not_delete_learns_nothing_about_names_behind_ids() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, "secret")
        refused = TopicAuthorizationFailed.code
        deny(harness, Operation.DELETE)
        response = await client.ask(deleting("secret", "nowhere", ids=(topic_id,)), 6)
        assert [
            (each.name, each.topic_id, each.error_code)
            for each in sorted(response.responses, key=lambda each: each.error_code != refused)
        ] == [
            ("secret", bytes(16), refused),
            ("secret", topic_id, refused),
            ("nowhere", bytes(16), UnknownTopicOrPartition.code),
        ]
        deny(harness, Operation.DELETE, Operation.DESCRIBE)
        hidden_names = (await client.ask(deleting("secret", "nowhere"), 6)).responses
        assert codes(hidden_names) == {"secret": refused, "nowhere": refused}
        (hidden,) = (await client.ask(deleting(ids=(topic_id,)), 6)).responses
        assert (hidden.name, hidden.error_code) == (None, refused)
        deny(harness, Operation.DELETE, names=("secret",))
        assert codes((await client.ask(deleting("secret"), 6)).responses) == {"secret": 0}

    run_scenario(scenario)


# CreatePartitions.


def growing(name: str, count: int, *, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name, count, None)], timeout_ms=1000, validate_only=validate_only
    )


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_and_never_takes_any(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        assert codes((await client.ask(growing("t", 5, validate_only=True), version)).results) == {"t": 0}
        assert harness.node is not None
        served = harness.node.broker.topics.by_name["t"]
        assert len(served.partitions) == 2
        assert codes((await client.ask(growing("t", 5), version)).results) == {"t": 0}
        assert sorted(served.partitions) == [0, 1, 2, 3, 4]
        assert await produce(client, b"x", index=4) == 0
        for count, error in ((5, InvalidPartitions), (3, InvalidPartitions), (-1, InvalidPartitions)):
            (row,) = (await client.ask(growing("t", count), version)).results
            assert (row.error_code, bool(row.error_message)) == (error.code, True)
        missing = await client.ask(growing("nowhere", 3), version)
        assert codes(missing.results) == {"nowhere": UnknownTopicOrPartition.code}

    run_scenario(scenario)


def test_growth_needs_permission_to_alter() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        deny(harness, Operation.ALTER)
        for name in ("t", "nowhere"):
            row = codes((await client.ask(growing(name, 3), 3)).results)
            assert row == {name: TopicAuthorizationFailed.code}

    run_scenario(scenario)


# DeleteRecords.


async def cut(client: Client, offset: int, *, topic: str = "t", index: int = 0, version: int = 2) -> tuple[int, int]:
    """Error code and low watermark."""
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])], timeout_ms=1000
    )
    (answer,) = (await client.ask(request, version)).topics[0].partitions
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_every_version_moves_the_beginning(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", b"b", b"c", b"d")
        assert await cut(client, 2, version=version) == (0, 2)
        assert await cut(client, 1, version=version) == (0, 2)
        assert await cut(client, -1, version=version) == (0, 4)
        assert await cut(client, 5, version=version) == (OffsetOutOfRange.code, -1)
        assert await cut(client, -2, version=version) == (OffsetOutOfRange.code, -1)
        assert await cut(client, 0, topic="nowhere", version=version) == (UnknownTopicOrPartition.code, -1)
        assert await cut(client, 0, index=3, version=version) == (UnknownTopicOrPartition.code, -1)

    run_scenario(scenario)


def test_what_is_not_acknowledged_yet_cannot_be_removed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, flush_messages="1")
        harness.machine.disk.faults.sync_cost_s = 5
        await produce(client, b"a", b"b")
        assert partition_of(harness).log.end_offset == 2
        assert await cut(client, 2) == (OffsetOutOfRange.code, -1)
        assert await cut(client, -1) == (0, 0)
        await asyncio.sleep(30)
        assert await cut(client, -1) == (0, 2)

    run_scenario(scenario)


def test_the_beginning_is_where_it_was_put_after_a_restart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", b"b", b"c")
        assert await cut(client, 2) == (0, 2)
        assert harness.node is not None
        await harness.node.stop()
        harness.machine.crash()
        await harness.start()
        assert partition_of(harness).log.log_start_offset == 2

    run_scenario(scenario)


def test_internal_topics_and_compacted_ones_keep_their_records() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await harness.node.broker.auto_create(["__consumer_offsets"])
        assert (await cut(client, 0, topic="__consumer_offsets"))[0] == InvalidTopic.code
        await create(client)
        from millbeck.storage.config import LogConfig

        harness.node.broker.topics.by_name["t"].config = LogConfig.of(cleanup_policy="compact")
        assert (await cut(client, 0))[0] == PolicyViolation.code

    run_scenario(scenario)


def test_removal_needs_permission_to_delete() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        deny(harness, Operation.DELETE)
        for name in ("t", "nowhere"):
            assert await cut(client, 1, topic=name) == (TopicAuthorizationFailed.code, -1)
        assert partition_of(harness).log.log_start_offset == 0

    run_scenario(scenario)


# Errors for the whole.


def test_an_error_for_the_whole_is_said_for_every_topic() -> None:
    error = UnknownServerError()
    for make in (topics.create_error, topics.delete_error, topics.partitions_error, topics.records_error):
        assert make(None, 1, error) is None
    created = topics.create_error(creating("a", "b"), 7, error)
    assert created is not None
    assert codes(created.topics) == {"a": -1, "b": -1}
    for version in (5, 6):
        deleted = topics.delete_error(deleting("a", version=version), version, error)
        assert deleted is not None
        assert codes(deleted.responses) == {"a": -1}
    grown = topics.partitions_error(growing("a", 1), 3, error)
    assert grown is not None
    assert codes(grown.results) == {"a": -1}
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic("a", [DeleteRecordsPartition(4, 0)])])
    records = topics.records_error(request, 2, error)
    assert records is not None
    assert [(each.partition_index, each.error_code) for each in records.topics[0].partitions] == [(4, -1)]
