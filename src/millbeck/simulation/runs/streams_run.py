"""A seeded run of a streams group on a whole cluster: threads come and go, the coordinator dies and moves.

Like the run of a consumer group (`groups_run`), with an application of two subtopologies, whose internal topics the
coordinator creates while nodes break. The source topic may be created late, and the number of standby tasks changes in
the middle. In the end every task must be assigned, and every stateful task must have as many standby tasks as possible.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigChange, ConfigResource, NewTopic, ResourceType
from millbeck.client.admin.streams_groups import StreamsMemberDescription, StreamsTasks
from millbeck.client.cluster import Cluster
from millbeck.kernel.errors import ApiError
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults.rolling import create_topics
from millbeck.simulation.histories.streams_history import StreamsHistory
from millbeck.simulation.runs.groups_run import GROUP, TOPIC, GroupsPlan, GroupsRun, GroupView
from millbeck.simulation.workloads.group_members import SimGroupMember
from millbeck.simulation.workloads.streams_members import STATEFUL, SimStreamsMember

SUBTOPOLOGIES: Final = ("0", STATEFUL)
SETTINGS: Final = {
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPlan(GroupsPlan):
    threads: int
    """The number of members per process."""
    standbys: int
    standbys_later: int
    delay_ms: int
    source_after_s: float

    @classmethod
    def drawn(cls, seed: int) -> StreamsPlan:
        dice = stream(seed, "streams plan")
        common = GroupsPlan.drawn(seed)
        return cls(
            **{name: getattr(common, name) for name in GroupsPlan.__dataclass_fields__},
            threads=dice.choice((1, 2, 3)),
            standbys=dice.choice((0, 1, 1, 2)),
            standbys_later=dice.choice((0, 1, 2)),
            delay_ms=dice.choice((0, 0, 3000)),
            source_after_s=dice.choice((0.0, 0.0, 5.0)),
        )


class StreamsRun(GroupsRun):
    plan: StreamsPlan
    history: StreamsHistory

    def __init__(self, plan: StreamsPlan) -> None:
        super().__init__(plan)
        self._creating: asyncio.Task[None] | None = None

    def _new_history(self) -> StreamsHistory:
        return StreamsHistory()

    def _settings(self) -> dict[str, str]:
        return SETTINGS | {
            "group.streams.assignment.interval.ms": str(self.plan.assignment_interval_ms),
            "group.streams.initial.rebalance.delay.ms": str(self.plan.delay_ms),
            "group.streams.num.standby.replicas": str(self.plan.standbys),
        }

    async def _create(self, admin: Admin) -> None:
        topic = NewTopic(name=TOPIC, partition_count=self.plan.partition_count, replication_factor=3)
        if not self.plan.source_after_s:
            await create_topics(admin, [topic])
            return

        async def later() -> None:
            await asyncio.sleep(self.plan.source_after_s)
            await create_topics(admin, [topic])

        self._creating = asyncio.create_task(later())

    def _new_member(self, client: Cluster, member_id: str, seat: int) -> SimGroupMember:
        return SimStreamsMember(
            client,
            self.history,
            random.Random(self._dice.random()),
            group_id=GROUP,
            member_id=member_id,
            process_id=self._process(seat),
            behaviour=self.plan.behaviour,
        )

    def _process(self, seat: int) -> str:
        return f"p{seat // self.plan.threads}"

    async def _change(self, admin: Admin) -> None:
        """Change the number of standby tasks."""
        resource = ConfigResource(ResourceType.GROUP, GROUP)
        change = ConfigChange(name="streams.num.standby.replicas", value=str(self.plan.standbys_later))
        try:
            await admin.incremental_alter_configs({resource: [change]}, timeout_s=10)
        except ApiError:
            return

    async def _look(self, admin: Admin) -> GroupView:
        described = (await admin.describe_streams_groups([GROUP], timeout_s=10))[GROUP]
        configs = (await admin.describe_configs([ConfigResource(ResourceType.GROUP, GROUP)], timeout_s=10)).all()
        (entries,) = configs.values()
        wanted = int(entries["streams.num.standby.replicas"].value or 0)
        processes = {self._process(seat) for seat in range(self.plan.member_count)}
        return GroupView(
            described.state,
            len(described.members),
            self._uncovered(described.members, min(wanted, len(processes) - 1)),
        )

    def _uncovered(self, members: tuple[StreamsMemberDescription, ...], copies: int) -> str:
        everything = {(name, index): 1 for name in SUBTOPOLOGIES for index in range(self.plan.partition_count)}
        standbys = {task: copies for task in everything if task[0] == STATEFUL and copies}
        for member in members:
            if member.assigned != member.target:
                return f"{member.member_id} has {member.assigned} and should have {member.target}"
        for role, expected in (("active", everything), ("standby", standbys)):
            found = Counter(task for member in members for task in _tasks(member.assigned, role))
            if found != expected:
                return f"the {role} tasks are {dict(found)}, not {expected}"
        return ""


def _tasks(tasks: StreamsTasks, role: str) -> list[tuple[str, int]]:
    by_subtopology = tasks.active if role == "active" else tasks.standby
    return [(name, index) for name, partitions in by_subtopology.items() for index in partitions]
