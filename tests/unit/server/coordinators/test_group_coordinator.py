"""The group driver inside a whole node: which shards there are, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard_runner import ShardState
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.server.coordinators.group_coordinator import GroupDriver
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.groups import ListGroupsRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


def groups_of(harness: BrokerHarness) -> GroupDriver:
    assert harness.node is not None
    return harness.node.broker.groups


async def prepare(client: Client) -> None:
    await find_coordinator(client, "g")
    await client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=1, replication_factor=1)]), 7)


async def commit(client: Client, group: str, offset: int) -> int:
    topics = [OffsetCommitRequestTopic("t", bytes(16), [OffsetCommitRequestPartition(0, offset)])]
    response = await client.ask(OffsetCommitRequest(group_id=group, topics=topics), 9)
    code: int = response.topics[0].partitions[0].error_code
    return code


async def names(client: Client) -> tuple[int, list[str]]:
    response = await client.ask(ListGroupsRequest(), 5)
    return response.error_code, sorted(group.group_id for group in response.groups)


GROUPS = [f"group-{index}" for index in range(10)]


def test_every_partition_has_a_shard_and_metrics_add_them_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        groups = groups_of(harness)
        for offset, group in enumerate(GROUPS):
            assert await commit(client, group, offset) == 0
        assert {groups.partition_for(group) for group in GROUPS} == {0, 1, 2}
        statistics = groups.statistics()
        assert len(statistics) == 3
        assert sum(each.group_counts["Empty"] for each in statistics) == len(GROUPS)
        assert sum(each.offset_count for each in statistics) == len(GROUPS)
        assert {each.group_id: each.offset for each in groups.committed_offsets()} == {
            group: offset for offset, group in enumerate(GROUPS)
        }
        assert await names(client) == (0, sorted(GROUPS))

    BrokerHarness().run(scenario)


def test_a_lost_partition_takes_its_groups_with_it_and_brings_them_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        for offset, group in enumerate(GROUPS):
            await commit(client, group, offset)
        groups = groups_of(harness)
        lost = groups.partition_for(GROUPS[0])
        partition = groups._drivers[lost].partition
        groups.partition_lost(lost)
        groups.partition_lost(lost)
        assert await commit(client, GROUPS[0], 1) == errors.NotCoordinator.code
        kept = sorted(group for group in GROUPS if groups.partition_for(group) != lost)
        assert await names(client) == (0, kept)
        groups.partition_led(partition)
        assert groups.is_loading
        failures: list[ApiError] = []
        groups.write(GROUPS[0], lambda _: Result(), ResponseCallback(lambda _: None, failures.append))
        groups.read(GROUPS[0], lambda _, __: None, ResponseCallback(lambda _: None, failures.append))
        assert [type(error) for error in failures] == [errors.CoordinatorLoadInProgress] * 2
        with pytest.raises(errors.CoordinatorLoadInProgress):
            groups.read_all(lambda shard, at: shard.list_groups([], [], at))
        while groups.is_loading:
            await client.ask(ListGroupsRequest(), 5)
        assert await names(client) == (0, sorted(GROUPS))
        same = groups._drivers[lost]
        groups.partition_led(partition)
        assert groups._drivers[lost] is same, "it has it already"

    BrokerHarness().run(scenario)


def test_a_failed_shard_is_left_out_and_the_others_go_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        for group in GROUPS:
            await commit(client, group, 1)
        groups = groups_of(harness)
        failed = groups.partition_for(GROUPS[0])
        host: Any = groups._drivers[failed].host

        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        host.shard.replay = broken
        assert await commit(client, GROUPS[0], 2) == errors.CoordinatorNotAvailable.code
        assert host.state is ShardState.FAILED
        other = next(group for group in GROUPS if groups.partition_for(group) != failed)
        assert await commit(client, other, 2) == 0
        assert len(groups.statistics()) == 2
        assert GROUPS[0] not in (await names(client))[1]

    BrokerHarness().run(scenario)


def test_closing_ends_every_shard() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        groups = groups_of(harness)
        hosts = [driver.host for driver in groups._drivers.values()]
        groups.close()
        assert [host.state for host in hosts] == [ShardState.CLOSED] * 3
        assert await commit(client, "g", 1) == errors.NotCoordinator.code

    BrokerHarness().run(scenario)


def test_a_shard_that_failed_is_given_another_try_with_the_next_epoch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        groups = groups_of(harness)
        driver = groups._drivers[0]
        groups.partition_led(driver.partition)
        assert groups._drivers[0] is driver
        driver.host.state = ShardState.FAILED
        groups.partition_led(driver.partition)
        assert groups._drivers[0] is not driver
        assert groups._drivers[0].host.state is ShardState.ACTIVE

    BrokerHarness().run(scenario)
