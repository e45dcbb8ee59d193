"""Disks rot under a whole cluster: who else has the records takes over, and where nobody has them nothing is hidden.

One topic has three replicas, the other one. A bit of one batch of each goes bad on the disk that its leader has. With
three replicas the damaged one is cut and copied anew, and every acknowledged record is read. With one, the partition
has no leader until its node's log is repaired as docs/operations.md says; then all records before the damage are there,
those from the damage on are kept beside the log, and no other partition has lost anything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import HEADER_SIZE
from millbeck.server.node import Node
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.log import Log
from millbeck.storage.repair import cut, find_damage

COUNT = 24
CORRUPT = "is corrupt at position"
ONE, THREE = "one", "three"
SETTINGS = {"log.scrub.interval.ms": "3000", "min.insync.replicas": "1", "unclean.leader.election.enable": "false"}


async def until(condition: Callable[[], bool], limit_s: float = 120) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.05)


class Run:
    def __init__(self, cluster: SimCluster, environment: Environment, seed: int) -> None:
        self.cluster = cluster
        self.dice = random.Random(seed)
        self._environment = environment
        self._servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
        self.acknowledged: dict[TopicPartition, list[bytes]] = {}

    async def create(self) -> None:
        configs = {"flush.messages": "1", "internal.segment.bytes": str(self.dice.choice([600, 1500, 1 << 20]))}
        topics = [
            NewTopic(name=ONE, partition_count=3, replication_factor=1, configs=configs),
            NewTopic(
                name=THREE, partition_count=2, replication_factor=3, configs=configs | {"min.insync.replicas": "2"}
            ),
        ]
        async with Admin({"bootstrap.servers": self._servers}, environment=self._environment) as admin:
            (await admin.create_topics(topics)).all()

    async def write(self, partitions: list[TopicPartition], count: int) -> None:
        async with Producer(
            {"bootstrap.servers": self._servers, "acks": "all"}, environment=self._environment
        ) as producer:
            for topic, partition in partitions:
                written = self.acknowledged.setdefault(TopicPartition(topic, partition), [])
                for _ in range(count):
                    value = f"{topic}-{partition}-{len(written)}".encode() * 3
                    await producer.send(topic, value, partition=partition)
                    written.append(value)

    async def read(self, partition: TopicPartition) -> list[bytes]:
        """Everything that is in a partition."""
        settings = {"bootstrap.servers": self._servers, "auto.offset.reset": "earliest"}
        async with Consumer(settings, environment=self._environment) as consumer:
            [end] = (await consumer.end_offsets([partition])).values()
            consumer.assign([partition])
            found: list[bytes] = []
            while await consumer.position(partition) < end:
                for records in (await consumer.poll()).values():
                    found += [record.value or b"" for record in records]
        return found

    async def offline(self) -> dict[TopicPartition, tuple[int, tuple[int, ...]]]:
        """Leader and offline replicas of the partitions that have such."""
        async with Admin({"bootstrap.servers": self._servers}, environment=self._environment) as admin:
            topics = (await admin.describe_topics([ONE, THREE])).all()
        return {
            TopicPartition(name, each.partition): (each.leader_id, each.offline)
            for name, topic in topics.items()
            for each in topic.partitions
            if each.offline
        }

    def log_of(self, member: SimNode, partition: TopicPartition) -> Log:
        topic = self.cluster.nodes[member.name].broker.topics.by_name[partition.topic]
        return topic.partitions[partition.partition].log

    def rot(self, partition: TopicPartition) -> tuple[SimNode, int]:
        """A bit of the records of one of the leader's batches: on whose disk, and in the batch with which offset."""
        leader = self.cluster.leader_of(*partition)
        assert leader is not None
        log = self.log_of(leader, partition)
        offset = self.dice.randrange(log.flushed_offset)
        segment = log.segments[log.segment_index_for(offset)]
        [(position, header)] = [
            (position, header)
            for position, header in segment.headers()
            if header.base_offset <= offset <= header.last_offset
        ]
        inode = self.cluster.machine(leader).disk.find(segment.log_path)
        assert isinstance(inode, Inode)
        inode.rot(8 * (position + self.dice.randrange(HEADER_SIZE, header.size_bytes)))
        return leader, header.base_offset

    async def repair(self, member: SimNode, partition: TopicPartition) -> int:
        """As `millbeck log repair` does it; where the log ends then."""
        if self.dice.random() < 0.5:
            await self.cluster.stop(member)
        self.cluster.machine(member).crash()
        disk = self.cluster.machine(member).disk
        files = disk.mount()
        damage = find_damage(files, "/data", partition)
        assert damage is not None
        kept_before = {name for name in files.names(f"/data/{partition}") if name.endswith(".cut")}
        assert not kept_before
        end = cut(files, "/data", partition, damage, now_ms=0)
        assert end == damage.first_offset
        kept = b"".join(_content(disk.find(path)) for path in damage.kept_in)
        assert len(kept) == damage.size_bytes
        disk.unmount(files)
        return end


def _content(inode: object) -> bytes:
    assert isinstance(inode, Inode)
    return bytes(inode.content)


def test_nothing_acknowledged_is_lost_but_what_a_repair_says(damage_seed: int) -> None:
    cluster = SimCluster(damage_seed, is_combined=damage_seed % 2 == 0, settings=SETTINGS)

    async def scenario(environment: Environment) -> None:
        run = Run(cluster, environment, damage_seed)
        cluster.start_all()
        await until(lambda: len(cluster.nodes) == len(cluster.members))
        await until(lambda: all(_broker_count(node) == 3 for node in cluster.running()))
        await run.create()
        alone, shared = TopicPartition(ONE, run.dice.randrange(3)), TopicPartition(THREE, run.dice.randrange(2))
        everything = [
            *(TopicPartition(ONE, each) for each in range(3)),
            *(TopicPartition(THREE, each) for each in (0, 1)),
        ]
        sound = [each for each in everything if each != alone]
        await run.write(everything, COUNT)
        await asyncio.sleep(3)  # Checkpoints are written every second.
        holder, damaged_offset = run.rot(alone)
        victim, _ = run.rot(shared)

        await until(lambda: cluster.leader_of(*alone) is None)
        await until(lambda: cluster.nodes[victim.name].broker.replication.repair.repaired == 1)
        await until(lambda: len(_isr(cluster, shared)) == 3)
        assert await run.offline() == {alone: (-1, (holder.number,))}
        assert CORRUPT in (run.log_of(holder, alone).offline_reason or "")
        await run.write(sound, 3)

        end = await run.repair(holder, alone)
        assert end == damaged_offset
        cluster.start_all()
        await until(lambda: cluster.leader_of(*alone) is holder)
        del run.acknowledged[alone][end:]
        await run.write(everything, 3)
        for partition in everything:
            assert await run.read(partition) == run.acknowledged[partition], partition
        await until(lambda: all(len(_isr(cluster, each)) == 3 for each in everything if each.topic == THREE))
        assert await run.offline() == {}
        assert cluster.unexpected_errors() == {}

    with cluster.world as world:
        world.run(scenario, limit_s=600)


def _broker_count(node: Node) -> int:
    return sum(broker.is_active for broker in node.broker.image.cluster.brokers.values())


def _isr(cluster: SimCluster, partition: TopicPartition) -> tuple[int, ...]:
    image = max((node.broker.image for node in cluster.running()), key=lambda each: each.offset)
    found = image.topics.partition(*partition)
    return () if found is None else found.isr
