"""What a program sees of a consumer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import CommittedOffset, Consumer
from millbeck.client.errors import ClientClosed, NoOffsetForPartition, PartitionUnavailable, RequestTimeout
from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRequest,
    KafkaStorageError,
    OffsetOutOfRange,
    RebalanceInProgress,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.wire.messages.classic_groups import JoinGroupRequest, LeaveGroupRequest
from millbeck.wire.messages.fetch import FetchableTopicResponse, FetchedPartition, FetchRequest, FetchResponse
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.client.fake_cluster import CLOSE, SILENCE, USUAL, FakeCluster, FakePartition, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def open_consumer(cluster: FakeCluster, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(defaults | texts, environment=cluster.environment)


def fill(log: FakePartition, *values: bytes, timestamp: int = 1) -> None:
    for index, value in enumerate(values):
        log.append(batch.build([Record(-1, timestamp + index, None, value)]))


async def read(consumer: Consumer, count: int, **options: Any) -> dict[TopicPartition, list[bytes | None]]:
    found: dict[TopicPartition, list[bytes | None]] = {}
    async with asyncio.timeout(120):
        while sum(map(len, found.values())) < count:
            for partition, records in (await consumer.poll(**options)).items():
                found.setdefault(partition, []).extend(record.value for record in records)
    return found


def test_assigned_partitions_are_read_from_the_start() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, b"0", b"1", b"2")
        fill(second, b"x")
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0, A1])
            assert await read(consumer, 4) == {A0: [b"0", b"1", b"2"], A1: [b"x"]}
            assert await consumer.position(A0) == 3
            assert consumer.lag(A0) == 0
            fill(first, b"3")
            assert await read(consumer, 1) == {A0: [b"3"]}

    simulate(scenario, brokers=2)


def test_latest_begins_at_the_end() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"old")
        async with open_consumer(cluster, auto_offset_reset="latest") as consumer:
            consumer.assign([A0])
            assert await consumer.poll(timeout_s=1) == {}
            fill(log, b"new")
            assert await read(consumer, 1) == {A0: [b"new"]}

    simulate(scenario)


def test_by_duration_begins_that_long_ago() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        now_ms = cluster.environment.clock.wall_ms()
        for log in (first, second):
            fill(log, b"old", timestamp=now_ms - 7_200_000)
        fill(first, b"recent", timestamp=now_ms - 60_000)
        async with open_consumer(cluster, auto_offset_reset="by_duration:PT1H") as consumer:
            consumer.assign([A0, A1])
            assert await read(consumer, 1) == {A0: [b"recent"]}
            assert await consumer.position(A1) == 1

    simulate(scenario)


def test_no_policy_is_an_error_that_says_so() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster, auto_offset_reset="none") as consumer:
            consumer.assign([A0])
            for _ in range(2):
                with pytest.raises(NoOffsetForPartition, match="a-0"):
                    await consumer.poll(timeout_s=5)
            consumer.seek(A0, 0)
            assert await consumer.poll(timeout_s=1) == {}

    simulate(scenario)


def test_poll_returns_at_most_what_was_asked_for_and_serves_partitions_in_turn() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, *(b"%d" % index for index in range(10)))
        fill(second, *(b"%d" % index for index in range(10)))
        async with open_consumer(cluster, max_poll_records=4) as consumer:
            consumer.assign([A0, A1])
            await asyncio.sleep(1)
            served = [await consumer.poll() for _ in range(4)]
            assert [sum(map(len, records.values())) for records in served] == [4, 4, 4, 4]
            assert {partition for records in served[:2] for partition in records} == {A0, A1}
            assert sum(map(len, (await consumer.poll(max_records=1)).values())) == 1

    simulate(scenario)


def test_an_empty_poll_takes_its_time_and_no_more() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await consumer.poll(timeout_s=1)
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await consumer.poll(timeout_s=2) == {}
            assert loop.time() - began == pytest.approx(2, abs=0.01)
            assert await consumer.poll(timeout_s=0) == {}

    simulate(scenario)


def test_seeking() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, *(b"%d" % index for index in range(10)))
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read(consumer, 10)
            consumer.seek(A0, 7)
            assert await read(consumer, 3) == {A0: [b"7", b"8", b"9"]}
            consumer.seek_to_beginning()
            assert (await read(consumer, 10))[A0][0] == b"0"
            consumer.seek_to_end(A0)
            assert await consumer.position(A0) == 10
            with pytest.raises(InvalidRequest):
                consumer.seek(A0, -1)
            with pytest.raises(InvalidRequest, match="not assigned"):
                consumer.seek(A1, 0)

    simulate(scenario)


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, *(b"%d" % index for index in range(10)))
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            while not cluster.asked(FetchRequest):
                await asyncio.sleep(0.0001)
            consumer.seek(A0, 8)
            assert await read(consumer, 2) == {A0: [b"8", b"9"]}

    simulate(scenario)


def test_pausing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, b"0")
        fill(second, b"x")
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0, A1])
            consumer.pause(A0)
            assert consumer.paused == [A0]
            assert await read(consumer, 1) == {A1: [b"x"]}
            assert await consumer.poll(timeout_s=2) == {}
            consumer.resume(A0)
            assert await read(consumer, 1) == {A0: [b"0"]}

    simulate(scenario)


def test_offsets_by_time_and_at_both_ends() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, _ = cluster.add_topic("a", 2)
        fill(first, b"0", b"1", b"2", timestamp=100)
        async with open_consumer(cluster) as consumer:
            assert await consumer.beginning_offsets([A0, A1]) == {A0: 0, A1: 0}
            assert await consumer.end_offsets([A0, A1]) == {A0: 3, A1: 0}
            found = await consumer.offsets_for_times({A0: 101, A1: 101})
            at = found[A0]
            assert at is not None
            assert tuple(at)[:2] == (1, 101)
            assert found[A1] is None
            assert (await consumer.topic("a")).partition_count == 2
            with pytest.raises(UnknownTopicOrPartition):
                await consumer.end_offsets([TopicPartition("ghost", 0)], timeout_s=2)

    simulate(scenario)


def test_an_offset_that_is_gone_is_reset_by_policy() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, *(b"%d" % index for index in range(10)))
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            consumer.seek(A0, 500)
            assert (await read(consumer, 10))[A0][0] == b"0"
        async with open_consumer(cluster, auto_offset_reset="none") as strict:
            strict.assign([A0])
            strict.seek(A0, 500)
            with pytest.raises(OffsetOutOfRange, match="a-0 has no offset 500"):
                await strict.poll(timeout_s=10)

    simulate(scenario)


def test_a_leader_that_moved_is_followed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)
        fill(log, b"0")
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read(consumer, 1)
            log.leader_id = 2
            fill(log, b"1")
            assert await read(consumer, 1) == {A0: [b"1"]}
        assert cluster.asked(FetchRequest)[-1].node_id == 2

    simulate(scenario, brokers=2)


def test_lost_connections_lose_and_repeat_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        dice = cluster.environment.randomness
        cluster.on(FetchRequest, lambda call: CLOSE if dice.below(3) == 0 else cluster.usual(call))
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            seen: list[bytes | None] = []
            for index in range(30):
                fill(log, b"%d" % index)
                seen += (await read(consumer, 1, timeout_s=0.5))[A0]
            assert seen == [b"%d" % index for index in range(30)]

    simulate(scenario)


def test_a_corrupt_batch_is_raised_with_its_place_and_can_be_passed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0", b"1", b"2")
        bad = bytearray(log.batches[1])
        bad[-2] ^= 0xFF
        log.batches[1] = bytes(bad)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == {A0: [b"0"]}
            for _ in range(2):
                with pytest.raises(CorruptMessage, match="a-0 at offset 1"):
                    await consumer.poll(timeout_s=5)
            consumer.seek(A0, 2)
            assert await read(consumer, 1) == {A0: [b"2"]}

    simulate(scenario)


def test_what_the_broker_cannot_read_is_raised_with_its_place() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0", b"1")

        def corrupt(call: Any) -> Any:
            (topic,) = call.message.topics
            if topic.partitions[0].fetch_offset < 1:
                return USUAL
            refused = FetchedPartition(partition_index=0, error_code=CorruptMessage.code)
            return FetchResponse(responses=[FetchableTopicResponse(topic.topic, topic.topic_id, [refused])])

        cluster.on(FetchRequest, corrupt)
        log.batches[1:] = []
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == {A0: [b"0"]}
            with pytest.raises(CorruptMessage, match="a-0 at offset 1"):
                await consumer.poll(timeout_s=5)

    simulate(scenario)


def test_partitions_without_a_leader_are_an_error_within_the_request_timeout() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, b"0")
        fill(second, b"1")
        first.leader_id = second.leader_id = -1
        loop = asyncio.get_running_loop()
        async with open_consumer(cluster, request_timeout_ms=20_000) as consumer:
            consumer.assign([A0, A1])
            began_s = loop.time()
            with pytest.raises(PartitionUnavailable, match="a-0, a-1: no leader for"):
                await consumer.poll(timeout_s=600)
            assert 15 < loop.time() - began_s <= 20
            began_s = loop.time()
            with pytest.raises(PartitionUnavailable, match="a-0 has no leader"):
                await consumer.end_offsets([A0])
            assert 15 < loop.time() - began_s <= 20
            first.leader_id = 1
            assert await read(consumer, 1) == {A0: [b"0"]}

    simulate(scenario)


@pytest.mark.parametrize("was_read", [False, True])
def test_a_partition_without_a_leader_does_not_hold_up_the_others(was_read: bool) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        async with open_consumer(cluster) as consumer:
            if was_read:
                consumer.assign([A0, A1])
                await consumer.poll(timeout_s=1)
            first.leader_id = -1
            fill(second, b"1")
            if not was_read:
                consumer.assign([A0, A1])
            assert await read(consumer, 1) == {A1: [b"1"]}
            assert await consumer.poll(timeout_s=120) == {}
            assert consumer.partitions_without_leader() == [A0]
            first.leader_id = 1
            fill(first, b"0")
            assert await read(consumer, 1) == {A0: [b"0"]}
            assert consumer.partitions_without_leader() == []

    simulate(scenario)


def test_a_refused_lookup_of_offsets_names_the_partition() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        refused = ListOffsetsTopicResponse(
            name="a", partitions=[ListOffsetsPartitionResponse(0, KafkaStorageError.code)]
        )
        cluster.on(ListOffsetsRequest, lambda call: ListOffsetsResponse(topics=[refused]))
        loop = asyncio.get_running_loop()
        async with open_consumer(cluster) as consumer:
            began_s = loop.time()
            with pytest.raises(PartitionUnavailable, match=r"^a-0: "):
                await consumer.end_offsets([A0])
            assert loop.time() - began_s < 32

    simulate(scenario)


def test_reading_what_is_not_allowed_is_an_error() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")

        def refuse(call: Any) -> FetchResponse:
            (topic,) = call.message.topics
            found = FetchedPartition(partition_index=0, error_code=TopicAuthorizationFailed.code)
            return FetchResponse(
                responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[found])]
            )

        cluster.on(FetchRequest, refuse)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            with pytest.raises(TopicAuthorizationFailed, match="a-0"):
                await consumer.poll(timeout_s=5)

    simulate(scenario)


def test_buffers_are_bounded_while_the_program_does_not_read() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, *(b"v" * 1000 for _ in range(200)))
        log_read = log.read
        cluster.topics["a"][1][0].read = lambda offset: b"".join(log.batches[offset : offset + 5])  # type: ignore[method-assign]
        async with open_consumer(cluster, max_partition_fetch_bytes=10_000, max_poll_records=1000) as consumer:
            consumer.assign([A0])
            await asyncio.sleep(30)
            assert 10_000 <= consumer._positions.buffered_bytes <= 20_000
            assert len(await _values(consumer, 200)) == 200
        assert log_read(199)

    async def _values(consumer: Consumer, count: int) -> list[bytes | None]:
        return (await read(consumer, count))[A0]

    simulate(scenario)


# groups


def test_a_member_reads_what_it_is_given_and_commits() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, b"0", b"1")
        fill(second, b"x")
        events: list[tuple[str, list[TopicPartition]]] = []

        async def assigned(partitions: list[TopicPartition]) -> None:
            events.append(("assigned", partitions))

        consumer = open_consumer(cluster, group_id="g")
        consumer.subscribe(["a"], on_assigned=assigned, on_revoked=lambda gone: events.append(("revoked", gone)))
        assert await read(consumer, 3) == {A0: [b"0", b"1"], A1: [b"x"]}
        assert (consumer.assignment, consumer.subscription) == ([A0, A1], ["a"])
        await consumer.close()
        assert events == [("assigned", [A0, A1]), ("revoked", [A0, A1])]
        assert {key: value[0] for key, value in cluster.committed.items()} == {("g", "a", 0): 2, ("g", "a", 1): 1}
        (leave,) = cluster.asked(LeaveGroupRequest)
        assert leave.message.members[0].member_id == "m1"

    simulate(scenario)


def test_reading_goes_on_from_the_committed_offset() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0", b"1", b"2")
        cluster.committed["g", "a", 0] = (2, -1, "")
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.subscribe(["a"])
            assert await read(consumer, 1) == {A0: [b"2"]}
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.assign([A0])
            assert await consumer.position(A0) == 3

    simulate(scenario)


def test_what_a_poll_returned_is_committed_by_a_later_one() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0", b"1")
        async with open_consumer(cluster, group_id="g", auto_commit_interval_ms=2000) as consumer:
            consumer.subscribe(["a"])
            await read(consumer, 2)
            await asyncio.sleep(3)
            assert not cluster.committed
            fill(log, b"2")
            await read(consumer, 1)
            await asyncio.sleep(0.1)
            assert cluster.committed["g", "a", 0][0] == 2

    simulate(scenario)


def test_committing_by_hand() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0", b"1")
        async with open_consumer(cluster, group_id="g", enable_auto_commit=False) as consumer:
            consumer.subscribe(["a"])
            await read(consumer, 2)
            assert await consumer.committed([A0]) == {A0: None}
            await consumer.commit()
            assert await consumer.committed([A0]) == {A0: CommittedOffset(2, 0, "")}
            await consumer.commit({A0: CommittedOffset(1, metadata="note")})
            assert await consumer.committed([A0]) == {A0: CommittedOffset(1, -1, "note")}
            await consumer.commit({A0: 0})
        assert cluster.committed["g", "a", 0][0] == 0
        assert all(call.message.member_id == "m1" for call in cluster.asked(OffsetCommitRequest))

    simulate(scenario)


def test_a_commit_may_be_the_first_call() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        consumer = open_consumer(cluster, group_id="g", enable_auto_commit=False)
        await consumer.commit({A0: 7})
        await consumer.close()
        assert cluster.committed["g", "a", 0][0] == 7

    simulate(scenario)


def test_a_commit_refused_because_of_a_rebalance_is_raised_and_followed_by_joining() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0")
        refusal = OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic_id=cluster.topics["a"][0],
                    partitions=[OffsetCommitResponsePartition(partition_index=0, error_code=RebalanceInProgress.code)],
                )
            ]
        )
        async with open_consumer(cluster, group_id="g", enable_auto_commit=False) as consumer:
            consumer.subscribe(["a"])
            await read(consumer, 1)
            joins = len(cluster.asked(JoinGroupRequest))
            cluster.next(OffsetCommitRequest, refusal)
            with pytest.raises(RebalanceInProgress):
                await consumer.commit()
            await consumer.poll(timeout_s=1)
            assert len(cluster.asked(JoinGroupRequest)) == joins + 1

    simulate(scenario)


def test_revoked_partitions_can_be_committed_from_the_callback() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"0")
        consumer = open_consumer(cluster, group_id="g", enable_auto_commit=False)

        async def revoked(partitions: list[TopicPartition]) -> None:
            await consumer.commit(dict.fromkeys(partitions, 42))

        consumer.subscribe(["a"], on_revoked=revoked)
        await read(consumer, 1)
        await consumer.close()
        assert cluster.committed["g", "a", 0][0] == 42

    simulate(scenario)


def test_a_pattern_follows_the_topics_there_are() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("logs-1")
        cluster.add_topic("other")
        async with open_consumer(cluster, group_id="g", metadata_max_age_ms=2000) as consumer:
            consumer.subscribe(pattern="logs-.*")
            while not consumer.assignment:
                await consumer.poll(timeout_s=1)
            assert consumer.subscription == ["logs-1"]
            cluster.add_topic("logs-2")
            async with asyncio.timeout(60):
                while len(consumer.assignment) < 2:
                    await consumer.poll(timeout_s=1)
            assert consumer.subscription == ["logs-1", "logs-2"]

    simulate(scenario)


def test_unsubscribing_leaves_the_group() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.subscribe(["a"])
            while not consumer.assignment:
                await consumer.poll(timeout_s=1)
            await consumer.unsubscribe()
            assert (consumer.assignment, consumer.subscription) == ([], [])
            assert len(cluster.asked(LeaveGroupRequest)) == 1
            consumer.assign([A0])
            assert await consumer.poll(timeout_s=1) == {}

    simulate(scenario)


def test_assigning_and_subscribing_exclude_each_other() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.assign([A0])
            with pytest.raises(InvalidRequest):
                consumer.subscribe(["a"])
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.subscribe(["a"])
            with pytest.raises(InvalidRequest):
                consumer.assign([A0])
            with pytest.raises(InvalidRequest, match="no topics"):
                consumer.subscribe([])
        async with open_consumer(cluster) as consumer:
            with pytest.raises(InvalidRequest, match=r"group\.id"):
                consumer.subscribe(["a"])
            with pytest.raises(InvalidRequest, match=r"group\.id"):
                await consumer.committed([A0])

    simulate(scenario)


def test_one_reader_at_a_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            first = asyncio.ensure_future(consumer.poll(timeout_s=2))
            await asyncio.sleep(0.1)
            with pytest.raises(InvalidRequest, match="already running"):
                await consumer.poll()
            await first

    simulate(scenario)


def test_a_position_that_is_not_found_in_time_is_a_timeout() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with open_consumer(cluster) as consumer:
            consumer.assign([TopicPartition("ghost", 0)])
            with pytest.raises(RequestTimeout, match="ghost-0"):
                await consumer.position(TopicPartition("ghost", 0), timeout_s=2)

    simulate(scenario)


def test_a_closed_consumer_does_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(FetchRequest, lambda call: SILENCE)
        consumer = open_consumer(cluster)
        consumer.assign([A0])
        await consumer.poll(timeout_s=1)
        await consumer.close()
        await consumer.close()
        with pytest.raises(ClientClosed):
            await consumer.poll()
        with pytest.raises(ClientClosed):
            consumer.assign([A0])
        await asyncio.sleep(1)
        assert cluster.connection_count == 0

    simulate(scenario)


def test_a_consumer_without_anything_to_read_says_so() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster, group_id="g", enable_auto_commit=False) as consumer:
            with pytest.raises(InvalidRequest, match="subscribe"):
                await consumer.poll()
            consumer.assign([])
            assert await consumer.poll(timeout_s=0.1) == {}
            consumer.assign([A0])
            with pytest.raises(InvalidRequest, match="-5 is not an offset"):
                await consumer.commit({A0: -5})
            await consumer.unsubscribe()
            with pytest.raises(InvalidRequest, match="subscribe"):
                await anext(aiter(consumer))

    simulate(scenario)
