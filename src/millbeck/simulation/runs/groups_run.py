"""A seeded run of a consumer group on a whole cluster: members come and go, the coordinator dies and moves.

In the first phase members join and leave while nodes are killed, paused and restarted, one at a time and most often the
coordinator; partitions are added to the topic. Then all members follow the protocol, and the group must become stable
(G5): every partition is assigned, and every member has its target. In the end the group's records are read from
``__consumer_offsets`` and compared with the responses to the members (G1 to G4, `group_history`).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Final, NamedTuple

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewPartitions, NewTopic
from millbeck.client.cluster import Cluster
from millbeck.client.config import ClientConfig
from millbeck.client.consumer import Consumer
from millbeck.coordinator.group.records import GroupRecord, decode
from millbeck.coordinator.partitioner import partition_for
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults.rolling import POLL_SECONDS, break_node, create_topics, drawn_kinds
from millbeck.simulation.histories.group_history import NEVER_STABLE, NOT_COVERED, GroupHistory
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.workloads.group_members import GroupMemberBehaviour, SimGroupMember

GROUP: Final = "g"
TOPIC: Final = "t"
OFFSETS_PARTITIONS: Final = 2
LIMIT_SECONDS: Final = 600.0
SETTLE_SECONDS: Final = 40.0
"""The time to become stable: sessions of 4 s, rebalance timeouts of 5 s, heartbeats of half a second, and possibly
loading the coordinator."""

SETTINGS: Final = {
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "min.insync.replicas": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    member_count: int
    partition_count: int
    churn_s: float
    faults: tuple[str, ...]
    fault_count: int
    assignment_interval_ms: int
    behaviour: GroupMemberBehaviour

    @classmethod
    def drawn(cls, seed: int) -> GroupsPlan:
        dice = stream(seed, "groups plan")
        return cls(
            seed=seed,
            member_count=dice.randint(2, 6),
            partition_count=dice.randint(1, 8),
            churn_s=dice.choice((15.0, 30.0)),
            faults=drawn_kinds(dice),
            fault_count=dice.randint(0, 4),
            assignment_interval_ms=dice.choice((0, 200, 1000)),
            behaviour=GroupMemberBehaviour(
                leave=dice.choice((0.0, 0.03)),
                die=dice.choice((0.0, 0.03)),
                stall=dice.choice((0.0, 0.05)),
                stall_s=dice.choice((2.0, 8.0)),
                revoke_s=dice.choice((0.2, 2.0, 7.0)),
            ),
        )


class GroupView(NamedTuple):
    """The state of a group as a run observes it."""

    state: str
    member_count: int
    uncovered: str
    """A description of incorrect assignments; empty when all are correct."""


class GroupsRun:
    def __init__(self, plan: GroupsPlan) -> None:
        self.plan = plan
        self.history = self._new_history()
        self.cluster = SimCluster(plan.seed, settings=SETTINGS | self._settings())
        self._dice = stream(plan.seed, "groups clients")
        self._member_number = 0
        self._is_calm = False
        self._members: dict[str, SimGroupMember] = {}
        self._log: list[tuple[int, GroupRecord]] = []

    def _new_history(self) -> GroupHistory:
        return GroupHistory()

    def _settings(self) -> dict[str, str]:
        return {"group.consumer.assignment.interval.ms": str(self.plan.assignment_interval_ms)}

    def run(self) -> list[Anomaly]:
        try:
            self.cluster.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        finally:
            self.cluster.world.close()
        return self.history.check(self._log)

    async def _scenario(self, environment: Environment) -> None:
        self.cluster.start_all()
        servers = ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)
        admin = Admin({"bootstrap.servers": servers}, environment=environment)
        await self._create(admin)
        client = Cluster(environment, ClientConfig.parse({"bootstrap.servers": servers}))
        seats = [asyncio.create_task(self._run_members(client, number)) for number in range(self.plan.member_count)]
        await self._inject_faults(admin)
        self._is_calm = True
        for member in self._members.values():
            member.is_calm = True
        self.cluster.start_all()
        self.history.anomalies += await self._wait_until_stable(admin)
        for seat in seats:
            seat.cancel()
        await asyncio.gather(*seats, return_exceptions=True)
        await self._read_log(environment, servers)
        await client.close()
        await admin.close()

    async def _create(self, admin: Admin) -> None:
        topic = NewTopic(name=TOPIC, partition_count=self.plan.partition_count, replication_factor=3)
        await create_topics(admin, [topic])

    def _new_member(self, client: Cluster, member_id: str, seat: int) -> SimGroupMember:
        return SimGroupMember(
            client,
            self.history,
            random.Random(self._dice.random()),
            group_id=GROUP,
            member_id=member_id,
            topics=[TOPIC],
            behaviour=self.plan.behaviour,
        )

    async def _run_members(self, client: Cluster, number: int) -> None:
        """Run one member after the other: when one ends, the next one joins."""
        while True:
            self._member_number += 1
            member = self._new_member(client, f"m{self._member_number}", number)
            member.is_calm = self._is_calm
            self._members[member.member_id] = member
            try:
                await member.live()
            finally:
                del self._members[member.member_id]
            await asyncio.sleep(self._dice.random() * 2)

    # Faults

    async def _inject_faults(self, admin: Admin) -> None:
        dice = stream(self.plan.seed, "groups faults")
        pause_s = self.plan.churn_s / (self.plan.fault_count + 1)
        for number in range(self.plan.fault_count):
            await asyncio.sleep(pause_s * (0.5 + dice.random()))
            if number == 1:
                await self._change(admin)
            victim, kind = self._victim(dice), dice.choice(self.plan.faults)
            await break_node(self.cluster, victim, kind, dice, topics=[CONSUMER_OFFSETS_TOPIC])
        await asyncio.sleep(pause_s)

    def _victim(self, dice: random.Random) -> SimNode:
        coordinator = self.cluster.leader_of(CONSUMER_OFFSETS_TOPIC, partition_for(GROUP, OFFSETS_PARTITIONS))
        if coordinator is not None and dice.random() < 0.7:
            return coordinator
        return dice.choice(self.cluster.members)

    async def _change(self, admin: Admin) -> None:
        """Let the topic grow."""
        try:
            wanted = NewPartitions(total_count=self.plan.partition_count + 2)
            await admin.create_partitions({TOPIC: wanted}, timeout_s=10)
        except ApiError:
            return

    # The end

    async def _wait_until_stable(self, admin: Admin) -> list[Anomaly]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_SECONDS
        found = GroupView("not described", 0, "")
        while loop.time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            try:
                found = await self._look(admin)
            except ApiError as error:
                found = GroupView(str(error), 0, "")
            is_stable = found.state == "Stable" and found.member_count == self.plan.member_count
            if is_stable and not found.uncovered:
                return []
        if is_stable:
            return [Anomaly(NOT_COVERED, found.uncovered)]
        text = f"{found.state} with {found.member_count} members"
        return [Anomaly(NEVER_STABLE, f"{SETTLE_SECONDS} s after the last trouble the group is {text}")]

    async def _look(self, admin: Admin) -> GroupView:
        described = (await admin.describe_groups([GROUP], timeout_s=10))[GROUP]
        topic = (await admin.describe_topics([TOPIC], timeout_s=10))[TOPIC]
        everything = [TopicPartition(TOPIC, each.partition) for each in topic.partitions]
        targets = sorted(each for member in described.members for each in member.target_assignment or ())
        assigned = sorted(each for member in described.members for each in member.assignment)
        uncovered = "" if targets == assigned == everything else f"{assigned} of {everything} are assigned"
        return GroupView(described.state, len(described.members), uncovered)

    async def _read_log(self, environment: Environment, servers: str) -> None:
        place = TopicPartition(CONSUMER_OFFSETS_TOPIC, partition_for(GROUP, OFFSETS_PARTITIONS))
        async with Consumer({"bootstrap.servers": servers}, environment=environment) as consumer:
            end = (await consumer.end_offsets([place], timeout_s=60))[place]
            consumer.assign([place])
            consumer.seek(place, 0)
            while await consumer.position(place) < end:
                for record in (await consumer.poll(timeout_s=1.0)).get(place, ()):
                    found = decode(record.key or b"", record.value)
                    if found is not None:
                        self._log.append((record.offset, found))
