"""A seeded run of a whole cluster: clients work under faults drawn from the seed; no acknowledged record may be lost.

A run has two phases. In the first one a schedule of overlapping faults is injected (`faults`), while an observer checks
every invariant after every iteration of the event loop (`observer`). Then all faults are repaired, and the cluster must
recover: every partition has a leader and all replicas in sync, every write is acknowledged, and every node has the same
metadata. Writes must also continue when one node is stopped again. In the end all records are read, and the checkers
examine the clients' histories.

The `ClusterPlan` has everything that is drawn from the seed: sizes, settings, the kinds of faults (each seed omits
some), and the schedule. ``min.insync.replicas`` is 2 of 3 replicas; the fault budget limits losses to what that
guarantees.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.kernel.environment import Environment
from millbeck.simulation.checkers import check_all
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.environment.options import NetworkOptions, WorldOptions
from millbeck.simulation.faults import schedule as kinds
from millbeck.simulation.faults.budget import FaultBudget
from millbeck.simulation.faults.injector import FaultInjector
from millbeck.simulation.faults.schedule import Fault, draw_schedule
from millbeck.simulation.histories.history import Anomaly, History
from millbeck.simulation.observer.cluster_observer import ClusterObserver, Counts
from millbeck.simulation.observer.findings import InvariantBroken
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.produce_and_read import TOPIC, HistoryProducer, HistoryReader
from millbeck.simulation.workloads.settings import make_settings

REPLICAS: Final = 3
LIMIT_SECONDS: Final = 600.0
RECOVERY_SECONDS: Final = 90.0
ABSENCE_SECONDS: Final = 40.0
POLL_SECONDS: Final = 0.1
LIVENESS: Final = "liveness"
UNEXPECTED: Final = "unexpected error"
WITHOUT_FLUSH: Final = tuple(kind for kind in kinds.KINDS if kind not in (kinds.POWER_LOSS_OF_ALL, kinds.ROTTING_DISK))
"""Kinds of faults that are omitted without syncs: everything could be lost at once, and unsynced data is not checked
for corruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    is_combined: bool = True
    voters_in_log: bool = False
    flushes: bool = False
    min_insync_replicas: int = 2
    partition_count: int = 2
    producer_count: int = 2
    batch_count: int = 20
    think_s: float = 0.5
    schedule: tuple[Fault, ...] = ()
    absent: float = -1.0
    """The node that is killed in the end, as a number below 1; negative for none."""
    topic_options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    omitted: frozenset[str] = frozenset()
    """Disabled checkers."""

    @classmethod
    def drawn(cls, seed: int) -> ClusterPlan:
        dice = stream(seed, "cluster plan")
        flushes = dice.random() < 0.5
        is_combined = dice.random() < 0.2
        every = kinds.KINDS if flushes else WITHOUT_FLUSH
        chosen = tuple(kind for kind in every if dice.random() < 0.4) or (kinds.CRASH_LEADER,)
        session_ms = dice.choice((1000, 1500, 3000))
        network = NetworkOptions(
            latency_s=dice.choice((0.0002, 0.002)),
            jitter_s=dice.choice((0.0, 0.001, 0.01)),
            spike=dice.choice((0.0, 0.001, 0.005)),
            torn_delivery=dice.choice((0.0, 0.05, 0.3)),
            reset=dice.choice((0.0, 0.0, 0.0002)),
        )
        return cls(
            seed=seed,
            is_combined=is_combined,
            voters_in_log=dice.random() < 0.5,
            flushes=flushes,
            partition_count=dice.randint(1, 3),
            producer_count=dice.randint(2, 3),
            think_s=dice.choice((0.3, 0.6)),
            schedule=draw_schedule(dice, chosen, count=dice.randint(5, 14), over_s=dice.choice((10.0, 20.0))),
            absent=dice.random() if dice.random() < 0.4 else -1.0,
            topic_options=_topic_options(dice, flushes, chosen),
            settings={
                "broker.session.timeout.ms": str(session_ms),
                "broker.heartbeat.interval.ms": str(session_ms // 5),
                "replica.lag.time.max.ms": str(dice.choice((1000, 3000))),
                "metadata.log.max.record.bytes.between.snapshots": str(dice.choice((1500, 4000, 1 << 20))),
                "leader.imbalance.check.interval.seconds": str(dice.choice((3, 300))),
                "num.replica.fetchers": str(dice.choice((1, 2))),
                "log.scrub.interval.ms": "4000",
                "metadata.max.retention.bytes": str(dice.choice((0, 6000, 100 << 20))),
            },
            network=network,
        )


def _topic_options(dice: random.Random, flushes: bool, chosen: tuple[str, ...]) -> dict[str, str]:
    segment_bytes = dice.choice([600, 4096, 1 << 20])
    if kinds.ROTTING_DISK in chosen:
        # Who looks for rot rests after every segment.
        segment_bytes = 1 << 20
    options = {
        "min.insync.replicas": "2",
        "internal.segment.bytes": str(segment_bytes),
        # Clocks jump, and jumps add up: a broker whose clock is behind would refuse what producers of today send.
        "message.timestamp.after.max.ms": str((1 << 63) - 1),
    }
    return options | {"flush.messages": "1"} if flushes else options


class ClusterRun:
    """``counts`` and ``done`` (the number of faults by kind) are set by `run`."""

    def __init__(self, plan: ClusterPlan, options: WorldOptions | None = None) -> None:
        self.plan = plan
        self.cluster = SimCluster(
            plan.seed,
            is_combined=plan.is_combined,
            voters_in_log=plan.voters_in_log,
            options=options or WorldOptions(network=plan.network),
            settings=plan.settings,
        )
        self.world = self.cluster.world
        self.history = History()
        self.observer = ClusterObserver(
            self.cluster,
            min_insync_replicas=plan.min_insync_replicas,
            omitted=plan.omitted,
            keeps_sessions=all(fault.kind in kinds.SPARES_SESSIONS for fault in plan.schedule),
        )
        self.faults = FaultInjector(
            self.cluster,
            self.observer,
            FaultBudget(self.observer),
            topic=TOPIC,
            partition_count=plan.partition_count,
            flushes=plan.flushes,
        )
        self.counts = Counts()
        self._slow: Anomaly | None = None

    def run(self) -> list[Anomaly]:
        """Run everything and return the anomalies; the world is closed afterwards."""
        try:
            anomalies = self._run()
        finally:
            self.counts = self.observer.counts(self.history.acknowledged_count())
            self.world.close()
        return [anomaly for anomaly in anomalies if anomaly.kind not in self.plan.omitted]

    def _run(self) -> list[Anomaly]:
        try:
            self.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        except InvariantBroken as broken:
            return [broken.violation.anomaly()]
        except Exception as error:
            if self.observer.findings.first is not None:
                return [self.observer.findings.first.anomaly()]
            return [Anomaly(UNEXPECTED, _cause_of(error))]
        if self._slow is not None:
            return [self._slow]
        return check_all(self.history, acknowledged_count_min=self.plan.batch_count)

    async def _scenario(self, environment: Environment) -> None:
        plan, cluster = self.plan, self.cluster
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, stream(plan.seed, "addresses"))
        clients.think_s = plan.think_s
        clients.on_acknowledged = lambda partition, offset: self.observer.data.acknowledged(TOPIC, partition, offset)
        clients.on_read = lambda partition, offset: self.observer.data.consumed(TOPIC, partition, offset)
        try:
            async with asyncio.timeout(RECOVERY_SECONDS):
                await clients.create_topic(plan.partition_count, plan.topic_options, replication_factor=REPLICAS)
        except TimeoutError:
            self._slow = Anomaly(LIVENESS, "a cluster without faults cannot create a topic")
            return
        await self._work(clients)

    async def _work(self, clients: MultiNodeCluster) -> None:
        plan = self.plan
        dice = stream(plan.seed, "clients")
        producers = [
            HistoryProducer(
                clients, self.history, f"p{number}", number % plan.partition_count, random.Random(dice.random())
            )
            for number in range(max(plan.producer_count, plan.partition_count))
        ]
        readers = [HistoryReader(clients, self.history, f"c{partition}", partition) for partition in self._partitions()]
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(producer.run(plan.batch_count)) for producer in producers]
            following = [tasks.create_task(reader.run()) for reader in readers]
            setting = tasks.create_task(
                make_settings(clients, random.Random(dice.random()), self.observer.metadata.setting_confirmed)
            )
            await self.faults.run(plan.schedule)
            supervision = tasks.create_task(self.faults.keep_running())
            clients.is_calm = True
            await self._recover([*working, setting])
            supervision.cancel()
            if self._slow is None and plan.absent >= 0:
                await self._go_on_without_one(clients)
            clients.is_over = True
            if self._slow is not None:
                for task in (*working, *following, setting):
                    task.cancel()
        if self._slow is None:
            await self._read_all(clients)

    async def _read_all(self, clients: MultiNodeCluster) -> None:
        for partition in self._partitions():
            reader = HistoryReader(clients, self.history, "final", partition)
            end_offset = self.observer.data.of(TOPIC, partition).lineage.committed_end
            try:
                async with asyncio.timeout(RECOVERY_SECONDS):
                    self.history.record_final_read(str(partition), await reader.read_all(end_offset=end_offset))
            except TimeoutError:
                detail = f"{TOPIC}-{partition} cannot be read beyond {reader.position}: {self._state()}"
                self._slow = Anomaly(LIVENESS, detail)
                return

    def _partitions(self) -> range:
        return range(self.plan.partition_count)

    # After the faults.

    async def _recover(self, work: list[asyncio.Task[Any]]) -> None:
        """Wait until all clients have finished and all replicas are in sync."""
        if not await self._in_time(RECOVERY_SECONDS, lambda: all(task.done() for task in work)):
            detail = f"writes are not acknowledged {RECOVERY_SECONDS} s after all faults were repaired: {self._state()}"
            self._slow = Anomaly(LIVENESS, detail)
            return
        if not await self._in_time(RECOVERY_SECONDS, self._is_whole):
            self._slow = Anomaly(
                LIVENESS, f"the cluster has not recovered {RECOVERY_SECONDS} s after that: {self._state()}"
            )

    async def _go_on_without_one(self, clients: MultiNodeCluster) -> None:
        """Kill one node: the others must take over and accept writes. Then restart it: it must recover."""
        plan, cluster = self.plan, self.cluster
        member = cluster.members[int(plan.absent * len(cluster.members))]
        self.observer.ended_unclean(member)
        cluster.machine(member).crash()
        late = [
            HistoryProducer(clients, self.history, f"late{partition}", partition, random.Random(partition))
            for partition in self._partitions()
        ]
        work = [asyncio.create_task(producer.run(3)) for producer in late]
        if not await self._in_time(ABSENCE_SECONDS, lambda: all(task.done() for task in work)):
            self._slow = Anomaly(LIVENESS, f"nothing is acknowledged without {member.name}: {self._state()}")
            for task in work:
                task.cancel()
            return
        await asyncio.gather(*work)
        cluster.start_all()
        if not await self._in_time(RECOVERY_SECONDS, self._is_whole):
            self._slow = Anomaly(LIVENESS, f"{member.name} does not recover: {self._state()}")

    async def _in_time(self, seconds: float, is_done: Callable[[], bool]) -> bool:
        deadline_s = self.world.loop.time() + seconds
        while not is_done():
            if self.world.loop.time() > deadline_s:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    def _is_whole(self) -> bool:
        """Whether each partition has a leader and all replicas with the same end, and all nodes the same metadata."""
        image = self.observer.metadata.newest
        running = self.cluster.running()
        if image is None or len(running) < len(self.cluster.members):
            return False
        for partition in self._partitions():
            found = image.topics.partition(TOPIC, partition)
            if found is None or not found.has_leader or len(found.isr) < REPLICAS:
                return False
            facts = self.observer.data.of(TOPIC, partition)
            if any(shadow.end_offset != facts.lineage.committed_end for shadow in facts.shadows.values()):
                return False
        return all(node.broker.quorum.image.offset == image.offset for node in running)

    def _state(self) -> str:
        """The state of the cluster, for the report of a failed recovery."""
        image = self.observer.metadata.newest
        parts = [] if image is None else [str(image.topics.partition(TOPIC, each)) for each in self._partitions()]
        missing = [each.name for each in self.cluster.members if not self.cluster.machine(each).is_running]
        controller: SimNode | None = self.cluster.active_controller()
        ends = {
            facts.name: {node: shadow.end_offset for node, shadow in facts.shadows.items()}
            for facts in self.observer.data.partitions.values()
        }
        return f"controller {controller and controller.name}, not running {missing}, ends {ends}, {'; '.join(parts)}"


def _cause_of(error: BaseException) -> str:
    """The root cause of an exception, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    causes = [repr(error)]
    while error.__cause__ is not None:
        error = error.__cause__
        causes.append(repr(error))
    return " because of ".join(causes)
