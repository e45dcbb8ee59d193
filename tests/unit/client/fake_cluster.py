"""Brokers that answer as they are told, on the simulator's network: what they do is up to the test.

A `FakeCluster` has topics, leaders and logs in memory and answers the requests of producers and consumers as a broker
would, batches numbered and checked included. A test replaces single answers:

    cluster.on(ProduceRequest, lambda call: CLOSE)          # for all brokers, until it is taken back
    cluster.next(ProduceRequest, CLOSE, LATER(2.0))         # for the next two requests, then as usual

An answer is a response, an awaitable of one, `CLOSE` (drop the connection without a word), `SILENCE` (never answer),
or `USUAL`. Requests of a connection are handled one after another, as a broker does.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, TypeVar, cast

from millbeck.client.apis import call_of
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    FencedLeaderEpoch,
    InvalidProducerEpoch,
    MemberIdRequired,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.records import batch
from millbeck.simulation import World
from millbeck.simulation.environment.options import NetworkOptions, WorldOptions
from millbeck.wire.api_keys import APIS, Api
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.framing import read_request_header, response_prefix
from millbeck.wire.messages import fetch as fetch_messages
from millbeck.wire.messages import produce as produce_messages
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from millbeck.wire.messages.fetch import FetchRequest, FetchResponse
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from millbeck.wire.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from millbeck.wire.messages.log_offsets import (
    EpochEndOffset,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from millbeck.wire.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from millbeck.wire.messages.produce import ProduceRequest, ProduceResponse
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

T = TypeVar("T")
CLOSE = object()
SILENCE = object()
USUAL = object()
_LENGTH = Struct(">i")


@dataclass
class Call:
    """A request as a broker sees it."""

    message: Any
    version: int
    node_id: int
    client_id: str | None
    connection: int


@dataclass
class FakePartition:
    """A log that takes batches as a leader does; offsets are counted, sequences checked."""

    leader_id: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    start_offset: int = 0
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The epoch and the last sequence of each producer."""
    known: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Base offsets by producer, epoch and base sequence."""

    @property
    def end_offset(self) -> int:
        return batch.read_header(self.batches[-1]).next_offset if self.batches else self.start_offset

    def append(self, data: bytes) -> tuple[int, int]:
        """An error code and the base offset."""
        header = batch.verify(data)
        if header.has_producer_id:
            identity = (header.producer_id, header.producer_epoch, header.base_sequence)
            if identity in self.known:
                return 0, self.known[identity]
            epoch, last = self.producers.get(header.producer_id, (header.producer_epoch, -1))
            if header.producer_epoch < epoch:
                return InvalidProducerEpoch.code, -1
            expected = last + 1 if header.producer_epoch == epoch else 0
            if header.base_sequence != expected:
                return OutOfOrderSequenceNumber.code, -1
            self.producers[header.producer_id] = (header.producer_epoch, header.last_sequence)
            self.known[identity] = self.end_offset
        base_offset = self.end_offset
        self.batches.append(batch.prefix(base_offset, header.length, self.leader_epoch) + data[16:])
        return 0, base_offset

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for one in self.batches for record in batch.records_of(one)]

    def read(self, offset: int) -> bytes:
        return b"".join(one for one in self.batches if batch.read_header(one).last_offset >= offset)


class _Connection(asyncio.Protocol):
    def __init__(self, broker: FakeBroker) -> None:
        self._broker = broker
        self._received = b""
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.number = broker.cluster.count_connection()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._broker.connections.append(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            self._frames.put_nowait(self._received[4:end])
            self._received = self._received[end:]

    def connection_lost(self, error: Exception | None) -> None:
        self._task.cancel()
        self._broker.connections.remove(self)

    async def _serve(self) -> None:
        while True:
            frame = await self._frames.get()
            header = read_request_header(frame)
            api = APIS[header.api_key]
            version = header.api_version
            if api.key == 18 and version > self._broker.cluster.ranges[18][1]:
                self._reply(api, 0, header.correlation_id, self._broker.cluster.versions(35))
                continue
            message, _ = decoder(api.request, version)(frame, header.body_position)
            call = Call(message, version, self._broker.node_id, header.client_id, self.number)
            answer = self._broker.cluster.answer(call)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is CLOSE:
                self.transport.abort()
                return
            if answer is SILENCE:
                await asyncio.get_running_loop().create_future()
            if answer is not None:
                self._reply(api, version, header.correlation_id, answer)

    def _reply(self, api: Api, version: int, correlation_id: int, answer: Any) -> None:
        body = answer if isinstance(answer, bytes) else encoder(api.response, version)(answer)
        self.transport.write(response_prefix(api.key, version, correlation_id, len(body)) + body)


class FakeBroker:
    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.connections: list[_Connection] = []
        self.port = 0
        self._close: Callable[[], None] = lambda: None

    async def start(self) -> None:
        listening = await self.cluster.environment.network.listen(
            lambda: _Connection(self), host="127.0.0.1", port=self.port
        )
        self.port = listening.port
        self._close = listening.close

    def stop(self) -> None:
        self._close()
        self.drop_connections()

    def drop_connections(self) -> None:
        for connection in list(self.connections):
            connection.transport.abort()


Handler = Callable[[Call], Any]


class FakeCluster:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.brokers: dict[int, FakeBroker] = {}
        self.topics: dict[str, tuple[bytes, dict[int, FakePartition]]] = {}
        self.calls: list[Call] = []
        # As most clusters, it collects no metrics of clients.
        self.ranges = {key: (api.min_version, api.max_version) for key, api in APIS.items() if key not in (71, 72)}
        self.creates_topics = False
        self.next_producer_id = 1000
        self.coordinator_id: int | None = None
        self.committed: dict[tuple[str, str, int], tuple[int, int, str | None]] = {}
        self.generation = 0
        self.member_count = 0
        self._handlers: dict[type, Handler] = {}
        self._queued: dict[type, deque[Any]] = {}
        self._connection_count = 0

    async def add_broker(self, node_id: int) -> FakeBroker:
        broker = self.brokers[node_id] = FakeBroker(self, node_id)
        await broker.start()
        return broker

    def add_topic(self, name: str, partition_count: int = 1, leader_id: int | None = None) -> list[FakePartition]:
        nodes = sorted(self.brokers)
        partitions = {
            number: FakePartition(nodes[number % len(nodes)] if leader_id is None else leader_id)
            for number in range(partition_count)
        }
        self.topics[name] = (self.environment.randomness.uuid(), partitions)
        return list(partitions.values())

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers.values())

    def limit(self, request: type, low: int, high: int) -> None:
        """Serve these versions of an API only; an empty range hides it."""
        key = call_of(request).key
        if low > high:
            del self.ranges[key]
        else:
            self.ranges[key] = (low, high)

    def on(self, request: type, handler: Handler | None) -> None:
        if handler is None:
            self._handlers.pop(request, None)
        else:
            self._handlers[request] = handler

    def next(self, request: type, *answers: Any) -> None:
        self._queued.setdefault(request, deque()).extend(answers)

    def asked(self, request: type) -> list[Call]:
        return [call for call in self.calls if type(call.message) is request]

    def count_connection(self) -> int:
        self._connection_count += 1
        return self._connection_count

    @property
    def connection_count(self) -> int:
        return sum(len(broker.connections) for broker in self.brokers.values())

    # answers

    def answer(self, call: Call) -> Any:
        self.calls.append(call)
        queued = self._queued.get(type(call.message))
        answer = queued.popleft() if queued else USUAL
        if callable(answer):
            answer = answer(call)
        if answer is USUAL:
            handler = self._handlers.get(type(call.message))
            answer = USUAL if handler is None else handler(call)
        return self.usual(call) if answer is USUAL else answer

    def usual(self, call: Call) -> Any:
        return _USUAL[type(call.message)](self, call)

    def versions(self, error_code: int = 0) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=error_code,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in self.ranges.items()
            ],
        )

    def metadata(self, call: Call) -> MetadataResponse:
        request: MetadataRequest = call.message
        names = list(self.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
        if self.creates_topics and request.allow_auto_topic_creation:
            for name in names:
                if name not in self.topics:
                    self.add_topic(name)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=broker.port)
                for node_id, broker in self.brokers.items()
            ],
            cluster_id="fake",
            controller_id=min(self.brokers),
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=UnknownTopicOrPartition.code, name=name)
        topic_id, partitions = self.topics[name]
        return MetadataResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=[
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=partition.leader_id,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=[partition.leader_id],
                    isr_nodes=[partition.leader_id],
                )
                for number, partition in partitions.items()
            ],
        )

    def _find(self, call: Call, name: str, topic_id: bytes, number: int) -> FakePartition | int:
        """The partition, or the error code for it."""
        found = self.topics.get(name)
        if not name:
            found = next((topic for topic in self.topics.values() if topic[0] == topic_id), None)
        if found is None:
            return UnknownTopicOrPartition.code if name else UnknownTopicId.code
        partition = found[1].get(number)
        if partition is None:
            return UnknownTopicOrPartition.code
        return partition if partition.leader_id == call.node_id else NotLeaderOrFollower.code

    def produce(self, call: Call) -> ProduceResponse | None:
        request: ProduceRequest = call.message
        response = ProduceResponse()
        for topic in request.topic_data:
            results = produce_messages.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for data in topic.partition_data:
                partition = self._find(call, topic.name, topic.topic_id, data.index)
                if isinstance(partition, int):
                    error_code, base_offset = partition, -1
                else:
                    assert data.records is not None
                    error_code, base_offset = partition.append(data.records)
                results.partition_responses.append(
                    produce_messages.PartitionProduceResponse(
                        index=data.index, error_code=error_code, base_offset=base_offset
                    )
                )
            response.responses.append(results)
        return None if request.acks == 0 else response

    async def fetch(self, call: Call) -> FetchResponse:
        """Sessions are never granted, so every request names all it wants."""
        request: FetchRequest = call.message
        response = FetchResponse()
        for topic in request.topics:
            results = fetch_messages.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for wanted in topic.partitions:
                partition = self._find(call, topic.topic, topic.topic_id, wanted.partition)
                result = fetch_messages.FetchedPartition(partition_index=wanted.partition)
                if isinstance(partition, int):
                    result.error_code = partition
                elif -1 != wanted.current_leader_epoch != partition.leader_epoch:
                    is_behind = wanted.current_leader_epoch < partition.leader_epoch
                    result.error_code = (FencedLeaderEpoch if is_behind else UnknownLeaderEpoch).code
                elif not partition.start_offset <= wanted.fetch_offset <= partition.end_offset:
                    result.error_code = OffsetOutOfRange.code
                else:
                    result.high_watermark = result.last_stable_offset = partition.end_offset
                    result.log_start_offset = partition.start_offset
                    result.records = partition.read(wanted.fetch_offset)
                results.partitions.append(result)
            response.responses.append(results)
        if not any(found.records or found.error_code for topic in response.responses for found in topic.partitions):
            await asyncio.sleep(request.max_wait_ms / 1000)
        return response

    def list_offsets(self, call: Call) -> ListOffsetsResponse:
        request: ListOffsetsRequest = call.message
        response = ListOffsetsResponse()
        for topic in request.topics:
            results = ListOffsetsTopicResponse(name=topic.name)
            for wanted in topic.partitions:
                partition = self._find(call, topic.name, b"", wanted.partition_index)
                result = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
                if isinstance(partition, int):
                    result.error_code = partition
                elif wanted.timestamp == -1:
                    result.offset, result.leader_epoch = partition.end_offset, partition.leader_epoch
                elif wanted.timestamp == -2:
                    result.offset, result.leader_epoch = partition.start_offset, partition.leader_epoch
                else:
                    records = [record for one in partition.batches for record in batch.records_of(one)]
                    found = next((record for record in records if record.timestamp >= wanted.timestamp), None)
                    if found is not None:
                        result.offset, result.timestamp = found.offset, found.timestamp
                results.partitions.append(result)
            response.topics.append(results)
        return response

    def epoch_ends(self, call: Call) -> OffsetForLeaderEpochResponse:
        """Where each epoch ends, by the epochs in the batches."""
        response = OffsetForLeaderEpochResponse()
        for topic in call.message.topics:
            results = OffsetForLeaderTopicResult(topic=topic.topic)
            for wanted in topic.partitions:
                partition = self._find(call, topic.topic, b"", wanted.partition)
                result = EpochEndOffset(partition=wanted.partition)
                if isinstance(partition, int):
                    result.error_code = partition
                else:
                    known = [
                        header
                        for header in map(batch.read_header, partition.batches)
                        if header.partition_leader_epoch <= wanted.leader_epoch
                    ]
                    if known:
                        result.leader_epoch = known[-1].partition_leader_epoch
                        result.end_offset = known[-1].next_offset
                results.partitions.append(result)
            response.topics.append(results)
        return response

    def init_producer_id(self) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(producer_id=self.next_producer_id, producer_epoch=0)

    # groups: one member at a time, which leads

    def find_coordinator(self, call: Call) -> FindCoordinatorResponse:
        node_id = self.coordinator_id or min(self.brokers)
        port = self.brokers[node_id].port
        if call.version < 4:
            return FindCoordinatorResponse(node_id=node_id, host="127.0.0.1", port=port)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=node_id, host="127.0.0.1", port=port)
                for key in call.message.coordinator_keys
            ]
        )

    def join_group(self, call: Call) -> JoinGroupResponse:
        request: JoinGroupRequest = call.message
        if not request.member_id and request.group_instance_id is None and call.version >= 4:
            self.member_count += 1
            return JoinGroupResponse(error_code=MemberIdRequired.code, member_id=f"m{self.member_count}")
        self.generation += 1
        member_id = request.member_id or f"static-{request.group_instance_id}"
        chosen = request.protocols[0]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=request.protocol_type,
            protocol_name=chosen.name,
            leader=member_id,
            member_id=member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member_id, group_instance_id=request.group_instance_id, metadata=chosen.metadata
                )
            ],
        )

    def sync_group(self, call: Call) -> SyncGroupResponse:
        request: SyncGroupRequest = call.message
        own = [entry.assignment for entry in request.assignments if entry.member_id == request.member_id]
        return SyncGroupResponse(assignment=own[0] if own else b"")

    def _topic_name(self, name: str, topic_id: bytes) -> str:
        return name or next(known for known, (found_id, _) in self.topics.items() if found_id == topic_id)

    def offset_commit(self, call: Call) -> OffsetCommitResponse:
        request: OffsetCommitRequest = call.message
        response = OffsetCommitResponse()
        for topic in request.topics:
            name = self._topic_name(topic.name, topic.topic_id)
            results = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            for entry in topic.partitions:
                key = (request.group_id, name, entry.partition_index)
                self.committed[key] = (entry.committed_offset, entry.committed_leader_epoch, entry.committed_metadata)
                results.partitions.append(OffsetCommitResponsePartition(partition_index=entry.partition_index))
            response.topics.append(results)
        return response

    def offset_fetch(self, call: Call) -> OffsetFetchResponse:
        request: OffsetFetchRequest = call.message
        if call.version < 8:
            topics = [
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetFetchResponsePartition(**self._committed(request.group_id, topic.name, number))
                        for number in topic.partition_indexes
                    ],
                )
                for topic in request.topics or ()
            ]
            return OffsetFetchResponse(topics=topics)
        groups = []
        for group in request.groups:
            wanted = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in group.topics or ()]
            if group.topics is None:
                names = sorted({name for group_id, name, _ in self.committed if group_id == group.group_id})
                wanted = [
                    (name, bytes(16), [number for _, topic, number in sorted(self.committed) if topic == name])
                    for name in names
                ]
            groups.append(
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=name,
                            topic_id=topic_id,
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    **self._committed(group.group_id, self._topic_name(name, topic_id), number)
                                )
                                for number in numbers
                            ],
                        )
                        for name, topic_id, numbers in wanted
                    ],
                )
            )
        return OffsetFetchResponse(groups=groups)

    def _committed(self, group_id: str, name: str, number: int) -> dict[str, Any]:
        offset, epoch, metadata = self.committed.get((group_id, name, number), (-1, -1, ""))
        return {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": epoch,
            "metadata": metadata,
        }


_USUAL: dict[type, Callable[[FakeCluster, Call], Any]] = {
    ApiVersionsRequest: lambda cluster, call: cluster.versions(),
    MetadataRequest: lambda cluster, call: cluster.metadata(call),
    ProduceRequest: lambda cluster, call: cluster.produce(call),
    FetchRequest: lambda cluster, call: cluster.fetch(call),
    ListOffsetsRequest: lambda cluster, call: cluster.list_offsets(call),
    InitProducerIdRequest: lambda cluster, call: cluster.init_producer_id(),
    OffsetForLeaderEpochRequest: lambda cluster, call: cluster.epoch_ends(call),
    FindCoordinatorRequest: lambda cluster, call: cluster.find_coordinator(call),
    JoinGroupRequest: lambda cluster, call: cluster.join_group(call),
    SyncGroupRequest: lambda cluster, call: cluster.sync_group(call),
    HeartbeatRequest: lambda cluster, call: HeartbeatResponse(),
    LeaveGroupRequest: lambda cluster, call: LeaveGroupResponse(),
    OffsetCommitRequest: lambda cluster, call: cluster.offset_commit(call),
    OffsetFetchRequest: lambda cluster, call: cluster.offset_fetch(call),
}


def produce_error(code: int, **fields: Any) -> Handler:
    """Refuse every partition of a Produce request without storing anything."""

    def refuse(call: Call) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                produce_messages.TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        produce_messages.PartitionProduceResponse(index=entry.index, error_code=code, **fields)
                        for entry in topic.partition_data
                    ],
                )
                for topic in call.message.topic_data
            ]
        )

    return refuse


def later(seconds: float, answer: Any = USUAL) -> Handler:
    """Answer after a while."""

    def wait(call: Call) -> Any:
        async def waited(cluster: FakeCluster = _cluster_of[0]) -> Any:
            await asyncio.sleep(seconds)
            found = cluster.usual(call) if answer is USUAL else answer
            return await found if inspect.isawaitable(found) else found

        return waited()

    return wait


_cluster_of: list[FakeCluster] = []

Scenario = Callable[[FakeCluster], Coroutine[Any, Any, T]]


def simulate(scenario: Scenario[T], *, brokers: int = 1, seed: int = 1, limit_s: float = 3600) -> T:
    """Run a scenario with a fake cluster in virtual time; whatever is left running afterwards fails it."""

    async def whole(environment: Environment) -> T:
        cluster = FakeCluster(environment)
        _cluster_of[:] = [cluster]
        before = asyncio.all_tasks()
        for node_id in range(1, brokers + 1):
            await cluster.add_broker(node_id)
        result = await scenario(cluster)
        # What the client closed takes a moment to reach the brokers.
        await asyncio.sleep(1)
        left = asyncio.all_tasks() - before
        assert not left, f"tasks left behind: {left}"
        return result

    options = WorldOptions(network=NetworkOptions(spike=0.0))
    with World(seed, options) as world:
        return world.run(whole, limit_s=limit_s)
