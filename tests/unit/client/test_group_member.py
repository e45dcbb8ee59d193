"""Members of a group of the program's own protocol type share work out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from millbeck.client import GroupMember
from millbeck.client.group_member import MemberAssignment
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InconsistentGroupProtocol, InvalidConfig
from tests.unit.client.one_node import HERE, in_world

SETTINGS: dict[str, Any] = {**HERE, "group.id": "workers", "session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


class Worker:
    """Keeps what it is told; the leader gives every member its own metadata back."""

    def __init__(self, environment: Environment, name: str, **options: Any) -> None:
        self.told: list[str] = []
        self.parts: MemberAssignment | None = None
        self.member = GroupMember(
            SETTINGS,
            protocol_type=options.pop("protocol_type", "jobs"),
            protocols={"even": name.encode()},
            assign=self.assign,
            on_assigned=self.assigned,
            on_revoked=self.revoked,
            environment=environment,
        )

    def assign(self, protocol: str, metadata: Mapping[str, bytes]) -> dict[str, bytes]:
        together = b",".join(sorted(metadata.values()))
        return {member_id: together + b"/" + own for member_id, own in metadata.items()}

    async def assigned(self, parts: MemberAssignment) -> None:
        self.parts = parts
        self.told.append(f"assigned {parts.data.decode()}")

    def revoked(self) -> None:
        self.told.append("revoked")

    async def until(self, data: str) -> None:
        async with asyncio.timeout(60):
            while f"assigned {data}" not in self.told:
                await asyncio.sleep(0.1)


def test_members_are_given_their_parts_and_a_rebalance_revokes_first() -> None:
    async def scenario(environment: Environment) -> None:
        first, second = Worker(environment, "a"), Worker(environment, "b")
        async with first.member:
            await first.until("a/a")
            async with second.member:
                await first.until("a,b/a")
                await second.until("a,b/b")
                assert first.parts is not None
                assert second.parts is not None
                assert [first.parts.is_leader, second.parts.is_leader].count(True) == 1
                assert first.parts.generation == second.parts.generation
                # Longer than the rebalance timeout: nobody has to poll.
                await asyncio.sleep(90)
            before = len(first.told)
            while len(first.told) < before + 2:
                await asyncio.sleep(0.1)
            assert first.told == ["assigned a/a", "revoked", "assigned a,b/a", "revoked", "assigned a/a"]
            first.member.rejoin("there is more to do")
            while len(first.told) < before + 4:
                await asyncio.sleep(0.1)
        assert first.told[-3:] == ["revoked", "assigned a/a", "revoked"]

    in_world(scenario)


def test_a_rebalance_requested_while_joining_is_not_forgotten() -> None:
    class Asking(Worker):
        generations = 0

        def assign(self, protocol: str, metadata: Mapping[str, bytes]) -> dict[str, bytes]:
            self.generations += 1
            if self.generations == 1:
                self.member.rejoin("there is more to do")
            return super().assign(protocol, metadata)

    async def scenario(environment: Environment) -> None:
        worker = Asking(environment, "a")
        async with worker.member:
            await asyncio.sleep(10)
            assert worker.told == ["assigned a/a", "revoked", "assigned a/a"]

    in_world(scenario)


@pytest.mark.parametrize("rejoins", [False, True], ids=["by a heartbeat", "as it joins again"])
def test_a_member_that_the_group_has_removed_is_told_so(rejoins: bool) -> None:
    async def scenario(environment: Environment) -> None:
        first, second = Worker(environment, "a"), Worker(environment, "b")
        lost: list[str] = []
        first.member._on_lost = lambda: lost.append("lost")
        async with first.member, second.member:
            await first.until("a,b/a")
            count = first.told.count("assigned a,b/a")
            # The group hears of it before the member does.
            await first.member._member._send_leave("somebody else has removed it")
            if rejoins:
                first.member.rejoin("it asks")
            async with asyncio.timeout(60):
                while not lost:
                    await asyncio.sleep(0.1)
            async with asyncio.timeout(60):
                while first.told.count("assigned a,b/a") == count:
                    await asyncio.sleep(0.1)
        assert lost == ["lost"]

    in_world(scenario)


def test_another_protocol_type_in_the_same_group_is_an_error_that_stays() -> None:
    async def scenario(environment: Environment) -> None:
        first, stranger = Worker(environment, "a"), Worker(environment, "b", protocol_type="other")
        async with first.member:
            await first.until("a/a")
            async with stranger.member, asyncio.timeout(60):
                with pytest.raises(InconsistentGroupProtocol):
                    await stranger.member.wait_failed()

    in_world(scenario)


def test_a_member_needs_a_group() -> None:
    with pytest.raises(InvalidConfig, match=r"group\.id"):
        GroupMember(
            HERE,
            protocol_type="jobs",
            protocols={},
            assign=lambda protocol, metadata: {},
            on_assigned=lambda parts: None,
            on_revoked=lambda: None,
        )
