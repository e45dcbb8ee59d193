"""Three whole nodes in one simulated world whose metadata a test writes: it stands in for the controller they share.

Each node leads a metadata log of its own. What the test decides is appended to all of them, so all have the same topics
and brokers; ISR changes of leaders come here, are compared with the epochs, and go the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import pytest

from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import FencedLeaderEpoch, IneligibleReplica, InvalidUpdateVersion, NotController
from millbeck.metadata.image import PartitionRegistration
from millbeck.metadata.image.directories import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from millbeck.metadata.records import (
    NO_LEADER,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordedEndpoint,
    RegisterBrokerRecord,
    TopicRecord,
)
from millbeck.replication.partition import Partition
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.server.replicas.log_manager import LogManager
from millbeck.simulation import World
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
    AssignReplicasToDirsDirectoryResult,
    AssignReplicasToDirsPartitionResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopicResult,
)
from tests.unit.server.harness.broker_harness import SETTINGS, one_batch
from tests.unit.server.harness.scraping import samples

T = TypeVar("T")
TOPIC_ID = bytes(range(16))


class ThreeBrokers:
    def __init__(self, seed: int = 1, **settings: str) -> None:
        self.world = World(seed)
        never = {"broker.session.timeout.ms": str(10**9)}
        self.settings = SETTINGS | never | {key.replace("_", "."): value for key, value in settings.items()}
        self.machines = {node_id: self.world.node(f"n{node_id}") for node_id in (1, 2, 3)}
        self.nodes: dict[int, Node] = {}
        self.records: list[MetadataRecord] = []
        """Everything that was decided, for nodes that come back."""
        self.isr_changes: list[tuple[int, ...]] = []
        self.is_reachable = True
        self.assigned: list[tuple[int, bytes]] = []
        """Who said that it is in which directory."""

    def run(self, scenario: Callable[[ThreeBrokers, Environment], Coroutine[Any, Any, T]], limit_s: float = 900) -> T:
        async def whole(environment: Environment) -> T:
            for node_id in (1, 2, 3):
                await self.start(node_id)
            result = await scenario(self, environment)
            assert [node.broker.unexpected_errors for node in self.nodes.values()] == [0] * len(self.nodes)
            return result

        with pytest.MonkeyPatch.context() as patch, self.world:
            # A node that comes back is told of its topics later than one whose metadata log is its cluster's.
            patch.setattr(LogManager, "mark_strays", lambda self: None)
            return self.world.run(whole, limit_s=limit_s)

    # Machines.

    async def start(self, node_id: int) -> None:
        self.machines[node_id].start(lambda environment: self._main(environment, node_id))
        while node_id not in self.nodes:
            await asyncio.sleep(0.01)
        node = self.nodes[node_id]
        endpoint = RecordedEndpoint(name="PLAINTEXT", host=f"n{node_id}", port=9092)
        epoch = node.broker.replication.broker_epoch()
        known = [record for record in self.records if not _is_about(record, node_id)]
        registration = RegisterBrokerRecord(
            broker_id=node_id, incarnation_id=bytes(16), broker_epoch=epoch, end_points=[endpoint], fenced=False
        )
        self.records = [*known, registration]
        for each, other in self.nodes.items():
            await _append(other, *(self.records if each == node_id else [registration]))

    async def _main(self, environment: Environment, node_id: int) -> None:
        config = NodeConfig(self.settings | {"node.id": str(node_id), "listeners": f"PLAINTEXT://n{node_id}:9092"})
        if environment.files.exists("/data/__cluster_metadata-0"):
            # Its metadata comes from the test, once it is up: only data is kept.
            environment.files.remove_tree("/data/__cluster_metadata-0")
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        node.broker.replication.isr_changes._send = self.alter_partition
        node.broker.replication.assignments._send = self.assign_directories
        self.nodes[node_id] = node
        await node.failed

    def crash(self, node_id: int) -> None:
        self.machines[node_id].crash()
        del self.nodes[node_id]

    # The controller.

    async def decide(self, *records: MetadataRecord) -> None:
        self.records += records
        for node in list(self.nodes.values()):
            await _append(node, *records)

    async def create(self, *, leader: int = 1, replicas: tuple[int, ...] = (1, 2, 3), **configs: str) -> None:
        settings = [
            ConfigRecord(resource_type=2, resource_name="t", name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        await self.decide(
            TopicRecord(name="t", topic_id=TOPIC_ID),
            *settings,
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=list(replicas),
                isr=list(replicas),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[UNASSIGNED_DIRECTORY] * len(replicas),
            ),
        )

    async def change(self, **fields: Any) -> None:
        if "replicas" in fields:
            fields["directories"] = [UNASSIGNED_DIRECTORY] * len(fields["replicas"])
        await self.decide(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))

    async def elect(self, leader: int, isr: tuple[int, ...]) -> None:
        await self.change(leader=leader, isr=list(isr))

    def registration(self) -> PartitionRegistration:
        image = next(iter(self.nodes.values())).broker.image
        return image.topics.by_id[TOPIC_ID].partitions[0]

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        await asyncio.sleep(0.005)
        if not self.is_reachable:
            raise NotController
        results = [await self._alter(asked) for topic in request.topics for asked in topic.partitions]
        return AlterPartitionResponse(topics=[AlterPartitionTopicResult(TOPIC_ID, results)])

    async def _alter(self, asked: AlterPartitionPartition) -> AlterPartitionPartitionResult:
        current = self.registration()
        if asked.leader_epoch != current.leader_epoch:
            return AlterPartitionPartitionResult(0, FencedLeaderEpoch.code)
        if asked.partition_epoch != current.partition_epoch:
            return AlterPartitionPartitionResult(0, InvalidUpdateVersion.code)
        isr = [member.broker_id for member in asked.new_isr_with_epochs]
        if any(current.directory(member) == LOST_DIRECTORY for member in isr):
            return AlterPartitionPartitionResult(0, IneligibleReplica.code)
        self.isr_changes.append(tuple(isr))
        await self.change(isr=isr)
        after = self.registration()
        return AlterPartitionPartitionResult(
            0, 0, after.leader, after.leader_epoch, isr, partition_epoch=after.partition_epoch
        )

    async def assign_directories(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        """One whose directory is lost is in sync no more, and another one leads; nobody, when it was the last."""
        await asyncio.sleep(0.005)
        (directory,) = request.directories
        self.assigned.append((request.broker_id, directory.id))
        current = self.registration()
        directories = list(current.directories)
        directories[current.replicas.index(request.broker_id)] = directory.id
        if directory.id == LOST_DIRECTORY:
            others = [member for member in current.isr if member != request.broker_id]
            isr = others or list(current.isr)
            if current.leader == request.broker_id:
                await self.change(isr=isr, leader=others[0] if others else NO_LEADER, directories=directories)
            else:
                await self.change(isr=isr, directories=directories)
        elif current.leader == NO_LEADER and request.broker_id in current.isr:
            await self.change(leader=request.broker_id, directories=directories)
        elif LOST_DIRECTORY in current.directories:
            await self.change(directories=directories)
        outcome = AssignReplicasToDirsPartitionResult(0)
        topics = [AssignReplicasToDirsTopicResult(TOPIC_ID, [outcome])]
        return AssignReplicasToDirsResponse(directories=[AssignReplicasToDirsDirectoryResult(directory.id, topics)])

    # Clients.

    def partition(self, node_id: int) -> Partition:
        return self.nodes[node_id].broker.topics.by_id[TOPIC_ID].partitions[0]

    @property
    def leader(self) -> int:
        return self.registration().leader

    async def connect(self, environment: Environment, node_id: int) -> WireClient:
        _, client = await environment.network.connect(WireClient, host=f"n{node_id}", port=9092)
        return cast(WireClient, client)

    async def produce(
        self,
        environment: Environment,
        *values: bytes,
        node_id: int | None = None,
        timeout_ms: int = 5000,
        **fields: Any,
    ) -> tuple[int, int]:
        """Error code and offset of one batch with acks=all."""
        client = await self.connect(environment, self.leader if node_id is None else node_id)
        data = PartitionProduceData(0, one_batch(*values, **fields))
        request = ProduceRequest(
            acks=-1, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name="t", partition_data=[data])]
        )
        (answer,) = (await client.ask(request, 9)).responses[0].partition_responses
        client.close()
        return answer.error_code, answer.base_offset

    async def until(self, condition: Callable[[], bool], limit_s: float = 60, interval_s: float = 0.01) -> None:
        async with asyncio.timeout(limit_s):
            while not condition():
                await asyncio.sleep(interval_s)

    async def until_sampled(
        self, node_id: int, is_met: Callable[[dict[str, float]], bool], limit_s: float = 60
    ) -> None:
        """Scrape a node until its samples are as wanted; a page takes some milliseconds to make."""
        await self.until(lambda: is_met(samples(self.nodes[node_id])), limit_s, interval_s=0.5)

    def bytes_of(self, node_id: int) -> bytes:
        """Everything in a replica's log."""
        log = self.partition(node_id).log
        found = b""
        for segment in log.segments:
            found += segment.handle.get().read(segment.size, 0)
        return found


def _is_about(record: MetadataRecord, node_id: int) -> bool:
    return isinstance(record, RegisterBrokerRecord) and record.broker_id == node_id


async def _append(node: Node, *records: MetadataRecord) -> None:
    await node.broker.quorum.submit(lambda image: Result(response=None, records=list(records)))
