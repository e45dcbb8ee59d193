"""A seeded run of one whole node: clients work, the node is killed and loses power; no acknowledged record is lost.

The seed alone determines the faults and their times. Two guarantees are tested: without flushing, acknowledged records
survive a crash of the process; with ``flush.messages=1`` they survive a power loss as well.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from dataclasses import dataclass, field
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.checkers import check_all
from millbeck.simulation.environment.node import stream
from millbeck.simulation.environment.threads import SimThreads
from millbeck.simulation.histories.history import Anomaly, History
from millbeck.simulation.workloads.produce_and_read import NodeAccess, work

HOST: Final = "n1"
PORT: Final = 9092
LIMIT_SECONDS: Final = 1200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    survives_power_loss: bool
    partition_count: int
    producer_count: int
    batch_count: int
    faults: tuple[str, ...]
    fault_count: int
    topic_options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def drawn(cls, seed: int) -> Plan:
        dice = stream(seed, "plan")
        survives_power_loss = dice.random() < 0.5
        kinds = ["crash", "pause", "reset", "full disk", "slow disk", "cold reads", "clean restart"]
        if survives_power_loss:
            kinds.append("power loss")
        options = {"internal.segment.bytes": str(dice.choice([600, 4096, 1 << 20])), "segment.ms": "600000"}
        if survives_power_loss:
            options["flush.messages"] = "1"
        if dice.random() < 0.3:
            options["index.interval.bytes"] = "1"
        return cls(
            seed=seed,
            survives_power_loss=survives_power_loss,
            partition_count=dice.randint(1, 3),
            producer_count=dice.randint(1, 4),
            batch_count=dice.choice([10, 30, 60]),
            faults=tuple(kind for kind in kinds if dice.random() < 0.6) or ("crash",),
            fault_count=dice.randint(2, 8),
            topic_options=options,
        )


class NodeRun:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.machine = self.world.node(HOST)
        self.history = History()
        self.unexpected_errors = 0
        self.node: Node | None = None
        self.syncs_on_loop: list[str] = []
        self._stop: asyncio.Event | None = None

    def settings(self) -> dict[str, str]:
        """The settings of the node."""
        return {
            "log.dirs": "/data",
            "listeners": f"PLAINTEXT://:{PORT}",
            "offsets.topic.replication.factor": "1",
            "log.flush.offset.checkpoint.interval.ms": "1000",
            "replica.high.watermark.checkpoint.interval.ms": "700",
            "log.retention.check.interval.ms": "3000",
            "metrics.http.port": "0",
        }

    async def _main(self, environment: Environment) -> None:
        config = NodeConfig(self.settings())
        assert isinstance(environment.threads, SimThreads)
        # A start may wait for the disk.
        environment.threads.meter.on_held = None
        format_directories(environment, config, ignore_formatted=True)
        self._stop = asyncio.Event()
        node = self.node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        environment.threads.meter.on_held = self._held
        await self._stop.wait()
        await node.stop()

    def _held(self) -> None:
        self.syncs_on_loop.append("".join(traceback.format_stack(limit=12)))

    def start(self) -> None:
        # The start may fail because the disk is full or failing; the run continues and tries again.
        self.machine.start(self._main, may_fail=True)

    def run(self) -> list[Anomaly]:
        """Run everything and return the anomalies. A node that blocks its event loop on the disk fails the run."""
        try:
            self.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        finally:
            # Whoever still waits in it would complain when it is forgotten.
            self.world.close()
        if self.syncs_on_loop:
            raise AssertionError(f"a sync on the loop:\n{self.syncs_on_loop[0]}")
        return check_all(self.history, acknowledged_count_min=self.plan.batch_count)

    async def _scenario(self, environment: Environment) -> None:
        plan = self.plan
        self.start()
        cluster = NodeAccess(environment, HOST, PORT)
        await cluster.create_topic(plan.partition_count, plan.topic_options)
        await work(
            cluster,
            self.history,
            stream(plan.seed, "clients"),
            lambda: self._break_things(stream(plan.seed, "faults")),
            producer_count=plan.producer_count,
            partition_count=plan.partition_count,
            batch_count=plan.batch_count,
        )

    async def _break_things(self, dice: random.Random) -> None:
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(dice.random() * 2)
            await self._break(dice.choice(self.plan.faults), dice)
        self._heal()

    async def _break(self, kind: str, dice: random.Random) -> None:
        machine, faults = self.machine, self.machine.disk.faults
        match kind:
            case "crash":
                machine.crash()
            case "power loss":
                machine.power_loss()
            case "pause":
                machine.pause(dice.random() * 15)
            case "reset":
                self.world.network.reset("harness", HOST)
            case "full disk":
                faults.capacity_bytes = machine.disk.used_bytes + dice.randrange(4000)
            case "slow disk":
                faults.slowness = dice.choice([10.0, 100.0])
            case "cold reads":
                faults.cold_read = dice.random()
            case "clean restart":
                await self._restart_cleanly()
        await asyncio.sleep(dice.random())
        self._heal()

    async def _restart_cleanly(self) -> None:
        if self._stop is not None and self.machine.is_running:
            self._stop.set()
            for _ in range(1000):
                if not self.machine.is_running:
                    break
                await asyncio.sleep(0.05)

    def _heal(self) -> None:
        faults = self.machine.disk.faults
        faults.capacity_bytes = 1 << 40
        faults.slowness = 1.0
        faults.cold_read = 0.0
        if not self.machine.is_running:
            self.start()
