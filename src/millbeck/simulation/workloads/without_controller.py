"""Tests the responses of a broker while no controller can be elected, because two of three combined nodes are down.

    findings = await WithoutController(environment, cluster, survivor_is_controller=False).run()

The same requests are sent to any cluster of three: simulated nodes, real ones, and Apache Kafka's. Each request is sent
on a new connection, with an ApiVersions request pipelined behind it. The error codes of the response and the times of
both responses are recorded. ``__consumer_offsets`` and ``__transaction_state`` exist when two nodes are killed,
``__share_group_state`` does not. In the end the dead nodes are restarted, and the topics requested last must be created
without another request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, cast

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.simulation.workloads.outage_changes import remote_requests
from millbeck.simulation.workloads.outage_requests import (
    GROUP,
    KNOWN,
    SHARE,
    SHARE_KEY,
    TRANSACTION,
    RequestCase,
    Situation,
    coordinators_of,
    local_requests,
    metadata,
)
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)

PARTITION_COUNT: Final = 6
PATIENCE_S: Final = 75.0
"""The timeout of forwarded requests in Apache Kafka: 60 seconds."""
KEYS_TRIED: Final = 60
GROUPS_WANTED: Final = 6
IDS_WANTED: Final = 5
PRODUCERS_WANTED: Final = 4
PRODUCER_IDS_AT_ONCE: Final = 200
PRODUCER_ID_BLOCKS_MAX: Final = 20
EXISTS: Final = 36
LATER_S: Final = 10.0
"""The time after which the dead nodes are restarted."""
RETRY_S: Final = 0.2
READY_S: Final = 60.0


class ThreeNodes(Protocol):
    """``addresses`` are those of the clients' listeners by node id."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]: ...

    def kill(self, node_id: int) -> None: ...

    def start(self, node_id: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseTimes:
    """A response: all its error codes, and when it and the next response arrived."""

    name: str
    codes: tuple[int, ...]
    seconds: float
    behind_seconds: float
    limit_s: float

    def __str__(self) -> str:
        return f"{self.name}: {','.join(map(str, self.codes))} after {self.seconds:.2f} s"


def error_codes(response: object) -> tuple[int, ...]:
    """All error codes of a response in the order of its fields, without consecutive repetitions."""
    found: list[int] = []
    _collect(response, found)
    return tuple(code for index, code in enumerate(found) if index == 0 or code != found[index - 1])


def _collect(value: object, found: list[int]) -> None:
    if isinstance(value, list):
        for each in value:
            _collect(each, found)
        return
    for name in getattr(type(value), "__slots__", ()):
        member = getattr(value, name)
        if name.endswith("error_code"):
            found.append(member)
        else:
            _collect(member, found)


class WithoutController:
    def __init__(self, environment: Environment, cluster: ThreeNodes, *, survivor_is_controller: bool) -> None:
        self._environment = environment
        self._cluster = cluster
        self._survivor_is_controller = survivor_is_controller
        self._survivor = -1
        self._led_partition = -1
        self._topic_id: Uuid = ZERO_UUID

    async def run(self) -> dict[str, ResponseTimes]:
        """Run all requests; returns the survivor's responses by request name. Raises `TimeoutError` when the cluster
        does not start, or does not recover."""
        known = await self._prepare()
        dead = [node_id for node_id in self._cluster.addresses if node_id != self._survivor]
        for node_id in dead:
            self._cluster.kill(node_id)
        findings: dict[str, ResponseTimes] = {}
        # Until it fails, a request that cannot be committed may delay others for the same coordinator partition.
        for asked in (local_requests(known), remote_requests(known)):
            findings |= {each.name: each for each in await asyncio.gather(*map(self._find, asked))}
        await self._use_up_producer_ids()
        last = RequestCase(name="InitProducerId, no ids left", request=InitProducerIdRequest(None), version=4)
        findings[last.name] = await self._find(last)
        # The topics requested first may have been dropped from the queue by now.
        await self._ask(self._survivor, metadata("wanted"), 6)
        await self._ask(self._survivor, coordinators_of(SHARE, SHARE_KEY), 6)
        await asyncio.sleep(LATER_S)
        for node_id in dead:
            self._cluster.start(node_id)
        await self._until(lambda: self._exist("wanted", "__share_group_state"))
        return findings

    # Before the outage

    async def _prepare(self) -> Situation:
        for node_id in self._cluster.addresses:
            await self._until(partial(self._knows_all, node_id))
        await self._until(self._create_known)
        await self._until(self._choose_survivor)
        groups = await self._coordinated(GROUP, GROUPS_WANTED)
        transactional_ids = await self._coordinated(TRANSACTION, IDS_WANTED)
        await self._until(lambda: self._all_in_sync("__consumer_offsets", "__transaction_state"))
        await self._until(lambda: self._all_in_sync(KNOWN))
        await self._until(lambda: self._is_answered(InitProducerIdRequest(None), 4))
        producers = {each: await self._producer_of(each) for each in transactional_ids[:PRODUCERS_WANTED]}
        await self._begin_transaction(transactional_ids[PRODUCERS_WANTED - 1], producers)
        return Situation(
            survivor=self._survivor,
            led_partition=self._led_partition,
            topic_id=self._topic_id,
            groups=groups,
            transactional_ids=transactional_ids,
            producers=producers,
            now_ms=self._environment.clock.wall_ms(),
        )

    async def _producer_of(self, transactional_id: str) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id, 60_000)
        await self._until(lambda: self._is_answered(request, 4))
        answer = await self._ask(self._survivor, request, 4)
        return answer.producer_id, answer.producer_epoch

    async def _begin_transaction(self, transactional_id: str, producers: Mapping[str, tuple[int, int]]) -> None:
        producer_id, epoch = producers[transactional_id]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(KNOWN, [self._led_partition])],
        )
        await self._until(lambda: self._is_answered(request, 3))

    async def _knows_all(self, node_id: int) -> bool:
        """Whether a node sees all brokers registered: topics created earlier would have fewer leaders."""
        answer = await self._ask(node_id, metadata(), 9)
        return len(answer.brokers) == len(self._cluster.addresses)

    async def _create_known(self) -> bool:
        node_id = next(iter(self._cluster.addresses))
        topic = CreatableTopic(KNOWN, num_partitions=PARTITION_COUNT, replication_factor=3)
        return error_codes(await self._ask(node_id, CreateTopicsRequest(topics=[topic]), 7)) in ((0,), (EXISTS,))

    async def _choose_survivor(self) -> bool:
        asked = DescribeQuorumRequest(
            topics=[DescribeQuorumRequestTopic("__cluster_metadata", [DescribeQuorumRequestPartition(0)])]
        )
        answer = await self._ask(next(iter(self._cluster.addresses)), asked, 0)
        if any(error_codes(answer)):
            return False
        controller = answer.topics[0].partitions[0].leader_id
        others = [node_id for node_id in self._cluster.addresses if node_id != controller]
        self._survivor = controller if self._survivor_is_controller else others[0]
        return True

    async def _all_in_sync(self, *topics: str) -> bool:
        """Whether all replicas are in sync and the survivor leads a partition; stores which ones."""
        answer = await self._ask(self._survivor, metadata(*topics, creates=False), 12)
        if any(error_codes(answer)):
            return False
        partitions = [each for topic in answer.topics for each in topic.partitions]
        led = [each.partition_index for each in partitions if each.leader_id == self._survivor]
        self._led_partition = led[0] if led else -1
        self._topic_id = answer.topics[0].topic_id
        return bool(led) and all(len(each.isr_nodes) == 3 for each in partitions)

    async def _coordinated(self, key_type: int, count: int) -> list[str]:
        """Keys whose coordinator is the survivor."""
        keys = [f"key-{index}" for index in range(KEYS_TRIED)]
        found: list[str] = []

        async def look() -> bool:
            answer = await self._ask(self._survivor, coordinators_of(key_type, *keys), 4)
            if any(error_codes(answer)):
                return False
            found[:] = [each.key for each in answer.coordinators if each.node_id == self._survivor]
            return len(found) >= count

        await self._until(look)
        return found[:count]

    # Sending requests

    async def _use_up_producer_ids(self) -> None:
        """Use up the producer ids of the survivor's block."""
        client = await self._connect(self._survivor)
        try:
            for _ in range(PRODUCER_ID_BLOCKS_MAX):
                asked = [client.send(InitProducerIdRequest(None), 4) for _ in range(PRODUCER_IDS_AT_ONCE)]
                if any(any(error_codes(answer)) for answer in await asyncio.wait_for(asyncio.gather(*asked), 120)):
                    return
        finally:
            client.close()

    async def _find(self, question: RequestCase) -> ResponseTimes:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(question.delay_s)
        client = await self._connect(self._survivor)
        try:
            began_s = loop.time()
            first = client.send(question.request, question.version)
            behind = client.send(ApiVersionsRequest(), 0)
            answer = await asyncio.wait_for(first, PATIENCE_S)
            seconds = loop.time() - began_s
            await asyncio.wait_for(behind, PATIENCE_S)
        finally:
            client.close()
        return ResponseTimes(
            name=question.name,
            codes=error_codes(answer),
            seconds=seconds,
            behind_seconds=loop.time() - began_s,
            limit_s=question.limit_s,
        )

    async def _ask(self, node_id: int, request: object, version: int) -> Any:
        client = await self._connect(node_id)
        try:
            return await client.ask(request, version, timeout_s=PATIENCE_S)
        finally:
            client.close()

    async def _connect(self, node_id: int) -> WireClient:
        host, port = self._cluster.addresses[node_id]
        _, client = await self._environment.network.connect(WireClient, host=host, port=port)
        return cast(WireClient, client)

    async def _is_answered(self, request: object, version: int) -> bool:
        """Whether the survivor answers without an error."""
        return not any(error_codes(await self._ask(self._survivor, request, version)))

    async def _exist(self, *topics: str) -> bool:
        return await self._is_answered(metadata(*topics, creates=False), 9)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(READY_S):
            while True:
                try:
                    if await condition():
                        return
                except OSError:
                    # A node that is starting.
                    pass
                await asyncio.sleep(RETRY_S)
