"""A simulation of the guarantees of ``acks`` and ``min.insync.replicas``: ``make guarantees``.

Each row of the table is a topic of three replicas, a setting of the producers, and a kind of failure. A broker that
fails loses its disk and comes back with an empty one; before that, in half of the runs, followers are cut off for a
while, so that they leave the in-sync replicas. Rows without a guarantee must show a loss for some seed, otherwise the
run proves nothing; the other rows must never show one.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.simulation.checkers.log_contents import lost_acknowledged
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import History
from millbeck.simulation.runs.progress import print_line
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.produce_and_read import TOPIC, HistoryReader
from millbeck.simulation.workloads.unrepeated import send_each_once

RESETS: Final = "connections reset, no broker fails"
FOLLOWER: Final = "a follower"
LEADER: Final = "the leader"
ONE: Final = "one broker"
TWO: Final = "two brokers"
ALL: Final = "all three brokers"
LIMIT_SECONDS: Final = 300.0
PRODUCERS: Final = 3
SETTLE_SECONDS: Final = 2.0
SETTINGS: Final = {
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "1000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DurabilityCase:
    acks: int
    min_insync_replicas: int
    failure: str
    may_lose: bool

    def __str__(self) -> str:
        acks = "all" if self.acks < 0 else str(self.acks)
        minimum = str(self.min_insync_replicas) if self.acks < 0 else "-"
        return f"acks={acks} min.insync.replicas={minimum}, {self.failure}"


ROWS: Final = (
    DurabilityCase(acks=0, min_insync_replicas=1, failure=RESETS, may_lose=True),
    DurabilityCase(acks=0, min_insync_replicas=1, failure=LEADER, may_lose=True),
    DurabilityCase(acks=1, min_insync_replicas=1, failure=FOLLOWER, may_lose=False),
    DurabilityCase(acks=1, min_insync_replicas=1, failure=LEADER, may_lose=True),
    DurabilityCase(acks=-1, min_insync_replicas=1, failure=FOLLOWER, may_lose=False),
    DurabilityCase(acks=-1, min_insync_replicas=1, failure=LEADER, may_lose=True),
    DurabilityCase(acks=-1, min_insync_replicas=2, failure=ONE, may_lose=False),
    DurabilityCase(acks=-1, min_insync_replicas=2, failure=TWO, may_lose=True),
    DurabilityCase(acks=-1, min_insync_replicas=3, failure=ONE, may_lose=False),
    DurabilityCase(acks=-1, min_insync_replicas=3, failure=TWO, may_lose=False),
    DurabilityCase(acks=-1, min_insync_replicas=3, failure=ALL, may_lose=True),
)


class GuaranteeRun:
    """The run of one seed for one row of the table; `run` sets ``lost`` and ``acknowledged``."""

    def __init__(self, row: DurabilityCase, seed: int) -> None:
        self.row = row
        self.cluster = SimCluster(seed, is_combined=False, settings=SETTINGS)
        self.history = History()
        self.lost = 0
        self._dice = stream(seed, f"guarantees {row}")

    def run(self) -> int:
        """Run the seed; returns the number of lost acknowledged records."""
        with self.cluster.world as world:
            world.run(self._scenario, limit_s=LIMIT_SECONDS)
        assert self.history.acknowledged_count() > 0, "nothing was acknowledged: the run proves nothing"
        self.lost = len(lost_acknowledged(self.history))
        return self.lost

    async def _scenario(self, environment: Environment) -> None:
        self.cluster.start_all()
        clients = MultiNodeCluster(environment, self.cluster.addresses, self._dice)
        options = {"min.insync.replicas": str(self.row.min_insync_replicas)}
        await clients.create_topic(1, options, replication_factor=3)
        while not self._is_whole():
            await asyncio.sleep(0.05)
        async with asyncio.TaskGroup() as tasks:
            for number in range(PRODUCERS):
                dice = random.Random(self._dice.random())
                name = f"p{number}"
                tasks.create_task(send_each_once(clients, self.history, name, dice, acks=self.row.acks))
            await self._inject_faults()
            clients.is_calm = True
        while not self._is_whole():
            self.cluster.start_all()
            await asyncio.sleep(0.1)
        # Records acknowledged by the leader alone are not copied to the others yet.
        await asyncio.sleep(SETTLE_SECONDS)
        self.history.record_final_read("0", await HistoryReader(clients, self.history, "final", 0).read_all())

    def _is_whole(self) -> bool:
        nodes = self.cluster.running()
        if len(nodes) < len(self.cluster.members):
            return False
        image = max((node.broker.image for node in nodes), key=lambda each: each.offset)
        found = image.topics.partition(TOPIC, 0)
        return found is not None and found.has_leader and len(found.isr) == 3

    async def _inject_faults(self) -> None:
        dice, network = self._dice, self.cluster.world.network
        await asyncio.sleep(0.5 + dice.random())
        leader = self.cluster.leader_of(TOPIC, 0)
        assert leader is not None
        followers = [member for member in self.cluster.brokers if member is not leader]
        dice.shuffle(followers)
        is_isolated = dice.random() < 0.5
        if is_isolated:
            cut_off = followers[: dice.randint(1, 2)]
            controllers = [member.name for member in self.cluster.controllers]
            others = [leader.name, *controllers, *(each.name for each in followers if each not in cut_off)]
            network.partition([each.name for each in cut_off], others)
            await asyncio.sleep(2 + dice.random())
        failing = self._failing(leader, followers, is_isolated=is_isolated)
        for _ in range(5 if self.row.failure == RESETS else 0):
            network.reset("harness", leader.name)
            await asyncio.sleep(dice.random() * 0.3)
        for member in failing:
            self.cluster.machine(member).crash()
            self.cluster.machine(member).disk.replace()
        await asyncio.sleep(dice.random() * 4)
        network.heal()
        await asyncio.sleep(SETTLE_SECONDS)
        self.cluster.start_all()
        await asyncio.sleep(SETTLE_SECONDS)

    def _failing(self, leader: SimNode, followers: list[SimNode], *, is_isolated: bool) -> list[SimNode]:
        """The failing nodes. Followers that were cut off come first; if two fail, they are the two in-sync ones in half
        of the runs."""
        everybody = [leader, *followers]
        match self.row.failure:
            case failure if failure == FOLLOWER:
                return [self._dice.choice(followers)]
            case failure if failure == LEADER:
                return [leader]
            case failure if failure == ONE:
                return [self._dice.choice(everybody)]
            case failure if failure == TWO:
                return [leader, followers[-1]] if is_isolated else self._dice.sample(everybody, 2)
            case failure if failure == ALL:
                return everybody
            case _:
                return []


def _run_one(task: tuple[int, int]) -> tuple[int, int, int]:
    logging.disable(logging.CRITICAL)
    index, seed = task
    run = GuaranteeRun(ROWS[index], seed)
    return index, run.run(), run.history.acknowledged_count()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="millbeck.simulation.runs.guarantees", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="of each row")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    tasks = [(index, seed) for seed in range(chosen.seeds) for index in range(len(ROWS))]
    losses, acknowledged = [0] * len(ROWS), [0] * len(ROWS)
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for index, lost, count in pool.imap_unordered(_run_one, tasks, chunksize=4):
            losses[index] += lost > 0
            acknowledged[index] += count
    print_line(table(losses, acknowledged, chosen.seeds))
    return 0 if all(is_kept(row, count) for row, count in zip(ROWS, losses, strict=True)) else 1


def is_kept(row: DurabilityCase, losing_seeds: int) -> bool:
    """Whether every row that allows loss has shown a loss, and no other row has."""
    return (losing_seeds > 0) == row.may_lose


def table(losses: Sequence[int], acknowledged: Sequence[int], seeds: int) -> str:
    lines = [
        "| acks | min.insync.replicas | what fails | promise | seeds with a loss | acknowledged |",
        "|---|---|---|---|---|---|",
    ]
    for row, count, records in zip(ROWS, losses, acknowledged, strict=True):
        acks, minimum = ("all", str(row.min_insync_replicas)) if row.acks < 0 else (str(row.acks), "-")
        promise = "may lose" if row.may_lose else "never loses"
        verdict = f"{count} of {seeds}" + ("" if is_kept(row, count) else " WRONG")
        lines.append(f"| {acks} | {minimum} | {row.failure} | {promise} | {verdict} | {records} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
