"""`python -m bench.rebalance`: how fast consumer groups (KIP-848) rebalance, beside Apache Kafka in the same run.

- One of 10 members of a group with 100 partitions leaves: the time until the others have everything, and whether any of
  them had to give something up or was stopped meanwhile. Goal: at least level with Kafka.
- 1,000 members join at once, each on a connection of its own: the time until every partition is somebody's and everyone
  has its part. Goal: at most 15 s.

Members speak the protocol themselves, from one process: as often as the broker says, and at once when they have given
something up, as Java's and librdkafka's do. Both systems are served by the same members.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench import machine
from bench.systems import SYSTEMS, Node
from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.host import real_environment
from millbeck.kernel.errors import ApiError, from_code
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse

TOPIC = "rebalance"
SMALL_MEMBERS, SMALL_PARTITIONS = 10, 100
LARGE_MEMBERS, LARGE_PARTITIONS = 1000, 1000
SETTLE_GOAL_S = 15.0
RATIO_GOAL = 0.95
PATIENCE_S = 120.0
REQUEST_S = 30.0
RETRY_S = 0.1
OPEN_AT_ONCE = 50

Place = tuple[bytes, int]


class GroupClient:
    """One member on one connection."""

    def __init__(self, group: str) -> None:
        self.member_id = str(uuid.uuid4())
        self.group = group
        self.epoch = 0
        self.owned: set[Place] = set()
        self.given_up_count = 0
        self.interval_s = 5.0
        self.connection: Connection | None = None
        self.changed_at = 0.0
        self.extra_s = 0.0
        """How much longer the next pause is."""

    async def open(self, node: Node) -> None:
        network = real_environment().network
        address = Address("127.0.0.1", node.port)
        self.connection = await Connection.open(network, address, ConnectionSettings(client_id="bench"))

    async def live(self) -> None:
        while True:
            try:
                must_tell = await self.beat()
            except ApiError as error:
                # A coordinator that has just been made may have to load first.
                if not error.retriable:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if not must_tell:
                extra_s, self.extra_s = self.extra_s, 0.0
                await asyncio.sleep(self.interval_s + extra_s)

    async def beat(self) -> bool:
        """One heartbeat; whether the next one should follow at once."""
        assert self.connection is not None
        topics: dict[bytes, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            topics.setdefault(topic_id, []).append(partition)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            topic_partitions=[ConsumerGroupHeartbeatTopicPartitions(*one) for one in topics.items()],
        )
        if self.epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = [TOPIC]
        response = await self.connection.request(request, ConsumerGroupHeartbeatResponse, timeout_s=REQUEST_S)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        self.epoch = response.member_epoch
        self.interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is None:
            return False
        given = {
            (topic.topic_id, partition)
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
        }
        if given == self.owned:
            return False
        self.given_up_count += len(self.owned - given)
        self.owned = given
        self.changed_at = time.monotonic()
        return True

    async def leave(self) -> None:
        assert self.connection is not None
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=-1)
        await self.connection.request(request, ConsumerGroupHeartbeatResponse, timeout_s=REQUEST_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    seconds: float
    given_up_count: int
    """Partitions that members which stayed had to give up."""


def _is_settled(members: list[GroupClient], partition_count: int) -> bool:
    sizes = [len(member.owned) for member in members]
    everything = {place for member in members for place in member.owned}
    return sum(sizes) == len(everything) == partition_count and max(sizes) - min(sizes) <= 1


async def wait_until_balanced(
    members: list[GroupClient], tasks: list[asyncio.Task[None]], partition_count: int
) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not _is_settled(members, partition_count):
        for task in tasks:
            if task.done():
                task.result()
        if time.monotonic() > deadline_s:
            sizes = sorted(len(member.owned) for member in members)
            raise TimeoutError(f"the group did not settle in {PATIENCE_S} s: {sizes[:5]} to {sizes[-5:]}")
        await asyncio.sleep(0.02)


async def _find(node: Node, group: str) -> None:
    """The coordinator's topic is made when it is first asked for."""
    member = GroupClient(group)
    await member.open(node)
    assert member.connection is not None
    for _ in range(300):
        answer = await member.connection.request(
            FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse, timeout_s=REQUEST_S
        )
        if not answer.coordinators[0].error_code:
            break
        await asyncio.sleep(0.1)
    member.connection.close()


async def _opened(node: Node, group: str, count: int) -> list[GroupClient]:
    await _find(node, group)
    members = [GroupClient(group) for _ in range(count)]
    for first in range(0, count, OPEN_AT_ONCE):
        await asyncio.gather(*(member.open(node) for member in members[first : first + OPEN_AT_ONCE]))
    return members


async def one_leaves(node: Node, group: str) -> Leaving:
    members = await _opened(node, group, SMALL_MEMBERS)
    tasks = [asyncio.create_task(member.live()) for member in members]
    try:
        await wait_until_balanced(members, tasks, SMALL_PARTITIONS)
        # Heartbeats of members that have been there for a while are spread over the interval. Otherwise it would be
        # the moment of leaving, and nothing of the broker's, that decides.
        for index, member in enumerate(members):
            member.extra_s = index * member.interval_s / SMALL_MEMBERS
        await asyncio.sleep(2 * members[0].interval_s + 1.25)
        leaving = members.pop()
        tasks.pop().cancel()
        for member in members:
            member.given_up_count = 0
        began = time.monotonic()
        await leaving.leave()
        await wait_until_balanced(members, tasks, SMALL_PARTITIONS)
        seconds = max(member.changed_at for member in members) - began
        return Leaving(seconds=seconds, given_up_count=sum(member.given_up_count for member in members))
    finally:
        await _end(members, tasks)


async def all_join(node: Node, group: str, count: int, partition_count: int) -> float:
    """Seconds from the first request to the last change."""
    members = await _opened(node, group, count)
    began = time.monotonic()
    tasks = [asyncio.create_task(member.live()) for member in members]
    try:
        await wait_until_balanced(members, tasks, partition_count)
        return max(member.changed_at for member in members) - began
    finally:
        await _end(members, tasks)


async def _end(members: list[GroupClient], tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for member in members:
        if member.connection is not None:
            member.connection.close()


def _prepare(node: Node, partition_count: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(TOPIC, partition_count, 1)])[TOPIC].result(60)


def measure(system: str, directory: Path, *, rounds: int, is_large: bool) -> tuple[list[Leaving], float | None]:
    shutil.rmtree(directory, ignore_errors=True)
    node = SYSTEMS[system](directory / "small", overrides={"group.consumer.max.size": "5000"})
    with node:
        _prepare(node, SMALL_PARTITIONS)
        leavings = [asyncio.run(one_leaves(node, f"small-{number}")) for number in range(rounds)]
    seconds = None
    if is_large:
        node = SYSTEMS[system](directory / "large", overrides={"group.consumer.max.size": "5000"})
        with node:
            _prepare(node, LARGE_PARTITIONS)
            seconds = asyncio.run(all_join(node, "large", LARGE_MEMBERS, LARGE_PARTITIONS))
    shutil.rmtree(directory, ignore_errors=True)
    return leavings, seconds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rebalance", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("build/bench-rebalance"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", default="millbeck,apache-kafka")
    parser.add_argument("--no-large", action="store_true", help="leave the thousand members out")
    options = parser.parse_args(arguments)
    print("\n".join(machine.facts("apache-kafka" in options.systems)), flush=True)
    medians: dict[str, float] = {}
    is_good = True
    for system in options.systems.split(","):
        leavings, joined_s = measure(system, options.directory, rounds=options.rounds, is_large=not options.no_large)
        medians[system] = statistics.median(one.seconds for one in leavings)
        given_up = sum(one.given_up_count for one in leavings)
        times = ", ".join(f"{one.seconds:.2f}" for one in leavings)
        print(
            f"{system}: one of {SMALL_MEMBERS} leaves {SMALL_PARTITIONS} partitions: median {medians[system]:.2f} s"
            f" ({times}); {given_up} partitions given up by others",
            flush=True,
        )
        if joined_s is not None:
            print(
                f"{system}: {LARGE_MEMBERS} members at once, {LARGE_PARTITIONS} partitions: {joined_s:.2f} s",
                flush=True,
            )
        if system == "millbeck":
            is_good = is_good and given_up == 0 and (joined_s is None or joined_s <= SETTLE_GOAL_S)
    if len(medians) == 2:
        ratio = medians["apache-kafka"] / medians["millbeck"]
        print(f"Kafka's time by ours: {ratio:.2f} (goal: at least {RATIO_GOAL})")
        is_good = is_good and ratio >= RATIO_GOAL
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
