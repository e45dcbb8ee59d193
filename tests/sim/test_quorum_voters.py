"""Voters in the log, with real drivers: one joins by itself, a leader is removed, a disk is replaced by another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import RequestTimedOut
from millbeck.metadata.records import ConfigRecord
from millbeck.raft.messages import RemoveVoterRequest
from millbeck.raft.options import QuorumTimeouts
from millbeck.raft.voters import ReplicaKey
from millbeck.records.control import Voter, VoterEndpoint, Voters
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.quorum_driver import QuorumDriver
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.simulation import World
from millbeck.simulation.raft.bench import directory
from millbeck.simulation.runs.quorum_node import PORT, QuorumNode

LOG = "/data/__cluster_metadata-0"
TIMEOUTS = QuorumTimeouts(election_ms=300, fetch_ms=600, request_ms=600, fetch_wait_ms_max=150)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint(name="CONTROLLER", host=f"c{node_id}", port=PORT)


def first_voters() -> Voters:
    return Voters(
        voters=tuple(
            Voter(node_id=each, directory_id=directory(each), endpoints=(endpoint(each),), kraft_version_max=1)
            for each in (1, 2, 3)
        )
    )


class Quorum:
    def __init__(self, world: World) -> None:
        self.world = world
        self.members: dict[int, QuorumNode] = {}

    def start(self, node_id: int, *, life: int = 1, can_vote: bool = True) -> None:
        self.world.node(f"c{node_id}").start(self._main(node_id, life, can_vote))

    def _main(self, node_id: int, life: int, can_vote: bool) -> Callable[[Environment], Awaitable[object]]:
        settings = QuorumSettings(
            can_vote=can_vote,
            directory_id=directory(node_id, life),
            bootstrap_servers=(Address("c1", PORT), Address("c2", PORT)),
            listeners=(endpoint(node_id),) if can_vote else (),
            auto_join=True,
            timeouts=TIMEOUTS,
        )

        async def main(environment: Environment) -> None:
            if node_id <= 3 and life == 1 and not environment.files.exists(LOG):
                environment.files.make_directory("/data")
                metadata_files.write_initial_voters(environment.files, LOG, first_voters(), now_ms=1)
            member = self.members[node_id] = QuorumNode(environment, settings, node_id=node_id)
            await member.serve()

        return main

    def wipe(self, node_id: int) -> None:
        machine = self.world.node(f"c{node_id}")
        machine.power_loss()
        files = machine.disk.mount()
        files.remove_tree("/data")
        files.sync_directory("/")
        machine.disk.unmount(files)

    @property
    def leader(self) -> QuorumDriver | None:
        running = [each for each in self.members if self.world.node(f"c{each}").is_running]
        return next((self.members[each].driver for each in running if self.members[each].driver.is_active), None)

    async def until(self, holds: Callable[[QuorumDriver], bool]) -> QuorumDriver:
        """The leader, once something holds of it."""
        async with asyncio.timeout(60):
            while (leader := self.leader) is None or not holds(leader):
                await asyncio.sleep(0.05)
        return leader


def voters_of(driver: QuorumDriver) -> tuple[int, ...]:
    assert driver.machine is not None
    return driver.machine.history.latest.ids


@pytest.mark.parametrize("number", range(6))
def test_voters_come_and_go_and_come_back_with_empty_disks(number: int) -> None:
    async def scenario(environment: Environment) -> None:
        for node_id in (1, 2, 3, 4):
            quorum.start(node_id)
        quorum.start(9, can_vote=False)
        leader = await quorum.until(lambda driver: voters_of(driver) == (1, 2, 3, 4))
        assert leader.kraft_version == 1
        removed = leader.node_id
        # It would ask to be let in again.
        assert leader.machine is not None
        leader.machine.auto_join = False
        removal = RemoveVoterRequest(voter=ReplicaKey(removed, directory(removed)))
        while (await leader.ask(removal)).error_code == RequestTimedOut.code:
            # The set with the one that joined is not committed yet.
            await asyncio.sleep(0.05)
        leader = await quorum.until(lambda driver: driver.node_id != removed)
        assert removed not in voters_of(leader)
        victim = next(each for each in voters_of(leader) if each != leader.node_id)
        quorum.wipe(victim)
        quorum.start(victim, life=2)

        def is_back(driver: QuorumDriver) -> bool:
            assert driver.machine is not None
            voter = driver.machine.history.latest.get(victim)
            return voter is not None and voter.directory_id == directory(victim, 2)

        leader = await quorum.until(is_back)
        record = ConfigRecord(resource_type=4, resource_name="", name="last", value="v")
        await leader.submit(lambda image: Result(response=None, records=[record]))
        async with asyncio.timeout(30):
            for member in quorum.members.values():
                while "last" not in member.driver.image.configs.of_all_brokers():
                    await asyncio.sleep(0.05)
        assert {voters_of(member.driver) for member in quorum.members.values()} == {voters_of(leader)}

    with World(number) as world:
        quorum = Quorum(world)
        world.run(scenario, limit_s=300)
