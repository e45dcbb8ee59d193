"""Damaged and full replicas step back, are mended, and come back."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from millbeck.kernel.environment import Bytes, Environment
from millbeck.kernel.errors import KafkaStorageError
from millbeck.metadata.image.directories import LOST_DIRECTORY
from millbeck.metadata.records import NO_LEADER, RemoveTopicRecord
from millbeck.server.replicas.directory_assignments import DirectoryAssignments, TopicIdPartition
from millbeck.server.replicas.repair import ReplicaRepair
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.environment.files import SimFile, SimFiles
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.damage_removal import RepairJob, RepairResult
from millbeck.storage.directory import LogDirectory
from millbeck.storage.log import Log
from millbeck.storage.segment import CorruptSegment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, produce
from tests.unit.server.harness.three_brokers import ThreeBrokers


def in_cluster(scenario: Any, **settings: Any) -> Any:
    return ThreeBrokers(**settings).run(scenario)


async def fill(cluster: ThreeBrokers, environment: Environment, count: int = 12) -> None:
    for number in range(count):
        assert (await cluster.produce(environment, b"%d" % number * 50))[0] == 0
    await cluster.until(lambda: all(cluster.partition(each).high_watermark == count for each in (1, 2, 3)))


def damage(cluster: ThreeBrokers, node_id: int) -> None:
    """A byte within the log's first segments goes bad, and somebody notices."""
    log = cluster.partition(node_id).log
    segment = log.segments[1]
    inode = cluster.machines[node_id].disk.find(segment.log_path)
    assert isinstance(inode, Inode)
    inode.rot(8 * 100)
    with pytest.raises(KafkaStorageError):
        raise log.mark_corrupt(CorruptSegment(segment.log_path, 0, "a test found it"))
    cluster.nodes[node_id].broker.replication.repair.check()


@pytest.mark.parametrize("victim", [1, 2])
def test_a_damaged_replica_is_cut_and_copied_anew_before_it_is_in_sync_again(victim: int) -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2", internal_segment_bytes="1000")
        await fill(cluster, environment)
        damage(cluster, victim)
        await cluster.until(lambda: victim not in cluster.registration().isr)
        assert cluster.leader != victim
        await cluster.until(lambda: victim in cluster.registration().isr)
        assert cluster.bytes_of(victim) == cluster.bytes_of(3)
        directory = cluster.nodes[victim].broker.logs.directories[0].meta
        assert directory is not None
        assert cluster.assigned == [(victim, LOST_DIRECTORY), (victim, directory.directory_id)]
        assert cluster.nodes[victim].broker.replication.repair.repaired == 1
        assert await cluster.produce(environment, b"more") == (0, 12)

    in_cluster(scenario)


def test_the_last_replica_is_not_cut_and_nobody_leads() -> None:
    """The controller hears of the damage, so that tools, clients and alerts see a partition without a leader."""

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(internal_segment_bytes="1000")
        await fill(cluster, environment)
        for other in (2, 3):
            cluster.crash(other)
        await cluster.change(isr=[1])
        damage(cluster, 1)
        await cluster.until(lambda: cluster.leader == NO_LEADER)
        await asyncio.sleep(60)
        assert cluster.assigned == [(1, LOST_DIRECTORY)]
        assert cluster.partition(1).log.is_offline
        assert cluster.partition(1).log.end_offset == 12
        broker = cluster.nodes[1].broker
        assert 1 in broker.offline_replicas("t", 0, cluster.registration())

    in_cluster(scenario)


def test_who_takes_over_is_logged_once_the_controller_knows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that starts has read the metadata of before: another replica may be in sync since then."""
    waiting: list[Callable[[], None]] = []

    def hold(assignments: DirectoryAssignments, replica: TopicIdPartition, directory: bytes, *done: Any) -> None:
        waiting.extend(done)

    monkeypatch.setattr(DirectoryAssignments, "assign", hold)

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(internal_segment_bytes="1000")
        await fill(cluster, environment)
        await cluster.change(isr=[1])
        damage(cluster, 1)
        await asyncio.sleep(60)
        assert not any(text in caplog.text for text in ("is unavailable", "takes over"))
        await cluster.change(isr=[1, 2])
        for done in waiting:
            done()
        assert "the replica of t-0 on this broker is unusable, another replica takes over" in caplog.text
        assert "is unavailable" not in caplog.text

    in_cluster(scenario)


def test_the_only_replica_comes_back_once_its_log_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart alone does not bring it back, and is no reason to claim that the log is in its directory again."""
    wanted: list[bytes] = []
    assign = DirectoryAssignments.assign

    def noted(assignments: DirectoryAssignments, replica: TopicIdPartition, directory: bytes, *done: Any) -> None:
        wanted.append(directory)
        assign(assignments, replica, directory, *done)

    monkeypatch.setattr(DirectoryAssignments, "assign", noted)

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1,), internal_segment_bytes="1000", flush_messages="1")
        for number in range(12):
            assert (await cluster.produce(environment, b"%d" % number * 50))[0] == 0
        await asyncio.sleep(120)  # The recovery point is written once a minute.
        damage(cluster, 1)
        await cluster.until(lambda: cluster.leader == NO_LEADER)
        path = cluster.partition(1).log.segments[1].log_path
        inode = cluster.machines[1].disk.find(path)
        assert isinstance(inode, Inode)
        cluster.crash(1)
        await cluster.start(1)
        await cluster.until(lambda: len(cluster.assigned) == 2)
        await asyncio.sleep(60)
        assert cluster.assigned == [(1, LOST_DIRECTORY)] * 2
        assert set(wanted) == {LOST_DIRECTORY}
        assert cluster.leader == NO_LEADER
        assert f"{path} is corrupt at position 0" in (cluster.partition(1).log.offline_reason or "")

        cluster.crash(1)
        inode.rot(8 * 100)  # The same bit turned again: as it was.
        await cluster.start(1)
        await cluster.until(lambda: cluster.partition(1).is_leader)
        assert await cluster.produce(environment, b"more", node_id=1) == (0, 12)

    in_cluster(scenario)


def test_a_replica_that_was_lost_is_verified_as_a_whole_before_it_may_lead_again() -> None:
    """After a crash only the end of a log is read, and this one is damaged further up."""

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1,), internal_segment_bytes="1000", flush_messages="1")
        for number in range(40):
            assert (await cluster.produce(environment, b"%d" % number * 50))[0] == 0
        await asyncio.sleep(120)  # The recovery point is written once a minute.
        damage(cluster, 1)
        await cluster.until(lambda: cluster.leader == NO_LEADER)
        cluster.crash(1)
        await cluster.start(1)
        await cluster.until(lambda: cluster.partition(1).log.is_offline)
        await asyncio.sleep(60)
        assert set(cluster.assigned) == {(1, LOST_DIRECTORY)}
        assert cluster.leader == NO_LEADER

    in_cluster(scenario)


def test_a_damaged_replica_is_not_cut_while_nobody_leads() -> None:
    """Those who could lead may never come back: then what is left after the damage is better than nothing."""

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(internal_segment_bytes="1000")
        await fill(cluster, environment)
        for other in (2, 3):
            cluster.crash(other)
        await cluster.elect(-1, (2, 3))
        damage(cluster, 1)
        await cluster.until(lambda: cluster.assigned == [(1, LOST_DIRECTORY)])
        await asyncio.sleep(60)
        repair = cluster.nodes[1].broker.replication.repair
        assert (repair.repaired, cluster.partition(1).log.is_offline) == (0, True)
        await cluster.elect(2, (2, 3))
        await cluster.until(lambda: repair.repaired == 1)
        assert 0 < cluster.partition(1).log.end_offset < 12

    in_cluster(scenario)


def test_a_full_disk_hands_over_and_takes_back_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full for the partition alone: a node whose metadata log cannot be written ends."""
    has_room = False

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        nonlocal has_room
        await cluster.create(min_insync_replicas="2")
        await fill(cluster, environment)
        monkeypatch.setattr(ReplicaRepair, "_has_room", lambda self, partition: has_room)
        cluster.machines[1].disk.fail_next(DiskCall.WRITE, path_part="/t-0/", error=errno.ENOSPC)
        assert (await cluster.produce(environment, b"x"))[0] == KafkaStorageError.code
        await cluster.until(lambda: cluster.leader == 2)
        assert (await cluster.produce(environment, b"x"))[0] == 0
        assert cluster.assigned == [(1, LOST_DIRECTORY)]
        await asyncio.sleep(40)
        assert len(cluster.assigned) == 1
        has_room = True
        await cluster.until(lambda: len(cluster.assigned) == 2)
        await cluster.until(lambda: 1 in cluster.registration().isr)
        assert cluster.bytes_of(1) == cluster.bytes_of(2)

    in_cluster(scenario)


@pytest.mark.parametrize("victim", [1, 3])
def test_records_flow_on_while_a_disk_stays_full(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, victim: int
) -> None:
    """The broker goes on fetching from where its log ends, and looks like one that is about to be in sync again."""
    has_room = False

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        nonlocal has_room
        await cluster.create(min_insync_replicas="2")
        await fill(cluster, environment)
        monkeypatch.setattr(ReplicaRepair, "_has_room", lambda self, partition: has_room)
        full, write = cluster.machines[victim].disk, SimFile.write

        def write_if_there_is_room(file: SimFile, buffers: Sequence[Bytes], position: int) -> None:
            if not has_room and file._disk is full and "/t-0/" in file.path:
                raise OSError(errno.ENOSPC, "No space left on device", file.path)
            write(file, buffers, position)

        monkeypatch.setattr(SimFile, "write", write_if_there_is_room)
        await cluster.produce(environment, b"x")
        await cluster.until(lambda: victim not in cluster.registration().isr)
        told = "the replica of t-0 on this broker is unusable, another replica takes over: less than 64 MiB are free"
        await cluster.until(lambda: told in caplog.text)
        for _ in range(5):
            began_s = environment.clock.monotonic()
            assert (await cluster.produce(environment, b"x"))[0] == 0
            assert environment.clock.monotonic() - began_s < 2, "long before it would count as lagging"
            await asyncio.sleep(1)
        has_room = True
        await cluster.until(lambda: victim in cluster.registration().isr)
        assert cluster.bytes_of(victim) == cluster.bytes_of(2)

    in_cluster(scenario)


def test_a_full_disk_is_logged_once_and_when_it_has_room_again(caplog: pytest.LogCaptureFixture) -> None:
    """Of the only replica, which no other one takes over for."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert await produce(client, b"x") == 0
        disk = harness.machine.disk
        disk.faults.capacity_bytes = disk.used_bytes + 10
        for _ in range(3):
            with pytest.raises(AssertionError, match="error_code=56"):
                await produce(client, b"x" * 1000)
        await asyncio.sleep(60)
        assert caplog.text.count("is full: appends that do not fit are refused with KAFKA_STORAGE_ERROR") == 1
        assert "has room again" not in caplog.text
        disk.faults.capacity_bytes = 1 << 40
        assert await produce(client, b"x") == 1
        await asyncio.sleep(60)
        assert caplog.text.count("has room again") == 1

    BrokerHarness().run(scenario)


def test_nobody_waits_for_a_follower_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    has_room = False

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        nonlocal has_room
        await cluster.create(min_insync_replicas="2")
        await fill(cluster, environment)
        monkeypatch.setattr(ReplicaRepair, "_has_room", lambda self, partition: has_room)
        cluster.machines[3].disk.fail_next(DiskCall.WRITE, path_part="/t-0/", error=errno.ENOSPC)
        began_s = environment.clock.monotonic()
        assert (await cluster.produce(environment, b"x"))[0] == 0
        assert environment.clock.monotonic() - began_s < 10, "long before it would count as lagging"
        assert cluster.assigned == [(3, LOST_DIRECTORY)]
        has_room = True
        await cluster.until(lambda: 3 in cluster.registration().isr)
        assert cluster.bytes_of(3) == cluster.bytes_of(1)

    in_cluster(scenario)


def test_a_topic_is_not_taken_away_while_a_thread_is_at_work_on_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2", internal_segment_bytes="1000")
        await fill(cluster, environment)
        run = RepairJob.run
        partition = cluster.partition(2)
        decided = asyncio.Event()

        def mended(job: RepairJob) -> RepairResult:
            decided.set()
            found.extend(name for name in cluster.machines[2].disk.find_directory("/data").entries if "t-0" in name)
            return run(job)

        async def delayed(job: Callable[..., Any], *arguments: Any) -> Any:
            if getattr(job, "__name__", "") == "mended":
                removal = asyncio.ensure_future(cluster.decide(RemoveTopicRecord(topic_id=partition.topic_id)))
                await asyncio.sleep(5)
                assert partition.name in cluster.nodes[2].broker.logs.directories[0].logs
                answer = job(*arguments)
                await asyncio.sleep(0)
                del removal
                return answer
            return await in_thread(job, *arguments)

        monkeypatch.setattr(RepairJob, "run", mended)
        # This controller cannot be told of a topic that is gone.
        monkeypatch.setattr(ReplicaRepair, "_report_recovered", lambda self, partition: None)
        broker = cluster.nodes[2].broker
        in_thread = broker.in_thread
        monkeypatch.setattr(type(broker), "in_thread", staticmethod(delayed))
        damage(cluster, 2)
        await cluster.until(decided.is_set)
        await cluster.until(lambda: partition.name not in broker.logs.directories[0].logs)

    in_cluster(scenario)
    assert found == ["t-0"]


@pytest.mark.parametrize("victim", [1, 2])
def test_a_log_that_could_not_be_made_is_made_when_there_is_room(monkeypatch: pytest.MonkeyPatch, victim: int) -> None:
    has_room = False

    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        nonlocal has_room
        free_bytes = SimFiles.free_bytes
        monkeypatch.setattr(SimFiles, "free_bytes", lambda self, path: free_bytes(self, path) if has_room else 0)
        full, create_log = cluster.nodes[victim].broker.logs.directories, LogDirectory.create_log

        def refuse(directory: LogDirectory, *arguments: Any, **options: Any) -> Log:
            if directory in full and not has_room:
                cluster.machines[victim].disk.fail_next(DiskCall.WRITE, path_part="/t-0/", error=errno.ENOSPC)
            return create_log(directory, *arguments, **options)

        monkeypatch.setattr(LogDirectory, "create_log", refuse)
        await cluster.create(min_insync_replicas="2")
        await cluster.until(lambda: victim not in cluster.registration().isr)
        assert cluster.leader != victim
        topics = cluster.nodes[victim].broker.topics
        assert list(topics.by_name["t"].unusable) == [0]
        await asyncio.sleep(40)
        assert list(topics.by_name["t"].unusable) == [0]
        assert (await cluster.produce(environment, b"x"))[0] == 0
        assert cluster.assigned == [(victim, LOST_DIRECTORY)]
        has_room = True
        await cluster.until(lambda: victim in cluster.registration().isr)
        assert topics.by_name["t"].unusable == {}
        assert cluster.bytes_of(victim) == cluster.bytes_of(3)

    in_cluster(scenario)
