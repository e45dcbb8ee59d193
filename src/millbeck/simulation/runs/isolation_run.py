"""A seeded run of a cluster in which every decision about some "bad" entities raises.

There is a bad transactional id, group, share partition, topic and broker beside good ones, in the same shards and under
the same controller. Invariant I1 is checked: one bad entity never stops the others in any periodic pass, also after a
coordinator was reloaded. Good transactions are aborted within their timeout, the check interval and a margin; offsets
of good groups expire; good share partitions get new snapshots; a good broker without heartbeats is fenced and its good
partitions get other leaders; leadership of good partitions returns to the preferred replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.partition_change import PartitionChange
from millbeck.coordinator.group.offsets import removal
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.share.shard import ShareKey, ShareShard
from millbeck.coordinator.transaction.initialization import Initialisation
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotCoordinator
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from millbeck.metadata.image import MetadataImage
from millbeck.server.coordinators.coordinator import CoordinatorDriver
from millbeck.server.coordinators.share_coordinator import key_text
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults.rolling import create_topics, wait_in_sync
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.mutants.patching import patched
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest

ISOLATION: Final = "I1 isolation"
VACUOUS: Final = "vacuous"
LIMIT_SECONDS: Final = 900.0
POLL_SECONDS: Final = 0.2
MARGIN_SECONDS: Final = 2.0
TRANSACTION_TIMEOUT_SECONDS: Final = 3.0
CHECK_SECONDS: Final = 1.0
RETENTION_SECONDS: Final = 60.0
COLD_SECONDS: Final = 2.0
SESSION_SECONDS: Final = 3.0
BALANCE_SECONDS: Final = 4.0
AVAILABLE_SECONDS: Final = 15.0
"""The maximum time in which a coordinator moves to another broker."""
GOOD, BAD = "good", "bad"
INTERNAL_TOPICS: Final = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)
KINDS: Final = ("transaction", "group", "share partition", "broker", "partition")
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "2000",
    "leader.imbalance.check.interval.seconds": "4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    good_count: int = 3
    bad_position: int = 1
    """The number of good entities before the bad one."""
    loses_coordinators: bool = True

    @classmethod
    def drawn(cls, seed: int) -> IsolationPlan:
        dice = stream(seed, "isolation plan")
        good_count = dice.randint(2, 6)
        return cls(
            seed=seed,
            good_count=good_count,
            bad_position=dice.randint(0, good_count - 1),
            loses_coordinators=dice.random() < 0.7,
        )

    def names(self, round_number: int) -> list[str]:
        """Names of transactional ids and groups, in order of creation."""
        names = [f"{GOOD}-{round_number}-{index}" for index in range(self.good_count)]
        return [*names[: self.bad_position], f"{BAD}-{round_number}", *names[self.bad_position :]]


class IsolationRun:
    def __init__(self, plan: IsolationPlan) -> None:
        self.plan = plan
        self.cluster = SimCluster(plan.seed, is_combined=False, settings=SETTINGS)
        self.refused: dict[str, int] = dict.fromkeys(KINDS, 0)
        """The number of decisions about a bad entity that raised."""
        self._dice = stream(plan.seed, "isolation run")
        self._bad_broker = -1
        self._topic_ids: dict[str, bytes] = {}
        self._anomalies: list[Anomaly] = []

    def run(self) -> list[Anomaly]:
        with self.cluster.world as world, self._spoiled():
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        return self._anomalies

    async def _whole(self, environment: Environment) -> None:
        await self._prepare(environment)
        for number in range(2):
            await self._check_coordinators(number)
            if self.plan.loses_coordinators and number == 0:
                await self._lose_coordinators()
        await self._check_controller()
        for kind, count in self.refused.items():
            if not count:
                self._anomalies.append(Anomaly(VACUOUS, f"nothing was decided for a bad {kind}"))

    async def _prepare(self, environment: Environment) -> None:
        self.cluster.start_all()
        host, port = self.cluster.addresses[0]
        async with Admin({"bootstrap.servers": f"{host}:{port}"}, environment=environment) as admin:
            await create_topics(
                admin,
                [NewTopic(name=name, partition_count=3, replication_factor=3) for name in (GOOD, BAD)],
            )
        _, client = await environment.network.connect(WireClient, host=host, port=port)
        assert isinstance(client, WireClient)
        keys = {0: "g", 1: "t", 2: key_text(ShareKey("g", bytes(16), 0))}
        for key_type, key in keys.items():
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            while (await client.ask(request, 6)).coordinators[0].error_code:
                await asyncio.sleep(POLL_SECONDS)
        client.close()
        await wait_in_sync(self.cluster, [GOOD, BAD, *INTERNAL_TOPICS])
        image = self._image()
        self._topic_ids = {name: image.topics.by_name[name].topic_id for name in (GOOD, BAD)}

    # Bad entities

    @contextmanager
    def _spoiled(self) -> Iterator[None]:
        """Make every decision about a bad entity raise."""
        with patched() as patch:

            def spoil(owner: Any, name: str, kind: str, is_bad: Callable[..., bool]) -> None:
                def decide(*arguments: Any, **details: Any) -> Any:
                    if is_bad(*arguments):
                        self.refused[kind] += 1
                        raise ValueError(f"a bad {kind}")
                    return before(*arguments, **details)

                before = patch.replace(owner, name, decide)

            spoil(Transaction, "fenced", "transaction", lambda known: known.transactional_id.startswith(BAD))
            spoil(removal, "expire", "group", lambda store, group: group.group_id.startswith(BAD))
            spoil(
                ShareShard,
                "_snapshot",
                "share partition",
                lambda shard, key, state, now_ms: key.group_id.startswith(BAD) and state.snapshot_epoch >= 0,
            )
            spoil(
                BrokerLifecycle,
                "fence_stale",
                "broker",
                lambda _, image, broker, now_ms: broker.broker_id == self._bad_broker,
            )
            spoil(
                PartitionChange, "build", "partition", lambda _, topic_id, index: topic_id == self._topic_ids.get(BAD)
            )
            yield

    # Checks of the good entities

    async def _check_coordinators(self, number: int) -> None:
        names = self.plan.names(number)
        good = [name for name in names if name.startswith(GOOD)]
        for name in names:
            await self._begin_transaction(name)
            await self._commit_offset(name)
            await self._begin_share(name)
        await asyncio.gather(
            self._within(
                TRANSACTION_TIMEOUT_SECONDS + CHECK_SECONDS,
                lambda: all(self._status(name) is TransactionState.COMPLETE_ABORT for name in good),
                "timed out transactions are aborted",
            ),
            self._within(
                2 * COLD_SECONDS,
                lambda: all(self._snapshot_epoch(name) > 0 for name in good),
                "share partitions without writes get new snapshots",
            ),
            self._within(
                RETENTION_SECONDS + CHECK_SECONDS,
                lambda: not any(self._has_offsets(name) for name in good),
                "offsets expire",
            ),
        )

    async def _check_controller(self) -> None:
        bad, silent = self._dice.sample(self.cluster.brokers, 2)
        self._bad_broker = bad.number
        self.cluster.machine(bad).crash()
        # From here on it is the broker without heartbeats for the longest time.
        await asyncio.sleep(SESSION_SECONDS * 1.5)
        self.cluster.machine(silent).crash()
        await self._within(
            SESSION_SECONDS * 1.5, lambda: self._is_given_up(silent), f"broker {silent.number} is fenced"
        )
        self._bad_broker = -1
        self.cluster.start_all()
        await wait_in_sync(self.cluster, [GOOD])
        await self._within(
            2 * BALANCE_SECONDS,
            lambda: all(each.has_preferred_leader for each in self._image().topics.by_name[GOOD].partitions.values()),
            "preferred replicas lead again",
        )

    def _is_given_up(self, member: SimNode) -> bool:
        image = self._image()
        partitions = image.topics.by_name[GOOD].partitions.values()
        return image.cluster.brokers[member.number].is_fenced and all(
            each.leader != member.number and member.number not in each.isr for each in partitions
        )

    async def _within(self, seconds: float, holds: Callable[[], bool], what: str) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + seconds + MARGIN_SECONDS
        while not holds():
            if loop.time() > deadline_s:
                self._anomalies.append(Anomaly(ISOLATION, f"not within {seconds + MARGIN_SECONDS} s: {what}"))
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _lose_coordinators(self) -> None:
        for topic in INTERNAL_TOPICS:
            leader = self.cluster.leader_of(topic, 0)
            if leader is None:
                continue
            self.cluster.machine(leader).crash()
            await asyncio.sleep(2 * SESSION_SECONDS)
            self.cluster.start_all()
            await wait_in_sync(self.cluster, [GOOD, *INTERNAL_TOPICS])

    # At the coordinators

    async def _decide(self, topic: str, key: str, operation: Callable[[Any], Result[Any, Any]]) -> None:
        """Run an operation on the coordinator of the key, as soon as one is available."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + AVAILABLE_SECONDS
        while loop.time() < deadline_s:
            answer: asyncio.Future[Any] = loop.create_future()
            driver = self._driver(topic)
            if driver is None:
                answer.set_exception(NotCoordinator())
            else:
                driver.write(key, operation, ResponseCallback(answer.set_result, answer.set_exception))
            try:
                await asyncio.wait_for(answer, SESSION_SECONDS)
            except (ApiError, TimeoutError):
                await asyncio.sleep(POLL_SECONDS)
            else:
                return
        self._anomalies.append(Anomaly(ISOLATION, f"not within {AVAILABLE_SECONDS} s: {key} is coordinated"))

    def _driver(self, topic: str) -> CoordinatorDriver[Any, Any] | None:
        leader = self.cluster.leader_of(topic, 0)
        if leader is None or not self.cluster.machine(leader).is_running:
            return None
        coordinators = self.cluster.nodes[leader.name].broker.coordinators
        return next(each for each in coordinators if each.topic.name == topic)

    def _shards(self, topic: str) -> list[Any]:
        driver = self._driver(topic)
        return [] if driver is None else [each.host.shard for each in driver._active()]

    async def _begin_transaction(self, name: str) -> None:
        now_ms = self._now_ms()
        timeout_ms = int(TRANSACTION_TIMEOUT_SECONDS * 1000)
        producer_id = self._dice.randrange(1 << 40)
        asked = Initialisation(transactional_id=name, timeout_ms=timeout_ms, new_producer_id=producer_id)
        await self._decide(TRANSACTION_STATE_TOPIC, name, lambda shard: shard.init_producer_id(asked, now_ms))

        def add(shard: Any) -> Any:
            known = next(each for each in shard.transactions() if each.transactional_id == name)
            place = TopicPartition(GOOD, 0)
            return shard.add_partitions(name, *known.client, [place], client_version=2, now_ms=self._now_ms())

        await self._decide(TRANSACTION_STATE_TOPIC, name, add)

    def _status(self, name: str) -> TransactionState | None:
        for shard in self._shards(TRANSACTION_STATE_TOPIC):
            for each in shard.transactions():
                if each.transactional_id == name:
                    status: TransactionState = each.status
                    return status
        return None

    async def _commit_offset(self, name: str) -> None:
        topic = OffsetCommitRequestTopic(GOOD, self._topic_ids[GOOD], [OffsetCommitRequestPartition(0, 1, -1, "")])
        request = OffsetCommitRequest(
            group_id=name, generation_id_or_member_epoch=-1, retention_time_ms=-1, topics=[topic]
        )
        await self._decide(CONSUMER_OFFSETS_TOPIC, name, lambda shard: shard.commit_offsets(request, 9, self._now_ms()))

    def _has_offsets(self, name: str) -> bool:
        shards = self._shards(CONSUMER_OFFSETS_TOPIC)
        return not shards or any(each.group_id == name for shard in shards for each in shard.committed_offsets())

    async def _begin_share(self, name: str) -> None:
        key = ShareKey(name, self._topic_ids[GOOD], 0)
        await self._decide(
            SHARE_GROUP_STATE_TOPIC,
            key_text(key),
            lambda shard: shard.initialize(key, state_epoch=0, start_offset=0, now_ms=self._now_ms()),
        )

    def _snapshot_epoch(self, name: str) -> int:
        key = ShareKey(name, self._topic_ids[GOOD], 0)
        states = [shard._states.get(key) for shard in self._shards(SHARE_GROUP_STATE_TOPIC)]
        return max((state.snapshot_epoch for state in states if state is not None), default=-1)

    def _now_ms(self) -> int:
        return self.cluster.running()[0].broker.now_ms()

    def _image(self) -> MetadataImage:
        return max((node.broker.image for node in self.cluster.running()), key=lambda image: image.offset)
