"""ListOffsets: every special timestamp in every version, times, fences, and what a reader may see."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    FencedLeaderEpoch,
    InvalidRequest,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from millbeck.security.authorizer import Operation
from millbeck.server.loop import tasks
from millbeck.server.requests.handlers import list_offsets
from millbeck.server.requests.handlers.list_offsets import error_reply
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.environment.files import SimFile
from millbeck.storage.producer_state import AppendOrigin
from millbeck.wire.messages.log_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import (
    NOW_MS,
    append_straight,
    create,
    deny,
    end_of_transaction,
    in_transaction,
    partition_of,
    produce,
    run_scenario,
)


def asking(*timestamps: int, topic: str = "t", index: int = 0, epoch: int = -1, committed: bool = False) -> Any:
    partitions = [ListOffsetsPartition(index, epoch, timestamp) for timestamp in timestamps]
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(topic, partitions)]
    )


async def offset_at(client: Client, timestamp: int, version: int = 11, **options: Any) -> tuple[int, int, int]:
    """Error code, timestamp and offset."""
    ((answer,),) = [topic.partitions for topic in (await client.ask(asking(timestamp, **options), version)).topics]
    return answer.error_code, answer.timestamp, answer.offset


async def three(client: Client) -> None:
    """Three batches, the second with the newest record."""
    await create(client)
    await produce(client, b"a", timestamp=1000)
    await produce(client, b"b", b"b", timestamp=5000)
    await produce(client, b"c", timestamp=3000)


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_knows_its_special_timestamps_and_no_others(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await three(client)
        partition_of(harness).log.delete_records(1)
        known = {-1: (0, -1, 4), -2: (0, -1, 1), -3: (0, 5000, 1), -4: (0, -1, 1), -5: (0, -1, -1), -6: (0, -1, -1)}
        since = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11, -7: 99, -(2**63): 99}
        for timestamp, first_version in since.items():
            expected = known[timestamp] if version >= first_version else (UnsupportedVersion.code, -1, -1)
            assert await offset_at(client, timestamp, version) == expected, timestamp
        assert await offset_at(client, 2000, version) == (0, 5000, 1)

    run_scenario(scenario)


def test_a_time_finds_the_first_record_that_is_not_older() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await three(client)
        for timestamp, expected in (
            (0, (0, 1000, 0)),
            (1000, (0, 1000, 0)),
            (1001, (0, 5000, 1)),
            (5000, (0, 5000, 1)),
            (5001, (0, -1, -1)),
            (2**62, (0, -1, -1)),
        ):
            assert await offset_at(client, timestamp) == expected
        partition_of(harness).log.delete_records(2)
        assert await offset_at(client, 0) == (0, 5000, 2)
        partition_of(harness).log.delete_records(4)
        assert await offset_at(client, 0) == (0, -1, -1)

    run_scenario(scenario)


def test_an_empty_log_has_ends_but_no_times() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert [await offset_at(client, timestamp) for timestamp in (-1, -2, -3, 0)] == [
            (0, -1, 0),
            (0, -1, 0),
            (0, -1, -1),
            (0, -1, -1),
        ]

    run_scenario(scenario)


def test_leader_epochs_are_told_and_fence_from_version_four_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", timestamp=1000)
        partition_of(harness).lead(4, 1)
        await produce(client, b"b", timestamp=2000)

        async def epoch_at(timestamp: int, version: int) -> int:
            epoch: int = (await client.ask(asking(timestamp), version)).topics[0].partitions[0].leader_epoch
            return epoch

        assert [await epoch_at(timestamp, 7) for timestamp in (-1, -2, -3, 500, 1500, 9999)] == [4, 0, 4, 0, 4, -1]
        assert await epoch_at(-1, 3) == -1
        assert (await offset_at(client, -1, epoch=3))[0] == FencedLeaderEpoch.code
        assert (await offset_at(client, -1, epoch=5))[0] == UnknownLeaderEpoch.code
        assert (await offset_at(client, -1, epoch=4))[0] == 0

    run_scenario(scenario)


def test_a_reader_of_committed_records_sees_no_further_than_the_last_stable_offset() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"plain", timestamp=1000)
        partition = partition_of(harness)
        append_straight(partition, in_transaction(b"open", producer_id=7))
        assert await offset_at(client, -1) == (0, -1, 2)
        assert await offset_at(client, -1, committed=True) == (0, -1, 1)
        assert await offset_at(client, 2000) == (0, NOW_MS, 1)
        assert await offset_at(client, 2000, committed=True) == (0, -1, -1)
        assert await offset_at(client, -3) == (0, NOW_MS, 1)
        assert await offset_at(client, -3, committed=True) == (0, -1, -1)
        append_straight(partition, end_of_transaction(7, committed=True), origin=AppendOrigin.COORDINATOR)
        assert await offset_at(client, -1, committed=True) == (0, -1, 3)
        assert await offset_at(client, -3, committed=True) == (0, NOW_MS, 1)

    run_scenario(scenario)


def test_what_is_wrong_with_one_partition_stays_with_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic("t", [ListOffsetsPartition(index, -1, -1) for index in (0, 1, 1, 9)]),
                ListOffsetsTopic("nowhere", [ListOffsetsPartition(0, -1, -1)]),
            ],
        )
        response = await client.ask(request, 7)
        answers = [
            (topic.name, each.partition_index, each.error_code)
            for topic in response.topics
            for each in topic.partitions
        ]
        assert answers == [
            ("t", 0, 0),
            ("t", 1, InvalidRequest.code),
            ("t", 1, InvalidRequest.code),
            ("t", 9, UnknownTopicOrPartition.code),
            ("nowhere", 0, UnknownTopicOrPartition.code),
        ]
        partition_of(harness).log.mark_offline("a test")
        assert (await offset_at(client, -1))[0] == KafkaStorageError.code

    run_scenario(scenario)


def test_a_topic_that_may_not_be_described_is_refused_whatever_is_asked() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        deny(harness, Operation.DESCRIBE)
        for timestamp in (-1, -9, 0):
            for topic in ("t", "nowhere"):
                assert await offset_at(client, timestamp, topic=topic) == (TopicAuthorizationFailed.code, -1, -1)
        response = await client.ask(asking(-1, -1), 7)
        assert {each.error_code for each in response.topics[0].partitions} == {TopicAuthorizationFailed.code}

    run_scenario(scenario)


def test_an_error_for_the_whole_is_said_for_every_partition() -> None:
    assert error_reply(None, 7, UnknownServerError()) is None
    answer = error_reply(asking(-1, -2), 7, UnknownServerError())
    assert answer is not None
    assert [each.error_code for each in answer.topics[0].partitions] == [-1, -1]


@pytest.mark.parametrize(("timestamp", "gives_way"), [(NOW_MS, True), (-3, True), (-1, False), (-2, False)])
def test_a_search_of_many_partitions_gives_way_to_the_loop(
    timestamp: int, gives_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=20)
        for index in range(20):
            await produce(client, b"x", index=index)
        monkeypatch.setattr(tasks, "TURN_SECONDS", -1.0)
        given: list[float] = []
        sleep = asyncio.sleep

        async def counted(delay_s: float) -> None:
            given.append(delay_s)
            await sleep(delay_s)

        partitions = [ListOffsetsPartition(index, -1, timestamp) for index in range(20)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic("t", partitions)])
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "sleep", counted)
            (answer,) = (await client.ask(request, 11)).topics
        assert [(one.error_code, one.offset) for one in answer.partitions] == [(0, int(timestamp == -1))] * 20
        assert (given.count(0) >= 20) == gives_way

    run_scenario(scenario)


@pytest.mark.parametrize("timestamp", [2000, -3])
def test_what_is_not_in_memory_is_brought_in_by_a_thread(timestamp: int, monkeypatch: pytest.MonkeyPatch) -> None:
    warm: set[tuple[str, int]] = set()
    read_on_loop: list[str] = []
    read = SimFile.read

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="200", index_interval_bytes="0")
        for number in range(9):
            await produce(client, b"x" * 30, timestamp=1000 + 400 * number)
        await asyncio.sleep(70)
        log = partition_of(harness).log
        for segment in log.segments[:-1]:
            segment.drop_indexes()
            segment.max_timestamp = None
        threads: Any = harness.machine.run.environment.threads  # type: ignore[union-attr]

        def read_anywhere(file: SimFile, size: int, position: int) -> bytes:
            if not threads.meter.is_in_job:
                read_on_loop.append(file.path)
            warm.add((file.path, position))
            return read(file, size, position)

        def read_if_warm(file: SimFile, size: int, position: int) -> bytes | None:
            return read(file, size, position) if (file.path, position) in warm else None

        monkeypatch.setattr(SimFile, "read", read_anywhere)
        monkeypatch.setattr(SimFile, "read_nowait", read_if_warm)
        monkeypatch.setattr(list_offsets, "WARMINGS_MAX", 100)
        expected = (0, 4200, 8) if timestamp == -3 else (0, 2200, 3)
        assert await offset_at(client, timestamp) == expected
        assert warm
        assert read_on_loop == []

    run_scenario(scenario)


def test_what_a_thread_cannot_read_is_a_storage_error() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await three(client)
        harness.machine.disk.faults.cold_read = 1.0
        harness.machine.disk.fail_next(DiskCall.READ, path_part=".log")
        assert (await offset_at(client, 2000))[0] == KafkaStorageError.code
        assert await offset_at(client, 2000) == (0, 5000, 1)

    run_scenario(scenario)


def test_only_the_leader_answers_and_a_new_one_not_before_it_knows() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await three(client)
        partition = partition_of(harness)
        partition.follow(2, 3, 3)
        assert (await offset_at(client, -1))[0] == NotLeaderOrFollower.code
        assert (await offset_at(client, -1, epoch=2))[0] == FencedLeaderEpoch.code
        partition.high_watermark = 1
        partition.lead(4, 4, (1, 2), (1, 2))
        assert (await offset_at(client, -1, version=5))[0] == OffsetNotAvailable.code
        assert (await offset_at(client, -1, version=4))[0] == LeaderNotAvailable.code
        assert (await offset_at(client, 4000, version=5))[0] == OffsetNotAvailable.code
        assert await offset_at(client, -2) == (0, -1, 0)
        partition.update_follower_fetch_state(2, -1, 4, 0, None)
        partition.advance_high_watermark()
        assert await offset_at(client, -1) == (0, -1, 4)

    run_scenario(scenario)


def test_followers_and_those_who_debug_are_told_the_end_of_the_log() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await three(client)
        partition = partition_of(harness)
        partition.high_watermark = 1
        partition.lead(4, 4, (1, 2), (1, 2))

        async def asked(replica_id: int) -> tuple[int, int]:
            request = asking(-1)
            request.replica_id = replica_id
            ((answer,),) = [topic.partitions for topic in (await client.ask(request, 11)).topics]
            return answer.error_code, answer.offset

        assert await asked(2) == (0, 4)
        assert await asked(-2) == (0, 4)
        deny(harness, Operation.CLUSTER_ACTION)
        assert (await asked(2))[0] == TopicAuthorizationFailed.code
        partition.follow(2, 5, 5)
        assert await asked(-2) == (0, 4)

    run_scenario(scenario)
