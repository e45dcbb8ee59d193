"""A seeded run of one whole node with a compacted topic, under the faults of `node_run` and a few specific to the
cleaner.

Segments are small and the cleaner runs often, so that a run has many compactions: complete ones, and ones interrupted
by a worker that dies, by files that cannot be written, or by a crash of the node between any two steps. The memory for
keys is often too small for all of them.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.simulation.checkers import check_table
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.histories.table_history import TableHistory
from millbeck.simulation.runs.node_run import HOST, PORT, NodeRun, Plan
from millbeck.simulation.workloads.compacted_table import TableProducer, TableReader
from millbeck.simulation.workloads.produce_and_read import TOPIC, NodeAccess

DAY_MS: Final = 86_400_000
LAST_COMPACTION_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan(Plan):
    key_count: int
    delete_retention_ms: int
    worker_death: float
    thread_delay_s: float
    """The duration of syncs; long ones lengthen the time in which a swap is incomplete."""
    broker_options: tuple[tuple[str, str], ...]
    limit_s: float = 400.0
    """The limit in virtual seconds, after which a stuck run is detected."""

    @classmethod
    def drawn(cls, seed: int) -> TablePlan:
        plan = Plan.drawn(seed)
        dice = stream(seed, "table")
        delete_retention_ms = dice.choice([0, 3000, DAY_MS])
        options = {
            **plan.topic_options,
            "internal.segment.bytes": str(dice.choice([300, 600, 2000])),
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": str(dice.choice([0.01, 0.3, 0.5])),
            "delete.retention.ms": str(delete_retention_ms),
            "min.compaction.lag.ms": str(dice.choice([0, 0, 1500])),
            "file.delete.delay.ms": str(dice.choice([0, 500, 60_000])),
        }
        if dice.random() < 0.2:
            options["max.compaction.lag.ms"] = "2000"
        return cls(
            seed=seed,
            survives_power_loss=plan.survives_power_loss,
            partition_count=dice.randint(1, 2),
            producer_count=plan.producer_count,
            batch_count=dice.choice([60, 120]),
            faults=(*plan.faults, *(kind for kind in ("unwritable copies", "unsynced copies") if dice.random() < 0.3)),
            fault_count=plan.fault_count,
            topic_options=options,
            key_count=dice.choice([2, 5, 20]),
            delete_retention_ms=delete_retention_ms,
            worker_death=dice.choice([0.0, 0.3]),
            thread_delay_s=dice.choice([0.002, 0.1]),
            broker_options=(
                ("log.cleaner.backoff.ms", "150"),
                ("log.cleaner.threads", str(dice.randint(1, 2))),
                # Of the 64 MiB of each: from next to nothing to all.
                ("log.cleaner.io.buffer.load.factor", dice.choice(["0.000005", "0.00002", "0.9"])),
                ("log.cleaner.io.max.bytes.per.second", dice.choice(["20000", "1e300"])),
            ),
        )


class CompactionRun(NodeRun):
    def __init__(self, plan: TablePlan) -> None:
        super().__init__(plan)
        self.table_plan = plan
        self.history: TableHistory = TableHistory(plan.delete_retention_ms)
        self.world.options.worker_death = plan.worker_death
        self.world.options.thread_delay_s = plan.thread_delay_s

    def settings(self) -> dict[str, str]:
        return {**super().settings(), **dict(self.table_plan.broker_options)}

    def run(self) -> list[Anomaly]:
        try:
            self.world.run(self._scenario, limit_s=self.table_plan.limit_s)
        finally:
            self.world.close()
        return check_table(self.history, acknowledged_count_min=self.plan.batch_count)

    async def _scenario(self, environment: Environment) -> None:
        plan = self.table_plan
        self.start()
        cluster = NodeAccess(environment, HOST, PORT)
        await cluster.create_topic(plan.partition_count, plan.topic_options)
        dice = stream(plan.seed, "clients")
        partitions = range(plan.partition_count)
        producers = [
            TableProducer(
                cluster,
                self.history,
                f"p{number}",
                number % plan.partition_count,
                random.Random(dice.random()),
                key_count=plan.key_count,
            )
            for number in range(plan.producer_count)
        ]
        readers = [TableReader(cluster, self.history, f"c{each}", each) for each in partitions]
        scanners = [TableReader(cluster, self.history, f"s{each}", each) for each in partitions]
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(producer.run(plan.batch_count)) for producer in producers]
            following = [tasks.create_task(reader.run()) for reader in readers]
            following += [
                tasks.create_task(scanner.scan_again_and_again(random.Random(dice.random()))) for scanner in scanners
            ]
            await self._break_things(stream(plan.seed, "faults"))
            cluster.is_calm = True
            await asyncio.gather(*working)
            await asyncio.sleep(LAST_COMPACTION_SECONDS)
            cluster.is_over = True
            await asyncio.gather(*following)
        for partition in partitions:
            reader = TableReader(cluster, self.history, "final", partition)
            self.history.record_final_read(str(partition), await reader.read_all())
        self._look_inside()

    async def _break(self, kind: str, dice: random.Random) -> None:
        if kind == "unwritable copies":
            self.machine.disk.fail_next(DiskCall.WRITE, path_part=".cleaned")
        elif kind == "unsynced copies":
            self.machine.disk.fail_next(DiskCall.SYNC, path_part=".cleaned")
        await super()._break(kind, dice)

    def _look_inside(self) -> None:
        """Check the parts that clients cannot see: the start of active segments, and that logs were compacted."""
        assert self.node is not None
        topic = self.node.broker.topics.by_name[TOPIC]
        for index, partition in topic.partitions.items():
            self.history.active_from[str(index)] = partition.log.active.base_offset
        self.history.compaction_count = self.node.broker.cleaner.statistics.run_count
        self.unexpected_errors = self.node.broker.unexpected_errors
