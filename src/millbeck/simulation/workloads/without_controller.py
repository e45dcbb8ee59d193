"""What a broker answers while no controller can be elected: two of three combined nodes are dead.

    findings = await WithoutController(environment, cluster, survivor_is_controller=False).run()

The same requests, over the wire, for any cluster of three: simulated nodes, real ones, and Apache Kafka's. Each request
goes over a connection of its own with an ApiVersions request pipelined behind it. What is noted are the error codes in
the answer, and how long both answers took. ``__consumer_offsets`` and ``__transaction_state`` exist when two nodes are
killed, ``__share_group_state`` does not. In the end the dead nodes come back, and what was asked for last must be
created without being asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, cast

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import uuid_text
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from millbeck.wire.messages.configs import IncrementalAlterableConfig as IncrementalConfig
from millbeck.wire.messages.configs import IncrementalAlterConfigsResource as IncrementalResource
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest, ListGroupsRequest
from millbeck.wire.messages.metadata import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopic,
    MetadataRequest,
    MetadataRequestTopic,
)
from millbeck.wire.messages.nodes import FeatureUpdateKey, UnregisterBrokerRequest, UpdateFeaturesRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millbeck.wire.messages.share_groups import ShareGroupHeartbeatRequest
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)

KNOWN: Final = "known"
PARTITION_COUNT: Final = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2
AT_ONCE_S: Final = 2.0
REQUEST_TIMEOUT_S: Final = 5.0
"""What requests say that have a timeout of their own."""
RESIGNED_S: Final = 5.0
"""When a survivor that was the active controller knows that it no longer is; until then it may answer questions."""
NO_TIMEOUT_S: Final = 30.0
"""How long those may take that have none."""
PATIENCE_S: Final = 75.0
"""Apache Kafka gives forwarded requests 60 seconds."""
KEYS_TRIED: Final = 60
PRODUCER_IDS_AT_ONCE: Final = 200
PRODUCER_ID_BLOCKS_MAX: Final = 20
EXISTS: Final = 36
SHARE_KEY: Final = f"group:{uuid_text(bytes([1]) * 16)}:0"
LATER_S: Final = 10.0
"""After which the dead nodes come back."""
RETRY_S: Final = 0.2
READY_S: Final = 60.0

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
TIMEOUT_MS: Final = int(REQUEST_TIMEOUT_S * 1000)


class ThreeNodes(Protocol):
    """``addresses`` are those of the clients' listeners by node id."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]: ...

    def kill(self, node_id: int) -> None: ...

    def start(self, node_id: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCase:
    name: str
    request: object
    version: int
    limit_s: float = AT_ONCE_S
    delay_s: float = 0.0
    """After the nodes were killed."""


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
    """All error codes of a response in the order of its fields, those that repeat the one before left out."""
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


def metadata(*names: str, creates: bool = True) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)


def coordinator_of(key_type: int, key: str) -> FindCoordinatorRequest:
    """A FindCoordinator request for one key."""
    return FindCoordinatorRequest(key=key, key_type=key_type)


def coordinators_of(key_type: int, *keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


class WithoutController:
    def __init__(self, environment: Environment, cluster: ThreeNodes, *, survivor_is_controller: bool) -> None:
        self._environment = environment
        self._cluster = cluster
        self._survivor_is_controller = survivor_is_controller
        self._survivor = -1
        self._led_partition = -1

    async def run(self) -> dict[str, ResponseTimes]:
        """What the survivor answers, by the names of the questions; raises `TimeoutError` when the cluster does not
        come to life, or not again."""
        groups, transactional_ids, producer = await self._prepare()
        dead = [node_id for node_id in self._cluster.addresses if node_id != self._survivor]
        for node_id in dead:
            self._cluster.kill(node_id)
        asked = [*self._reads(groups[0], transactional_ids[0]), *self._administration()]
        asked += self._writes(groups, transactional_ids, producer)
        findings = {each.name: each for each in await asyncio.gather(*(self._find(question) for question in asked))}
        await self._use_up_producer_ids()
        last = RequestCase(name="InitProducerId, no ids left", request=InitProducerIdRequest(None), version=4)
        findings[last.name] = await self._find(last)
        # What was asked for first may be forgotten by now.
        await self._ask(self._survivor, metadata("wanted"), 6)
        await self._ask(self._survivor, coordinators_of(SHARE, SHARE_KEY), 6)
        await asyncio.sleep(LATER_S)
        for node_id in dead:
            self._cluster.start(node_id)
        await self._until(lambda: self._exist("wanted", "__share_group_state"))
        return findings

    # Before the outage

    async def _prepare(self) -> tuple[list[str], list[str], tuple[int, int]]:
        """Groups and transactional ids that the survivor coordinates, and the producer of the first of these ids."""
        for node_id in self._cluster.addresses:
            await self._until(partial(self._knows_all, node_id))
        await self._until(self._create_known)
        await self._until(self._choose_survivor)
        groups = await self._coordinated(GROUP)
        transactional_ids = await self._coordinated(TRANSACTION)
        await self._until(lambda: self._all_in_sync("__consumer_offsets", "__transaction_state"))
        await self._until(lambda: self._all_in_sync(KNOWN))
        await self._until(lambda: self._is_answered(InitProducerIdRequest(None), 4))
        request = InitProducerIdRequest(transactional_ids[0], 60_000)
        await self._until(lambda: self._is_answered(request, 4))
        answer = await self._ask(self._survivor, request, 4)
        return groups, transactional_ids, (answer.producer_id, answer.producer_epoch)

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
        """Whether all replicas are in sync, and the survivor leads something; remembers what."""
        answer = await self._ask(self._survivor, metadata(*topics, creates=False), 9)
        if any(error_codes(answer)):
            return False
        partitions = [each for topic in answer.topics for each in topic.partitions]
        led = [each.partition_index for each in partitions if each.leader_id == self._survivor]
        self._led_partition = led[0] if led else -1
        return bool(led) and all(len(each.isr_nodes) == 3 for each in partitions)

    async def _coordinated(self, key_type: int) -> list[str]:
        """Keys whose coordinator is the survivor."""
        keys = [f"key-{index}" for index in range(KEYS_TRIED)]
        found: list[str] = []

        async def look() -> bool:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
            answer = await self._ask(self._survivor, request, 4)
            if any(error_codes(answer)):
                return False
            found.extend(each.key for each in answer.coordinators if each.node_id == self._survivor)
            return len(found) > 2

        await self._until(look)
        return found

    # What is asked

    def _reads(self, group: str, transactional_id: str) -> list[RequestCase]:
        resources = [
            DescribeConfigsResource(TOPIC_RESOURCE, KNOWN, None),
            DescribeConfigsResource(BROKER_RESOURCE, str(self._survivor), None),
        ]
        described = [DescribeTopicPartitionsTopic(KNOWN), DescribeTopicPartitionsTopic("missing")]
        return [
            RequestCase(name="Metadata v6 known, missing", request=metadata(KNOWN, "missing"), version=6),
            RequestCase(name="Metadata v12 missing", request=metadata("missing-too"), version=12),
            RequestCase(name="Metadata v9 all", request=MetadataRequest(topics=None), version=9),
            RequestCase(
                name="DescribeTopicPartitions known, missing",
                request=DescribeTopicPartitionsRequest(topics=described),
                version=0,
            ),
            RequestCase(name="FindCoordinator v3 group", request=coordinator_of(GROUP, group), version=3),
            RequestCase(name="FindCoordinator v6 group", request=coordinators_of(GROUP, group), version=6),
            RequestCase(
                name="FindCoordinator v3 transaction", request=coordinator_of(TRANSACTION, transactional_id), version=3
            ),
            RequestCase(
                name="FindCoordinator v6 transaction", request=coordinators_of(TRANSACTION, transactional_id), version=6
            ),
            RequestCase(
                name="FindCoordinator v6 share, no topic", request=coordinators_of(SHARE, SHARE_KEY), version=6
            ),
            RequestCase(
                name="DescribeConfigs topic, broker", request=DescribeConfigsRequest(resources=resources), version=4
            ),
            RequestCase(name="DescribeCluster", request=DescribeClusterRequest(), version=1),
            RequestCase(name="ListConfigResources", request=ListConfigResourcesRequest(), version=1),
            RequestCase(name="ListGroups", request=ListGroupsRequest(), version=4),
            RequestCase(name="InitProducerId, ids left", request=InitProducerIdRequest(None), version=4),
        ]

    def _administration(self) -> list[RequestCase]:
        """The requests that only the controller can serve."""
        created = [CreatableTopic("new", num_partitions=1, replication_factor=3)]
        altered = [IncrementalResource(TOPIC_RESOURCE, KNOWN, [IncrementalConfig("retention.ms", 0, "1000000")])]
        replaced = [AlterConfigsResource(TOPIC_RESOURCE, KNOWN, [AlterableConfig("retention.ms", "1000000")])]
        moved = [ReassignableTopic(KNOWN, [ReassignablePartition(0, [1, 2])])]
        quorum = [DescribeQuorumRequestTopic("__cluster_metadata", [DescribeQuorumRequestPartition(0)])]
        return [
            RequestCase(
                name="CreateTopics",
                request=CreateTopicsRequest(created, TIMEOUT_MS),
                version=7,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="CreateTopics, validate only",
                request=CreateTopicsRequest(created, TIMEOUT_MS, validate_only=True),
                version=7,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="DeleteTopics",
                request=DeleteTopicsRequest(topics=[DeleteTopicState(KNOWN)], timeout_ms=TIMEOUT_MS),
                version=6,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="CreatePartitions",
                request=CreatePartitionsRequest([CreatePartitionsTopic(KNOWN, 9, None)], TIMEOUT_MS),
                version=3,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="ElectLeaders",
                request=ElectLeadersRequest(0, [ElectLeadersTopicPartitions(KNOWN, [0])], TIMEOUT_MS),
                version=2,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="AlterPartitionReassignments",
                request=AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics=moved),
                version=0,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="ListPartitionReassignments",
                request=ListPartitionReassignmentsRequest(TIMEOUT_MS),
                version=0,
                limit_s=REQUEST_TIMEOUT_S,
                delay_s=RESIGNED_S,
            ),
            RequestCase(
                name="UpdateFeatures",
                request=UpdateFeaturesRequest(TIMEOUT_MS, [FeatureUpdateKey("group.version", 1)]),
                version=1,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="IncrementalAlterConfigs",
                request=IncrementalAlterConfigsRequest(altered),
                version=1,
                limit_s=NO_TIMEOUT_S,
            ),
            RequestCase(name="AlterConfigs", request=AlterConfigsRequest(replaced), version=2, limit_s=NO_TIMEOUT_S),
            RequestCase(
                name="DescribeQuorum",
                request=DescribeQuorumRequest(quorum),
                version=0,
                limit_s=NO_TIMEOUT_S,
                delay_s=RESIGNED_S,
            ),
            RequestCase(
                name="UnregisterBroker",
                request=UnregisterBrokerRequest(99),
                version=0,
                limit_s=NO_TIMEOUT_S,
                delay_s=RESIGNED_S,
            ),
        ]

    def _writes(
        self, groups: Sequence[str], transactional_ids: Sequence[str], producer: tuple[int, int]
    ) -> list[RequestCase]:
        """The requests that need replication: the dead nodes stay in the ISR while there is no controller."""
        now_ms = self._environment.clock.wall_ms()
        data = batch.build([Record(-1, now_ms, None, b"value")])
        produced = [PartitionProduceData(self._led_partition, data)]
        return [
            RequestCase(
                name="Produce, all",
                request=ProduceRequest(
                    acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=KNOWN, partition_data=produced)]
                ),
                version=9,
                limit_s=REQUEST_TIMEOUT_S,
            ),
            RequestCase(
                name="OffsetCommit",
                request=OffsetCommitRequest(
                    group_id=groups[0],
                    topics=[OffsetCommitRequestTopic(KNOWN, partitions=[OffsetCommitRequestPartition(0, 1)])],
                ),
                version=8,
                limit_s=NO_TIMEOUT_S,
            ),
            RequestCase(
                name="ConsumerGroupHeartbeat, joins",
                request=ConsumerGroupHeartbeatRequest(
                    group_id=groups[1],
                    member_id=uuid_text(bytes([1]) * 16),
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=[KNOWN],
                    topic_partitions=[],
                ),
                version=0,
                limit_s=NO_TIMEOUT_S,
            ),
            RequestCase(
                name="ShareGroupHeartbeat, joins",
                request=ShareGroupHeartbeatRequest(groups[2], uuid_text(bytes([2]) * 16), 0, None, [KNOWN]),
                version=1,
                limit_s=NO_TIMEOUT_S,
            ),
            RequestCase(
                name="InitProducerId, transactional",
                request=InitProducerIdRequest(transactional_ids[1], 60_000),
                version=4,
                limit_s=NO_TIMEOUT_S,
            ),
            RequestCase(
                name="AddPartitionsToTxn",
                request=AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=transactional_ids[0],
                    v3_and_below_producer_id=producer[0],
                    v3_and_below_producer_epoch=producer[1],
                    v3_and_below_topics=[AddPartitionsToTxnTopic(KNOWN, [0])],
                ),
                version=3,
                limit_s=NO_TIMEOUT_S,
            ),
        ]

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

    # How it is asked

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
