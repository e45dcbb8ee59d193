"""A seeded run of the Python client's public API on a whole cluster: producers, and consumers that come and go.

Nodes are killed, paused and restarted, one at a time, while producers call `send_nowait` and members of a group
iterate, poll, commit, close, or vanish without a word. Then all faults are repaired: every record must be acknowledged,
and the group must read all of them. In the end the log is read, and the checkers of cluster runs examine the history:
no acknowledged record is lost, doubled or out of order.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import partial
from typing import Final

from millbeck.client import Admin, Consumer, Producer, Record
from millbeck.client.admin.results import NewTopic
from millbeck.client.errors import BufferFull
from millbeck.client.producer.batch import RecordFuture
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.simulation.checkers import check_all
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults.rolling import break_node, create_topics, drawn_kinds
from millbeck.simulation.histories.history import Anomaly, History, Send, SendOutcome

GROUP: Final = "g"
TOPIC: Final = "t"
LIMIT_SECONDS: Final = 900.0
SETTLE_SECONDS: Final = 120.0
NOT_ACKNOWLEDGED: Final = "never acknowledged"
NOT_CONSUMED: Final = "never consumed"
SETTINGS: Final = {
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    partition_count: int
    producer_count: int
    member_count: int
    protocol: str
    strategy: str
    linger_ms: int
    compression: str
    vanish: float
    """How many of the members end without leaving the group."""
    load_s: float
    faults: tuple[str, ...]
    fault_count: int

    @classmethod
    def drawn(cls, seed: int) -> ClientsPlan:
        dice = stream(seed, "clients plan")
        return cls(
            seed=seed,
            partition_count=dice.randint(1, 4),
            producer_count=dice.randint(1, 2),
            member_count=dice.randint(1, 3),
            protocol=dice.choice(("classic", "consumer")),
            strategy=dice.choice(("range", "roundrobin", "sticky", "cooperative-sticky")),
            linger_ms=dice.choice((0, 5, 50)),
            compression=dice.choice(("none", "gzip")),
            vanish=dice.choice((0.0, 0.5)),
            load_s=dice.choice((15.0, 30.0)),
            faults=drawn_kinds(dice),
            fault_count=dice.randint(1, 4),
        )


class ClientsRun:
    def __init__(self, plan: ClientsPlan) -> None:
        self.plan = plan
        self.history = History()
        self.cluster = SimCluster(plan.seed, settings=SETTINGS)
        self.consumed: dict[str, None] = {}
        self._anomalies: list[Anomaly] = []
        self._is_producing = True
        self._is_calm = False
        self._is_read = False
        self._member_number = 0

    def run(self) -> list[Anomaly]:
        try:
            self.cluster.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        finally:
            self.cluster.world.close()
        return self._anomalies or check_all(self.history, acknowledged_count_min=10)

    async def _scenario(self, environment: Environment) -> None:
        plan = self.plan
        self.cluster.start_all()
        servers = {"bootstrap.servers": ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)}
        async with Admin(servers, environment=environment) as admin:
            await create_topics(
                admin, [NewTopic(name=TOPIC, partition_count=plan.partition_count, replication_factor=3)]
            )
        producers = [
            asyncio.create_task(self._produce(environment, servers, f"p{number}"))
            for number in range(plan.producer_count)
        ]
        seats = [
            asyncio.create_task(self._run_members(environment, servers, number)) for number in range(plan.member_count)
        ]
        await self._inject_faults()
        self._is_producing = False
        self._is_calm = True
        self.cluster.start_all()
        _, late = await asyncio.wait(producers, timeout=SETTLE_SECONDS)
        if late:
            self._anomalies.append(
                Anomaly(NOT_ACKNOWLEDGED, f"a producer has records in flight after {SETTLE_SECONDS} s")
            )
        for producer in producers:
            if producer.done():
                producer.result()
        open_sends = [send for send in self.history.sends if send.outcome is SendOutcome.UNKNOWN]
        if open_sends and not late:
            self._anomalies.append(
                Anomaly(NOT_ACKNOWLEDGED, f"{len(open_sends)} records, the first is {open_sends[0]}")
            )
        await self._read_finally(environment, servers)
        await self._await_group()
        self._is_read = True
        for task in (*producers, *seats):
            task.cancel()
        await asyncio.gather(*producers, *seats, return_exceptions=True)

    # the load

    async def _produce(self, environment: Environment, servers: dict[str, str], name: str) -> None:
        dice = stream(self.plan.seed, f"clients {name}")
        settings: dict[str, str | int] = {
            **servers,
            "client.id": name,
            "linger.ms": self.plan.linger_ms,
            "compression.type": self.plan.compression,
            "delivery.timeout.ms": 600_000,
            "request.timeout.ms": 5_000,
            "max.block.ms": 120_000,
        }
        count = 0
        async with Producer(settings, environment=environment) as producer:
            while self._is_producing:
                for _ in range(dice.randint(1, 5)):
                    number = dice.randrange(self.plan.partition_count)
                    count += 1
                    entry = self.history.send(name, str(number), f"{name}-{count}")
                    try:
                        future = producer.send_nowait(TOPIC, entry.value.encode(), partition=number)
                    except BufferFull:
                        entry.failed()
                        continue
                    future.add_done_callback(partial(_note, entry))
                await asyncio.sleep(dice.random() * 0.2)
            await producer.flush()

    async def _run_members(self, environment: Environment, servers: dict[str, str], seat: int) -> None:
        """Run one member after the other: when one ends, the next one joins."""
        dice = stream(self.plan.seed, f"clients seat {seat}")
        while True:
            self._member_number += 1
            member = _Member(self, environment, servers, f"m{self._member_number}", dice)
            await member.live()
            await asyncio.sleep(dice.random() * 2)

    @property
    def is_calm(self) -> bool:
        """Whether members stay, since all faults are repaired."""
        return self._is_calm

    @property
    def is_over(self) -> bool:
        return self._is_read

    async def _inject_faults(self) -> None:
        dice = stream(self.plan.seed, "clients faults")
        pause_s = self.plan.load_s / (self.plan.fault_count + 1)
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(pause_s * (0.5 + dice.random()))
            victim, kind = dice.choice(self.cluster.members), dice.choice(self.plan.faults)
            await break_node(self.cluster, victim, kind, dice, topics=[TOPIC, CONSUMER_OFFSETS_TOPIC])
        await asyncio.sleep(pause_s)

    # the end

    async def _await_group(self) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + SETTLE_SECONDS
        wanted = [value for records in self.history.final.values() for _, value in records]
        while missing := [value for value in wanted if value not in self.consumed]:
            if loop.time() > deadline_s:
                text = f"{len(missing)} of {len(wanted)} records, the first is {missing[0]}"
                self._anomalies.append(Anomaly(NOT_CONSUMED, text))
                return
            await asyncio.sleep(0.5)

    async def _read_finally(self, environment: Environment, servers: dict[str, str]) -> None:
        partitions = [TopicPartition(TOPIC, number) for number in range(self.plan.partition_count)]
        found: dict[TopicPartition, list[tuple[int, str]]] = {each: [] for each in partitions}
        async with Consumer(servers, environment=environment, auto_offset_reset="earliest") as consumer:
            ends = await consumer.end_offsets(partitions, timeout_s=60)
            consumer.assign(partitions)
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for partition, records in (await consumer.poll()).items():
                    found[partition] += [(record.offset, _text(record)) for record in records]
        for partition, read in found.items():
            self.history.record_final_read(str(partition.partition), read)


class _Member:
    """One consumer of the group, by iteration or by polling, until it closes or vanishes."""

    def __init__(
        self, run: ClientsRun, environment: Environment, servers: dict[str, str], name: str, dice: random.Random
    ) -> None:
        self._run = run
        self._name = name
        self._dice = dice
        self._assignment = 0
        plan = run.plan
        self._consumer: Consumer[bytes, bytes] = Consumer(
            servers,
            environment=environment,
            client_id=name,
            group_id=GROUP,
            group_protocol=plan.protocol,
            partition_assignment_strategy=plan.strategy,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=4000,
            heartbeat_interval_ms=500,
            max_poll_interval_ms=20_000,
            request_timeout_ms=5_000,
        )

    async def live(self) -> None:
        self._consumer.subscribe([TOPIC], on_assigned=self._assigned, on_revoked=self._assigned)
        try:
            while not self._run.is_over:
                await (self._iterate() if self._dice.random() < 0.5 else self._poll())
                if not self._run.is_calm and self._dice.random() < 0.1:
                    break
        finally:
            leaves = self._dice.random() >= self._run.plan.vanish
            await self._consumer.close(5.0, leaves_group=leaves)

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._assignment += 1

    async def _iterate(self) -> None:
        try:
            async with asyncio.timeout(1 + self._dice.random()):
                async for record in self._consumer:
                    self._note([record])
                    if self._dice.random() < 0.05:
                        await self._consumer.commit(timeout_s=5)
                        return
        except (ApiError, TimeoutError):
            await asyncio.sleep(0.1)

    async def _poll(self) -> None:
        try:
            for records in (await self._consumer.poll(timeout_s=0.5)).values():
                self._note(records)
            if self._dice.random() < 0.5:
                await self._consumer.commit(timeout_s=5)
        except ApiError:
            await asyncio.sleep(0.1)

    def _note(self, records: list[Record[bytes, bytes]]) -> None:
        found = [(record.offset, _text(record)) for record in records]
        self._run.consumed.update(dict.fromkeys(value for _, value in found))
        self._run.history.poll(self._name, self._assignment, str(records[0].partition), found)


def _note(entry: Send, future: RecordFuture) -> None:
    if not future.cancelled() and future.exception() is None:
        entry.acknowledged(future.result().offset)


def _text(record: Record[bytes, bytes]) -> str:
    return (record.value or b"").decode()
