"""A seeded run of one node whose clients produce and fetch under quotas that change.

Invariant Q3 is checked: throttling only delays. Everything produced is in the log once and in order, everything is
fetched, through incremental sessions too, no connection is served before the time that its last answer told it to wait,
nobody waits without a quota of their own, and in the long run nobody gets more than their quota.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any, Final, cast

from millbeck.kernel.environment import Environment
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    EntityData,
    OpData,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest

THROTTLING: Final = "Q3 throttling"
VACUOUS: Final = "vacuous"
LIMIT_SECONDS: Final = 3000.0
NETWORK_SECONDS: Final = 0.5
"""More than an answer takes to arrive."""
HOST: Final = "n1"
TOPIC: Final = "t"
SECONDS: Final = 60.0
DRAIN_SECONDS: Final = 200.0
WINDOW_SECONDS: Final = 11.0
RATE_ERROR: Final = 1.06
"""What Kafka's arithmetic, which forgets a whole window at a time, gives in the long run."""
VALUE_BYTES: Final = 1000
VALUES_MAX: Final = 8
QUOTAS: Final = {"slow": 4000.0, "shared": 6000.0, "free": None}
"""The quota of each client id in bytes per second, of produce and of fetch; two clients share one."""
CLIENTS: Final = ("slow", "shared", "shared", "free")
SETTINGS: Final = {
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://:9092",
    "metrics.http.port": "0",
}


@dataclass(slots=True)
class Seen:
    """Counts of the checks: a run with too few proves nothing."""

    produced: int = 0
    fetched: int = 0
    throttled: int = 0
    muted: int = 0


class QuotasRun:
    def __init__(self, seed: int) -> None:
        self.seen = Seen()
        self.bytes_by_id: dict[tuple[str, str], int] = {}
        """Bytes of records, by client id and direction."""
        self._world = World(seed)
        self._dice = stream(seed, "quotas run")
        self._node: Node | None = None
        self._anomalies: list[Anomaly] = []

    def run(self) -> list[Anomaly]:
        with self._world as world:
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        seen = self.seen
        if min(seen.produced, seen.fetched) < 150 or min(seen.throttled, seen.muted) < 10:
            self._anomalies.append(Anomaly(VACUOUS, str(seen)))
        return self._anomalies

    def found(self, detail: str) -> None:
        self._anomalies.append(Anomaly(THROTTLING, detail))

    @property
    def has_failed(self) -> bool:
        return len(self._anomalies) >= 10

    async def _main(self, environment: Environment) -> None:
        config = NodeConfig(SETTINGS)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        self._node = node
        await node.failed

    async def _whole(self, environment: Environment) -> None:
        self._world.node(HOST).start(self._main)
        while self._node is None:
            await asyncio.sleep(0.01)
        admin = await connect(environment)
        topic = CreatableTopic(TOPIC, num_partitions=len(CLIENTS), replication_factor=1)
        await admin.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
        for client_id, quota in QUOTAS.items():
            if quota is not None:
                entry = AlterClientQuotasEntry(
                    [EntityData("client-id", client_id)],
                    [OpData(key, quota, False) for key in ("producer_byte_rate", "consumer_byte_rate")],
                )
                await admin.ask(AlterClientQuotasRequest([entry], False), 1)
        await asyncio.sleep(1)
        clients = [
            QuotaClient(self, environment, client_id, index, Random(self._dice.random()))
            for index, client_id in enumerate(CLIENTS)
        ]
        began_s = environment.clock.monotonic()
        await asyncio.gather(*(each.work(began_s + SECONDS) for each in clients))
        self._check_rates(SECONDS)
        await asyncio.gather(*(each.drain(environment.clock.monotonic() + DRAIN_SECONDS) for each in clients))
        if self._node.broker.unexpected_errors:
            self.found("the node reported an unexpected error")

    def _check_rates(self, seconds: float) -> None:
        for (client_id, direction), size in sorted(self.bytes_by_id.items()):
            quota = QUOTAS[client_id]
            # The windows that were empty at first, and the last request of each client.
            slack = 2 * CLIENTS.count(client_id) * VALUES_MAX * VALUE_BYTES
            if quota is not None and size > RATE_ERROR * quota * (seconds + WINDOW_SECONDS) + slack:
                self.found(f"{client_id} {direction} {size} bytes in {seconds:g} s with a quota of {quota:g}")


async def connect(environment: Environment) -> WireClient:
    _, wire = await environment.network.connect(WireClient, host=HOST, port=9092)
    return cast(WireClient, wire)


class QuotaClient:
    """Writes and reads one partition; each direction has a connection of its own, and reads a session."""

    def __init__(self, run: QuotasRun, environment: Environment, client_id: str, partition: int, dice: Random) -> None:
        self._run = run
        self._environment = environment
        self._client_id = client_id
        self._partition = partition
        self._dice = dice
        self._written: list[str] = []
        self._read: list[str] = []
        self._session = (0, 0)
        self._sent_position = -1
        self._reading: WireClient | None = None
        self._may_be_served_s: dict[WireClient, float] = {}

    async def work(self, until_s: float) -> None:
        await asyncio.gather(self._write(until_s), self._read_until(until_s))

    async def drain(self, until_s: float) -> None:
        """Read what is left: throttled or not, everything comes."""
        while len(self._read) < len(self._written) and self._now_s() < until_s and not self._run.has_failed:
            await self._fetch()
        if self._read != self._written:
            self._run.found(f"{self._client_id} wrote {len(self._written)} values and read {len(self._read)} of them")

    async def _write(self, until_s: float) -> None:
        wire = await connect(self._environment)
        while self._now_s() < until_s and not self._run.has_failed:
            values = [
                f"{len(self._written) + number} ".ljust(VALUE_BYTES, ".")
                for number in range(self._dice.randint(1, VALUES_MAX))
            ]
            data = batch.build([Record(-1, 1_700_000_000_000, None, value.encode()) for value in values])
            request = ProduceRequest(
                acks=self._dice.choice((1, -1)),
                timeout_ms=30_000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(self._partition, data)])],
            )
            answer = await self._ask(wire, request, 9)
            (stored,) = answer.responses[0].partition_responses
            if (stored.error_code, stored.base_offset) != (0, len(self._written)):
                self._run.found(f"{self._client_id} got error {stored.error_code}, offset {stored.base_offset}")
                return
            self._written += values
            self._run.seen.produced += len(values)
            self._count("produced", len(data))
            await asyncio.sleep(self._dice.uniform(0, 1.0))

    async def _read_until(self, until_s: float) -> None:
        while self._now_s() < until_s and not self._run.has_failed:
            await self._fetch()
            await asyncio.sleep(self._dice.uniform(0, 0.5))

    async def _fetch(self) -> None:
        if self._reading is None:
            self._reading = await connect(self._environment)
        position = len(self._read)
        wanted = FetchPartition(
            self._partition, fetch_offset=position, partition_max_bytes=self._dice.choice((1, 3000, 10_000))
        )
        # An incremental fetch names only what has changed.
        is_named = position != self._sent_position or self._session[1] <= 0
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=20_000,
            session_id=self._session[0],
            session_epoch=self._session[1],
            topics=[FetchTopic(TOPIC, partitions=[wanted])] if is_named else [],
        )
        answer = await self._ask(self._reading, request, 11)
        self._session = (answer.session_id, self._session[1] + 1) if answer.session_id else (0, 0)
        self._sent_position = position if answer.session_id else -1
        for topic in answer.responses:
            for found in topic.partitions:
                for one in batch.split(found.records or b"", partial_tail=True):
                    self._count("fetched", len(one.data))
                    for record in batch.records_of(one.data):
                        if record.offset >= len(self._read):
                            self._take(record.offset, bytes(record.value or b"").decode())

    def _take(self, offset: int, value: str) -> None:
        if offset != len(self._read):
            self._run.found(f"{self._client_id} read offset {offset} after {len(self._read) - 1}")
        self._read.append(value)
        self._run.seen.fetched += 1

    async def _ask(self, wire: WireClient, request: ProduceRequest | FetchRequest, version: int) -> Any:
        """Ask at once, whatever the last answer said: the broker has to keep the time itself."""
        may_be_served_s = self._may_be_served_s.get(wire, 0.0)
        self._run.seen.muted += self._now_s() < may_be_served_s
        answer = await wire.ask(request, version, client_id=self._client_id)
        now_s = self._now_s()
        if now_s < may_be_served_s - 0.001:
            self._run.found(f"{self._client_id} was served {may_be_served_s - now_s:.3f} s too early")
        if answer.throttle_time_ms:
            self._run.seen.throttled += 1
            if QUOTAS[self._client_id] is None:
                self._run.found(f"{self._client_id} has no quota and is told to wait {answer.throttle_time_ms} ms")
        # The broker's time begins before the answer has arrived: by no more than the network takes.
        self._may_be_served_s[wire] = now_s + answer.throttle_time_ms / 1000 - NETWORK_SECONDS
        return answer

    def _count(self, direction: str, size: int) -> None:
        key = (self._client_id, direction)
        self._run.bytes_by_id[key] = self._run.bytes_by_id.get(key, 0) + size

    def _now_s(self) -> float:
        return self._environment.clock.monotonic()
