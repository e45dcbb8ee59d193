"""A seeded run of a cluster with transactions: workers copy numbers while nodes die, and each number must be in the
output once.

The first phase injects faults into one node at a time (crash, power loss, pause, network partition), while workers
consume, transform and produce (`workloads.exactly_once`). In the second phase all faults are repaired; the workers must
finish, no transaction may hang, and then every copy is read with read_committed. The run checks:

- T1, T2: every number is read exactly once in committed reads;
- T3: the last stable offset is never above the high watermark, nor above the start of an open transaction (checked
  continuously);
- T4, T5, T7, T8: the transactions in the logs (`transaction_log`), and that markers follow a committed decision.

Some workers only prepare their transactions, and an external system decides them (`workloads.two_phase`): a prepared
transaction outlives its producer and its coordinator, and ends as decided there. Their numbers are counted with the
others.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any, Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.shard import TransactionShard
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, TopicAlreadyExists
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import TRANSACTION_STATE_TOPIC
from millbeck.metadata.features import KEEPS_PREPARED_FROM, TRANSACTION_VERSION
from millbeck.replication.partition import Partition
from millbeck.server.coordinators.transaction_coordinator import TransactionDriver
from millbeck.server.node import Node
from millbeck.server.transactions.marker_sender import MarkerSender
from millbeck.simulation.cluster import PORT, SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.histories.transaction_log import FENCING, TransactionOutcomes, check_idle, check_partition
from millbeck.simulation.workloads.exactly_once import INPUT, OUTPUT, Worker, WorkerProgress
from millbeck.simulation.workloads.two_phase import Ledger, TwoPhaseWorker

LIMIT_SECONDS: Final = 900.0
WORK_SECONDS: Final = 240.0
SETTLE_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1
ONCE: Final = "T1 exactly once"
STABLE: Final = "T3 last stable offset"
PREMATURE: Final = "T7 marker before its decision"
EARLY: Final = "T4 completed before its markers"
LIVENESS: Final = "liveness"
UNEXPECTED: Final = "unexpected error"
VACUOUS: Final = "vacuous"
TWO_PHASE_SETTINGS: Final = {"transaction.two.phase.commit.enable": "true", "unstable.feature.versions.enable": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    number_count: int = 40
    worker_count: int = 2
    two_phase_count: int = 0
    """Additional workers whose transactions are decided by an external system."""
    fault_count: int = 4
    over_s: float = 20.0

    @classmethod
    def drawn(cls, seed: int) -> TransactionsPlan:
        dice = stream(seed, "transactions plan")
        return cls(
            seed=seed,
            number_count=dice.choice((24, 40, 60)),
            worker_count=dice.choice((1, 2)),
            fault_count=dice.randint(2, 6),
            over_s=dice.choice((10.0, 20.0)),
            two_phase_count=dice.choice((0, 1)),
        )


class TransactionsRun:
    """``progress`` holds the observations of the workers after `run`."""

    def __init__(self, plan: TransactionsPlan) -> None:
        self.plan = plan
        self.cluster = SimCluster(
            plan.seed,
            settings={
                "transaction.state.log.num.partitions": "2",
                "transaction.state.log.min.isr": "2",
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
                "min.insync.replicas": "2",
                "broker.session.timeout.ms": "1500",
                "broker.heartbeat.interval.ms": "300",
                **(TWO_PHASE_SETTINGS if plan.two_phase_count else {}),
            },
            features={TRANSACTION_VERSION: KEEPS_PREPARED_FROM} if plan.two_phase_count else None,
        )
        self.progress = WorkerProgress()
        self._dice = stream(plan.seed, "transactions run")
        self._anomalies: list[Anomaly] = []
        self._stable: dict[tuple[Partition, int], int] = {}
        """The last stable offset by partition and process: a restarted leader begins with a lower one."""

    def run(self) -> list[Anomaly]:
        """Run everything and return the anomalies."""
        with self.cluster.world as world, _watching(self):
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        return self._anomalies

    def found(self, kind: str, what: str) -> None:
        self._anomalies.append(Anomaly(kind, what))

    async def _whole(self, environment: Environment) -> None:
        cluster = self.cluster
        cluster.start_all()
        bootstrap = ",".join(f"{member.name}:{PORT}" for member in cluster.brokers)
        await self._fill(environment, bootstrap)
        workers: list[Worker | TwoPhaseWorker] = [
            Worker(
                environment,
                bootstrap,
                index,
                self.progress,
                random.Random(self._dice.random()),
                count=self.plan.number_count,
            )
            for index in range(self.plan.worker_count)
        ]
        ledger = Ledger()
        workers += [
            TwoPhaseWorker(
                environment,
                bootstrap,
                self.plan.worker_count + index,
                self.progress,
                random.Random(self._dice.random()),
                ledger,
                count=self.plan.number_count,
            )
            for index in range(self.plan.two_phase_count)
        ]
        watching = asyncio.ensure_future(self._watch())
        working = [asyncio.ensure_future(worker.run()) for worker in workers]
        await self._inject_faults()
        self._start_all()
        cluster.world.network.heal()
        _, pending = await asyncio.wait(working, timeout=WORK_SECONDS)
        if pending:
            self.found(LIVENESS, f"{len(pending)} workers do not finish")
        for task in [*pending, *self.progress.zombies]:
            task.cancel()
        await asyncio.gather(*working, *self.progress.zombies, return_exceptions=True)
        await self._wait_until_stable()
        watching.cancel()
        self._check_logs()
        for what in self.progress.unfenced():
            self.found(FENCING, what)
        if not pending:
            await self._check_copies(environment, bootstrap)
        if cluster.unexpected_errors():
            self.found(UNEXPECTED, str(cluster.unexpected_errors()))
        if self.progress.committed_count < 3:
            self.found(VACUOUS, f"only {self.progress.committed_count} transactions were committed")

    async def _fill(self, environment: Environment, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap}
        async with Admin(settings, environment=environment) as admin:
            topics = [
                NewTopic(name=INPUT, partition_count=self.plan.worker_count, replication_factor=3),
                NewTopic(name=OUTPUT, partition_count=2, replication_factor=3),
            ]
            while True:
                try:
                    outcomes = await admin.create_topics(topics)
                except ApiError:
                    outcomes = None
                if outcomes is not None and all(
                    isinstance(error, TopicAlreadyExists) for error in outcomes.failed.values()
                ):
                    break
                await asyncio.sleep(0.5)
        async with Producer(settings, environment=environment) as producer:
            for index in range(self.plan.worker_count):
                for number in range(self.plan.number_count):
                    await producer.enqueue(INPUT, b"%d.%d" % (index, number), partition=index)
            await producer.flush()

    # faults

    async def _inject_faults(self) -> None:
        pause_s = self.plan.over_s / max(1, self.plan.fault_count)
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(self._dice.uniform(0.3, 1.0) * pause_s)
            member = self._dice.choice(self.cluster.brokers)
            await self._inject_fault(member)

    async def _inject_fault(self, member: SimNode) -> None:
        cluster, machine = self.cluster, self.cluster.machine(member)
        if not machine.is_running:
            self._start(member)
            return
        match self._dice.randrange(4):
            case 0:
                machine.crash()
                await asyncio.sleep(self._dice.uniform(0.1, 3.0))
                self._start(member)
            case 1:
                machine.power_loss()
                await asyncio.sleep(self._dice.uniform(0.1, 3.0))
                self._start(member)
            case 2:
                machine.pause(self._dice.uniform(0.5, 4.0))
                await asyncio.sleep(2.0)
            case _:
                others = [each.name for each in cluster.members if each is not member]
                cluster.world.network.partition([member.name], others)
                await asyncio.sleep(self._dice.uniform(0.5, 4.0))
                cluster.world.network.heal()
        # All replicas must be in sync again, so that the next fault loses no acknowledged record.
        await self._until(self._is_whole, SETTLE_SECONDS, "all replicas are in sync")

    def _start(self, member: SimNode) -> None:
        # Remove the previous process, so that it is not taken for the new one.
        self.cluster.nodes.pop(member.name, None)
        self.cluster.start(member)

    def _start_all(self) -> None:
        for member in self.cluster.members:
            if not self.cluster.machine(member).is_running:
                self._start(member)

    def _running(self) -> list[Node]:
        members = [each for each in self.cluster.members if self.cluster.machine(each).is_running]
        return [self.cluster.nodes[each.name] for each in members if each.name in self.cluster.nodes]

    def _is_whole(self) -> bool:
        nodes = self._running()
        if len(nodes) < len(self.cluster.members):
            return False
        image = max((node.broker.image for node in nodes), key=lambda each: each.offset)
        return all(
            len(partition.isr) == len(partition.replicas)
            for topic in image.topics.by_name.values()
            for partition in topic.partitions.values()
        )

    async def _until(self, condition: Any, limit_s: float, what: str) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        while not condition():
            if loop.time() > end_s:
                self.found(LIVENESS, f"not within {limit_s:.0f} s: {what}")
                return
            self._start_all()
            await asyncio.sleep(POLL_SECONDS)

    # continuous checks

    async def _watch(self) -> None:
        while True:
            for node in self._running():
                for partition in node.broker.topics.all_partitions():
                    if partition.is_leader and not partition.log.is_offline:
                        self._look_at(partition)
            await asyncio.sleep(POLL_SECONDS)

    def _look_at(self, partition: Partition) -> None:
        log = partition.log
        stable = partition.fetch_upper_bound(committed_only=True)
        opened = [
            entry.transaction_first_offset
            for entry in log.producers.producers.values()
            if entry.transaction_first_offset >= 0
        ]
        if stable > partition.high_watermark or any(stable > first for first in opened):
            self.found(STABLE, f"{partition.name}: {stable}, with {opened} open, below {partition.high_watermark}")
        key = (partition, partition.leader_epoch)
        if partition.knows_committed and stable < self._stable.get(key, 0):
            self.found(STABLE, f"{partition.name}: went back from {self._stable[key]} to {stable}")
        self._stable[key] = max(stable, self._stable.get(key, 0))

    # the end

    async def _wait_until_stable(self) -> None:
        """Wait until abandoned transactions have been aborted by their timeouts."""

        def is_settled() -> bool:
            if not self._is_whole():
                return False
            decisions = self._decisions()
            return not list(check_idle(decisions)) and not any(
                partition.log.producers.open_transactions for partition in self._leaders()
            )

        await self._until(is_settled, SETTLE_SECONDS, "no transaction is open")

    def _leaders(self) -> list[Partition]:
        """The leader of each partition: the one with the highest epoch of those that act as leader."""
        found: dict[TopicPartition, Partition] = {}
        for node in self._running():
            for partition in node.broker.topics.all_partitions():
                known = found.get(partition.name)
                if partition.is_leader and (known is None or partition.leader_epoch > known.leader_epoch):
                    found[partition.name] = partition
        return list(found.values())

    def _decisions(self) -> TransactionOutcomes:
        decisions = TransactionOutcomes()
        for partition in self._leaders():
            if partition.name.topic == TRANSACTION_STATE_TOPIC:
                decisions.read(partition)
        return decisions

    def _check_logs(self) -> None:
        decisions = self._decisions()
        self._anomalies += decisions.anomalies
        self._anomalies += check_idle(decisions)
        for partition in self._leaders():
            if partition.name.topic != TRANSACTION_STATE_TOPIC:
                self._anomalies += check_partition(partition, decisions, has_epochs=True)

    async def _check_copies(self, environment: Environment, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
        places = [TopicPartition(OUTPUT, index) for index in range(2)]
        counts: dict[bytes, int] = {}
        async with Consumer(settings, environment=environment) as consumer:
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            while [place for place in places if await consumer.position(place) < ends[place]]:
                for records in (await consumer.poll(timeout_s=1.0)).values():
                    for record in records:
                        counts[record.value or b""] = counts.get(record.value or b"", 0) + 1
        wanted = {
            b"%d.%d" % (index, number)
            for index in range(self.plan.worker_count + self.plan.two_phase_count)
            for number in range(self.plan.number_count)
        }
        for value in sorted(wanted - set(counts)):
            self.found(ONCE, f"{value.decode()} is missing")
        for value, count in sorted(counts.items()):
            if count != 1 or value not in wanted:
                self.found(ONCE, f"{value.decode()} was read {count} times")

    # markers as they are sent

    def marker_sent(self, sender: MarkerSender, partition: Partition, markers: Markers) -> None:
        """Check that the decision is committed when its marker is sent."""
        transactions = sender._broker.transactions
        assert isinstance(transactions, TransactionDriver)
        driver = transactions._drivers.get(partition.name.partition)
        if driver is None:
            return
        host = driver.host
        at = min(host.committed_offset, host.written_offset)
        known = host.shard._transactions.get_at(markers.transactional_id, at)
        if known is None or not known.status.is_prepared or known.producer_epoch != markers.producer_epoch:
            self.found(PREMATURE, f"{markers.transactional_id} with epoch {markers.producer_epoch}")

    def completing(self, markers: Markers) -> None:
        """Check that every partition has its marker when a transaction is about to be completed."""
        for partition in self._leaders():
            if partition.name in markers.partitions:
                entry = partition.log.producers.latest(markers.producer_id)
                if entry is None or entry.epoch < markers.producer_epoch:
                    self.found(EARLY, f"{markers.transactional_id}: {partition.name} has no marker")


class _watching:  # noqa: N801
    """Check every marker that is sent during a run."""

    def __init__(self, run: TransactionsRun) -> None:
        self._run = run
        self._original = MarkerSender.send
        self._original_complete = TransactionShard.complete

    def __enter__(self) -> None:
        run, original = self._run, self._original

        def send(sender: MarkerSender, partition: Partition, markers: Markers) -> None:
            run.marker_sent(sender, partition, markers)
            original(sender, partition, markers)

        original_complete = self._original_complete

        def complete(shard: TransactionShard, markers: Markers, now_ms: int) -> Any:
            run.completing(markers)
            return original_complete(shard, markers, now_ms)

        TransactionShard.complete = complete  # type: ignore[method-assign, assignment]
        MarkerSender.send = send  # type: ignore[method-assign, assignment]

    def __exit__(self, *_: object) -> None:
        MarkerSender.send = self._original  # type: ignore[method-assign]
        TransactionShard.complete = self._original_complete  # type: ignore[method-assign]
