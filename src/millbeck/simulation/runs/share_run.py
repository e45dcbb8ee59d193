"""A seeded run of a share group on a whole cluster: members come and go, leaders and share coordinators die.

First, members acquire, acknowledge and forget records, and crash, while nodes are killed, paused and restarted, one at
a time; a producer continues to write. Then all members follow the protocol, and all records must be acknowledged, so
that no lag remains. Deliveries and confirmations are checked as they happen (`share_history`, S1 to S6). Some groups
have a dead-letter topic, which is read in the end and must have every archived record (S7).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigChange, ConfigResource, NewTopic, ResourceType
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC
from millbeck.metadata.features import DEAD_LETTERS_FROM, SHARE_VERSION
from millbeck.server.share.dead_letters import REJECTED
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults.rolling import POLL_SECONDS, break_node, create_topics, drawn_kinds
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.histories.share_history import NEVER_DRAINED, ShareHistory
from millbeck.simulation.workloads.share_members import ShareMemberBehaviour, SimShareMember

GROUP: Final = "jobs"
TOPIC: Final = "t"
DEAD_LETTERS: Final = "dlq.jobs"
LIMIT_SECONDS: Final = 900.0
DRAIN_SECONDS: Final = 60.0
TOPICS: Final = (TOPIC, DEAD_LETTERS, CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC)
"""Topics whose replicas must all be in sync before the next fault."""

SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "share.coordinator.state.topic.prune.interval.ms": "7000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "9000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.session.timeout.ms": "4000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "min.insync.replicas": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    member_count: int
    partition_count: int
    record_count: int
    delivery_limit: int
    record_locks_max: int
    acquire_mode: str
    faults: tuple[str, ...]
    fault_count: int
    behaviour: ShareMemberBehaviour
    has_dead_letters: bool = False

    @classmethod
    def drawn(cls, seed: int) -> SharePlan:
        dice = stream(seed, "share plan")
        return cls(
            seed=seed,
            member_count=dice.randint(2, 5),
            partition_count=dice.randint(1, 3),
            record_count=dice.choice((60, 150)),
            delivery_limit=dice.choice((2, 5)),
            record_locks_max=dice.choice((100, 2000)),
            acquire_mode=dice.choice(("batch_optimized", "record_limit")),
            faults=drawn_kinds(dice),
            fault_count=dice.randint(1, 3),
            behaviour=ShareMemberBehaviour(
                release=dice.choice((0.0, 0.1)),
                reject=dice.choice((0.0, 0.05)),
                forget=dice.choice((0.0, 0.1)),
                die=dice.choice((0.0, 0.05)),
                leave=dice.choice((0.0, 0.05)),
            ),
            has_dead_letters=dice.random() < 0.5,
        )


class ShareRun:
    def __init__(self, plan: SharePlan) -> None:
        self.plan = plan
        self.history = ShareHistory(plan.delivery_limit)
        own = {
            "group.share.delivery.count.limit": str(plan.delivery_limit),
            "group.share.partition.max.record.locks": str(plan.record_locks_max),
        }
        unstable = {"unstable.feature.versions.enable": str(plan.has_dead_letters).lower()}
        self.cluster = SimCluster(
            plan.seed,
            settings=SETTINGS | own | unstable,
            features={SHARE_VERSION: DEAD_LETTERS_FROM} if plan.has_dead_letters else None,
        )
        self._dice = stream(plan.seed, "share clients")
        self._members: dict[int, SimShareMember] = {}
        self._member_number = 0
        self._is_calm = False

    def run(self) -> list[Anomaly]:
        try:
            self.cluster.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        finally:
            self.cluster.world.close()
        return self.history.check(confirmed_min=self.plan.record_count // 2)

    async def _scenario(self, environment: Environment) -> None:
        self.cluster.start_all()
        servers = ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)
        admin = Admin({"bootstrap.servers": servers}, environment=environment)
        await self._create(admin)
        await self._configure(admin)
        seats = [asyncio.create_task(self._run_members(environment, servers)) for _ in range(self.plan.member_count)]
        watching = asyncio.create_task(self._watch_starts(admin))
        producing = asyncio.create_task(self._produce(environment, servers))
        await self._inject_faults()
        await producing
        self._is_calm = True
        for member in self._members.values():
            member.is_calm = True
        self.cluster.start_all()
        self.history.anomalies += await self._drain(admin)
        for task in (*seats, watching):
            task.cancel()
        await asyncio.gather(*seats, watching, return_exceptions=True)
        await admin.close()
        if self.plan.has_dead_letters:
            await self._read_dead_letters(environment, servers)
            self.history.check_letters()

    async def _create(self, admin: Admin) -> None:
        topics = [NewTopic(name=TOPIC, partition_count=self.plan.partition_count, replication_factor=3)]
        if self.plan.has_dead_letters:
            configs = {"errors.deadletterqueue.group.enable": "true"}
            # The leaders differ from those of the source partitions, so that dead letters go to other brokers too.
            brokers = [member.number for member in self.cluster.brokers]
            places = {index: [*brokers[index + 1 :], *brokers[: index + 1]] for index in range(2)}
            topics.append(NewTopic(name=DEAD_LETTERS, assignments=places, configs=configs))
        await create_topics(admin, topics)

    async def _configure(self, admin: Admin) -> None:
        resource = ConfigResource(ResourceType.GROUP, GROUP)
        settings = {"share.auto.offset.reset": "earliest"}
        if self.plan.has_dead_letters:
            settings |= {
                "errors.deadletterqueue.topic.name": DEAD_LETTERS,
                "errors.deadletterqueue.copy.record.enable": "true",
            }
        changes = [ConfigChange(name=name, value=value) for name, value in settings.items()]
        (await admin.incremental_alter_configs({resource: changes}, timeout_s=60)).all()

    async def _produce(self, environment: Environment, servers: str) -> None:
        """Produce records with pauses, so that some are written before, during and after each fault."""
        async with Producer(
            {"bootstrap.servers": servers, "delivery.timeout.ms": "200000"}, environment=environment
        ) as producer:
            for number in range(self.plan.record_count):
                place = TopicPartition(TOPIC, number % self.plan.partition_count)
                value = b"%d" % number
                future = await producer.enqueue(TOPIC, value, partition=place.partition)
                try:
                    offset = (await future).offset
                    self.history.produced[place, offset] = None
                    self.history.values[place, offset] = value
                except ApiError:
                    continue
                await asyncio.sleep(self._dice.random() * 0.3)

    async def _read_dead_letters(self, environment: Environment, servers: str) -> None:
        places = [TopicPartition(DEAD_LETTERS, index) for index in range(2)]
        async with Consumer({"bootstrap.servers": servers}, environment=environment) as consumer:
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            while [place for place in places if await consumer.position(place) < ends[place]]:
                for records in (await consumer.poll(timeout_s=1.0)).values():
                    for record in records:
                        headers = {name.removeprefix("__dlq.errors."): value or b"" for name, value in record.headers}
                        self.history.dead_letter_seen(
                            TopicPartition(headers["topic"].decode(), int(headers["partition"])),
                            int(headers["offset"]),
                            value=record.value,
                            is_rejected=headers["message"].decode() == REJECTED,
                            delivery_count=int(headers["delivery.count"]),
                        )

    async def _run_members(self, environment: Environment, servers: str) -> None:
        """Run one member after the other: when one ends, the next one joins."""
        settings = {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "share.acknowledgement.mode": "explicit",
            "share.acquire.mode": self.plan.acquire_mode,
            "max.poll.records": "10",
            "request.timeout.ms": "4000",
        }
        while True:
            self._member_number += 1
            number = self._member_number
            dice = random.Random(self._dice.random())
            member = SimShareMember(environment, self.history, dice, settings, TOPIC, self.plan.behaviour)
            member.is_calm = self._is_calm
            self._members[number] = member
            try:
                await member.live()
            except ApiError:
                # The member ends with an error that it cannot handle, and another one joins.
                pass
            finally:
                del self._members[number]
            await asyncio.sleep(self._dice.random())

    # Faults

    async def _inject_faults(self) -> None:
        dice = stream(self.plan.seed, "share faults")
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(2 + dice.random() * 5)
            victim, kind = self._victim(dice), dice.choice(self.plan.faults)
            await break_node(self.cluster, victim, kind, dice, topics=TOPICS)

    def _victim(self, dice: random.Random) -> SimNode:
        topic = dice.choice((TOPIC, TOPIC, SHARE_GROUP_STATE_TOPIC, CONSUMER_OFFSETS_TOPIC))
        leader = self.cluster.leader_of(topic, 0)
        return leader if leader is not None else dice.choice(self.cluster.members)

    # Observing

    async def _watch_starts(self, admin: Admin) -> None:
        while True:
            await self._look(admin)
            await asyncio.sleep(POLL_SECONDS)

    async def _look(self, admin: Admin) -> int | None:
        """Request the total lag of all partitions; None if it cannot be determined."""
        try:
            found = (await admin.list_share_offsets([GROUP], timeout_s=10)).all()[GROUP]
        except ApiError:
            return None
        for partition, offset in found.items():
            self.history.start_seen(partition, offset.start_offset)
        if len(found) < self.plan.partition_count or any(each.lag < 0 for each in found.values()):
            return None
        return sum(each.lag for each in found.values())

    async def _drain(self, admin: Admin) -> list[Anomaly]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_SECONDS
        lag: int | None = None
        while loop.time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            lag = await self._look(admin)
            if lag == 0:
                return []
        return [Anomaly(NEVER_DRAINED, f"{DRAIN_SECONDS} s after the last fault the lag is {lag}")]
