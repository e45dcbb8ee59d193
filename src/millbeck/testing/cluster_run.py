"""A seeded run of a whole cluster: clients work, nodes die, hang, lose power and each other, and nothing may be lost.

What breaks, when and how often comes from the seed alone. One node at a time is broken and healed again, so that with
three replicas, of which two must have a record before it is acknowledged, everything acknowledged has to survive.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.testing.sim.checkers import check_all
from millbeck.testing.sim.history import Anomaly, History
from millbeck.testing.sim.node import stream
from millbeck.testing.sim.options import WorldOptions
from millbeck.testing.sim_cluster import Member, SimCluster
from millbeck.testing.workloads.leaders import SeveralNodes
from millbeck.testing.workloads.produce_and_read import TOPIC, work

REPLICAS: Final = 3
LIMIT_SECONDS: Final = 3600.0
FAULTS: Final = (
    "crash",
    "crash of a leader",
    "crash of the controller",
    "pause",
    "partition",
    "partition of a leader",
    "one-way partition",
    "reset",
    "slow disk",
    "clean restart",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Everything a seed decides, printed when a run fails."""

    seed: int
    is_combined: bool = True
    survives_power_loss: bool = False
    partition_count: int = 2
    producer_count: int = 2
    batch_count: int = 30
    faults: tuple[str, ...] = ()
    fault_count: int = 0
    topic_options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def drawn(cls, seed: int) -> ClusterPlan:
        dice = stream(seed, "cluster plan")
        survives_power_loss = dice.random() < 0.5
        kinds = [*FAULTS, "power loss"] if survives_power_loss else list(FAULTS)
        options = {"min.insync.replicas": "2", "internal.segment.bytes": str(dice.choice([600, 4096, 1 << 20]))}
        if survives_power_loss:
            options["flush.messages"] = "1"
        return cls(
            seed=seed,
            is_combined=dice.random() < 0.5,
            survives_power_loss=survives_power_loss,
            partition_count=dice.randint(1, 4),
            producer_count=dice.randint(1, 4),
            batch_count=dice.choice([10, 30, 60]),
            faults=tuple(kind for kind in kinds if dice.random() < 0.6) or ("crash",),
            fault_count=dice.randint(2, 6),
            topic_options=options,
        )


class ClusterRun:
    def __init__(self, plan: ClusterPlan, options: WorldOptions | None = None) -> None:
        self.plan = plan
        self.cluster = SimCluster(plan.seed, is_combined=plan.is_combined, options=options)
        self.world = self.cluster.world
        self.history = History()

    def run(self) -> list[Anomaly]:
        """The anomalies of the whole run."""
        self.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        assert not self.cluster.unexpected_errors(), f"unexpected errors: {self.cluster.unexpected_errors()}"
        return check_all(self.history, acknowledged_count_min=self.plan.batch_count)

    async def _scenario(self, environment: Environment) -> None:
        plan = self.plan
        self.cluster.start_all()
        clients = SeveralNodes(environment, self.cluster.addresses, stream(plan.seed, "addresses"))
        await clients.create_topic(plan.partition_count, plan.topic_options, replication_factor=REPLICAS)
        await work(
            clients,
            self.history,
            stream(plan.seed, "clients"),
            lambda: self._break_things(stream(plan.seed, "faults")),
            producer_count=plan.producer_count,
            partition_count=plan.partition_count,
            batch_count=plan.batch_count,
        )

    async def _break_things(self, dice: random.Random) -> None:
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(dice.random() * 5)
            await self._break(dice.choice(self.plan.faults), dice.choice(self.cluster.members), dice)
            await asyncio.sleep(dice.random() * 6)
            self._heal()

    async def _break(self, kind: str, member: Member, dice: random.Random) -> None:
        cluster, network = self.cluster, self.world.network
        if kind.endswith("of a leader"):
            member = cluster.leader_of(TOPIC, dice.randrange(self.plan.partition_count)) or member
        machine = cluster.machine(member)
        others = [each.name for each in cluster.members if each is not member]
        match kind:
            case "crash" | "crash of a leader":
                machine.crash()
            case "crash of the controller":
                cluster.machine(cluster.active_controller() or member).crash()
            case "power loss":
                machine.power_loss()
            case "pause":
                machine.pause(dice.random() * 10)
            case "partition" | "partition of a leader":
                network.partition([member.name], others)
            case "one-way partition":
                network.partition([member.name], others, both_ways=False)
            case "reset":
                network.reset(member.name, dice.choice(others))
            case "slow disk":
                machine.disk.faults.slowness = dice.choice([10.0, 100.0])
            case "clean restart":
                await cluster.stop(member)

    def _heal(self) -> None:
        self.world.network.heal()
        for member in self.cluster.members:
            self.cluster.machine(member).disk.faults.slowness = 1.0
        self.cluster.start_all()
