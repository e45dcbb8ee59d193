"""Members of a streams group that implement the protocol themselves: threads of processes, with active and standby
tasks.

They behave like the members of a consumer group (`group_members`): they are late, stall, or crash. The application
reads the source topic and keeps state, and reads its own repartition topic. A place is the id of a subtopology and a
partition: commits name the topic that the subtopology reads.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from millbeck.client.cluster import Cluster
from millbeck.kernel.ids import ZERO_UUID
from millbeck.simulation.histories.group_history import Place
from millbeck.simulation.histories.streams_history import StreamsHistory
from millbeck.simulation.workloads.group_members import LEAVE_EPOCH, GroupMemberBehaviour, SimGroupMember
from millbeck.wire.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

SOURCE: Final = "t"
REPARTITION: Final = "g-words-repartition"
CHANGELOG: Final = "g-counts-changelog"
READ_BY: Final = {b"0": SOURCE, b"1": REPARTITION}
STATEFUL: Final = "1"
NAMED_VERSION_MAX: Final = 9
"""The last version of OffsetCommit and OffsetFetch with names of topics."""


def topology() -> Topology:
    lines = Subtopology("0", [SOURCE], repartition_sink_topics=[REPARTITION])
    counts = Subtopology(
        STATEFUL,
        [],
        repartition_source_topics=[TopicInfo(REPARTITION, 0, 3)],
        state_changelog_topics=[TopicInfo(CHANGELOG, 0, 3)],
    )
    return Topology(0, [lines, counts])


class SimStreamsMember(SimGroupMember):
    _offsets_version_max = NAMED_VERSION_MAX

    def __init__(
        self,
        cluster: Cluster,
        history: StreamsHistory,
        dice: random.Random,
        *,
        group_id: str,
        member_id: str,
        process_id: str,
        behaviour: GroupMemberBehaviour,
    ) -> None:
        super().__init__(
            cluster, history, dice, group_id=group_id, member_id=member_id, topics=[SOURCE], behaviour=behaviour
        )
        self._process_id = process_id
        self._standbys: dict[Place, None] = {}
        self._given_standbys: dict[Place, None] = {}

    async def _send_heartbeat(self, *, is_joining: bool) -> Any:
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            active_tasks=[] if is_joining else _tasks_of(self.owned),
            standby_tasks=[] if is_joining else _tasks_of(self._standbys),
            warmup_tasks=[],
        )
        if is_joining:
            self._standbys = {}
            request.rebalance_timeout_ms = self._behaviour.rebalance_timeout_ms
            request.topology = topology()
            request.process_id = self._process_id
        return await self._ask(request, StreamsGroupHeartbeatResponse)

    def _given(self, response: Any) -> dict[Place, None] | None:
        if response.active_tasks is None:
            return None
        self._given_standbys = _places_of(response.standby_tasks or [])
        return _places_of(response.active_tasks)

    async def _take_over(self, given: dict[Place, None], before: int) -> None:
        if any(place not in self._given_standbys for place in self._standbys):
            await asyncio.sleep(0 if self.is_calm else self._dice.random() * self._behaviour.revoke_s)
        self._standbys = dict(self._given_standbys)
        await super()._take_over(given, before)

    def _topic_of(self, place: Place) -> tuple[str, bytes]:
        return READ_BY[place[0]], ZERO_UUID

    async def _send_leave(self) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        await self._ask(request, StreamsGroupHeartbeatResponse)


def _places_of(tasks: list[TaskIds]) -> dict[Place, None]:
    return {(each.subtopology_id.encode(), partition): None for each in tasks for partition in each.partitions}


def _tasks_of(places: dict[Place, None]) -> list[TaskIds]:
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in places:
        found.setdefault(subtopology_id.decode(), []).append(partition)
    return [TaskIds(name, sorted(partitions)) for name, partitions in found.items()]
