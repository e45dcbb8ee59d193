"""The broker's part of a node: it joins, follows the metadata, and lets go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import CoordinatorNotAvailable, NotCoordinator
from millbeck.server import broker_role
from millbeck.server.broker_lifecycle import BrokerLifecycleManager
from millbeck.server.broker_role import BrokerRole
from millbeck.server.cleaner.service import Cleaner
from millbeck.simulation.cluster import SimCluster
from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME
from millbeck.wire.messages.classic_groups import HeartbeatRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, delete, find_coordinator, run_scenario


def part_of(harness: BrokerHarness) -> BrokerRole:
    assert harness.node is not None
    assert harness.node.broker_part is not None
    return harness.node.broker_part


def test_joining_makes_an_unfenced_broker_with_an_epoch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        registration = harness.node.broker.image.cluster.brokers[1]
        assert not registration.is_fenced
        assert registration.epoch == part_of(harness).epoch == harness.node.broker_epoch >= 0
        assert [each.listener for each in registration.endpoints] == ["PLAINTEXT"]
        assert len(registration.directories) == 1

    run_scenario(scenario)


def test_coordinators_come_and_go_with_their_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        heartbeat = HeartbeatRequest("g", 1, "m")
        assert (await client.ask(heartbeat, 3)).error_code in (NotCoordinator.code, CoordinatorNotAvailable.code)
        await find_coordinator(client, "g")
        assert harness.node.broker.groups.partition_count == 3
        assert (await client.ask(heartbeat, 3)).error_code not in (NotCoordinator.code, CoordinatorNotAvailable.code)
        await delete(client, "__consumer_offsets")
        assert (await client.ask(heartbeat, 3)).error_code == NotCoordinator.code

    run_scenario(scenario)


def test_letting_go_coordinates_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await find_coordinator(client, "g")
        part_of(harness).close_fetchers_and_coordinators()
        assert (await client.ask(HeartbeatRequest("g", 1, "m"), 3)).error_code == NotCoordinator.code

    run_scenario(scenario)


def test_the_controller_is_told_of_a_lost_directory_while_others_are_left() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, partitions=4)
        broker = harness.node.broker
        lost = broker.logs.directories[1]
        assert lost.meta is not None
        assert lost.meta.directory_id in broker.image.cluster.brokers[1].directories
        lost.failed("it was taken away")
        async with asyncio.timeout(5):
            while lost.meta.directory_id in broker.image.cluster.brokers[1].directories:
                await asyncio.sleep(0.05)
        leaders = [each.leader for each in broker.image.topics.by_name["t"].partitions.values()]
        assert sorted(leaders) == [-1, -1, 1, 1]
        assert not harness.node.failed.done()

    run_scenario(scenario, log_dirs="/data,/more")


@pytest.mark.parametrize("end", ["in order", "in one directory", "not at all"])
def test_a_process_says_which_one_before_it_ended_in_order(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[int] = []
    join = BrokerLifecycleManager.join

    async def noted(self: BrokerLifecycleManager, *arguments: Any, previous_epoch: int) -> None:
        claimed.append(previous_epoch)
        await join(self, *arguments, previous_epoch=previous_epoch)

    monkeypatch.setattr(BrokerLifecycleManager, "join", noted)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        epoch = harness.node.broker_epoch
        if end != "not at all":
            await harness.node.stop()
        harness.machine.crash()
        if end == "in one directory":
            files = harness.machine.disk.mount()
            files.unlink(f"/more/{CLEAN_SHUTDOWN_FILE_NAME}")
            harness.machine.disk.unmount(files)
        await harness.start()
        assert claimed == [-1, epoch if end == "in order" else -1]

    run_scenario(scenario, log_dirs="/data,/more")


def test_nobody_is_served_before_the_own_metadata_says_that_this_broker_is_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients that come first would be told of a cluster without brokers; some then wait very long."""
    cluster = SimCluster(1)
    seen: list[bool] = []

    original = Cleaner.start

    def start(self: Cleaner) -> None:
        broker = self._broker
        seen.append(broker.node_id in [each.broker_id for each in broker.image.cluster.unfenced_brokers()])
        original(self)

    monkeypatch.setattr(Cleaner, "start", start)

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        while len(seen) < 3:
            await asyncio.sleep(0.05)

    with cluster.world as world:
        world.run(scenario, limit_s=60)
    assert seen == [True] * 3


def test_a_large_change_settles_memory_when_partitions_come_and_when_they_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_role, "LARGE_CHANGE_PARTITIONS", 10)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        settled: list[str] = []
        part_of(harness)._settle_memory = lambda: settled.append("")
        await create(client, "few", 3)
        assert len(settled) == 0
        await create(client, "many", 12)
        assert len(settled) == 1
        await delete(client, "few")
        assert len(settled) == 1
        await delete(client, "many")
        assert len(settled) == 2

    run_scenario(scenario)


def test_many_small_changes_settle_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_role, "MANY_CHANGES_PARTITIONS", 10)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        settled: list[str] = []
        part = part_of(harness)
        part._settle_memory = lambda: settled.append("")
        part._changed = 0
        for number, expected in enumerate((0, 0, 1, 1, 1, 2)):
            await create(client, f"t{number}", 4)
            assert len(settled) == expected

    run_scenario(scenario)
