"""Members of a streams group, played by a test against a shard in memory (`World`).

The application reads ``t`` with 4 partitions, and keeps state: subtopology ``0`` has 4 tasks. A player does what the
responses tell it: it has the tasks that it is given and says so.
"""

from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.tasks import TaskSet, to_wire
from millbeck.wire.messages.streams_groups import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.unit.coordinator.world import Outcome, World

CHANGELOG = "g-counts-changelog"
CLIENT = Client(client_id="c", host="/127.0.0.1")
Held = dict[str, tuple[int, ...]]


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    own = Subtopology("0", ["t"], state_changelog_topics=[TopicInfo(CHANGELOG)])
    return Topology(epoch, list(subtopologies) or [own])


def world_of(topics: dict[str, int] | None = None, *, standbys: int = 0, **streams: Any) -> World:
    """A shard whose topics exist, and whose first assignment does not wait."""
    settings = {"initial_rebalance_delay_ms": 0, "assignment_interval_ms": 0, "standby_replica_count": standbys}
    return World(topics=topics or {"t": 4, CHANGELOG: 4}, streams=settings | streams)


def beat(world: World, request: StreamsGroupHeartbeatRequest, client: Client = CLIENT) -> Outcome:
    return world.write(lambda shard, _: shard.streams_heartbeat(request, client, world.now_ms))


def group_of(world: World, group_id: str = "g") -> StreamsGroup:
    group = world.group(group_id)
    assert isinstance(group, StreamsGroup)
    return group


class Player:
    """One member: a thread of the process ``process_id``."""

    def __init__(self, world: World, member_id: str, process_id: str | None = None, **details: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.process_id = process_id or f"process of {member_id}"
        self.details = {"topology": topology(), "rebalance_timeout_ms": 5000} | details
        self.epoch = 0
        self.tasks = TaskSet()
        """What it was given last."""
        self.endpoint_epoch = -1
        self.last: Outcome = Outcome()

    def beat(self, *, owned: TaskSet | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat that reports its tasks, and do at once what the response says."""
        response = self.try_beat(owned=owned, **fields)
        assert response is not None, self.last.error
        return response

    def try_beat(self, *, owned: TaskSet | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse | None:
        """None for an error, which is in ``last``."""
        reported = TaskSet() if self.epoch == 0 else owned or self.tasks
        details = {"process_id": self.process_id} | self.details if self.epoch == 0 else {}
        request = StreamsGroupHeartbeatRequest(
            **{
                "group_id": "g",
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "endpoint_information_epoch": self.endpoint_epoch,
                "active_tasks": to_wire(reported.active),
                "standby_tasks": to_wire(reported.standby),
                "warmup_tasks": [],
                **details,
                **fields,
            }
        )
        self.last = beat(self.world, request)
        if self.last.error is not None:
            return None
        response: StreamsGroupHeartbeatResponse = self.last.response.response
        self.epoch = response.member_epoch
        self.endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is not None:
            self.tasks = TaskSet.of(response.active_tasks, response.standby_tasks or (), response.warmup_tasks or ())
        return response

    def leave(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        self.epoch = -1
        request = StreamsGroupHeartbeatRequest(group_id="g", member_id=self.member_id, member_epoch=-1, **fields)
        self.last = beat(self.world, request)
        assert self.last.error is None
        response: StreamsGroupHeartbeatResponse = self.last.response.response
        return response

    @property
    def error(self) -> str:
        return self.last.code_name if self.last.error is not None else "NONE"

    @property
    def active(self) -> Held:
        return dict(self.tasks.active)

    @property
    def standby(self) -> Held:
        return dict(self.tasks.standby)


def beat_in_turn(*players: Player, rounds: int = 6) -> None:
    for _ in range(rounds):
        for player in players:
            player.beat()


def statuses(response: StreamsGroupHeartbeatResponse) -> list[int]:
    return [each.status_code for each in response.status or ()]


def endpoint(host: str) -> Endpoint:
    return Endpoint(host, 9000)
