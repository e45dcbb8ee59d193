"""``async for record in consumer``: what the program has is what is committed, and nothing is lost by stopping."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import CommittedOffset, Consumer
from millbeck.client.consumer.listener import Partitions, RebalanceListener
from millbeck.client.errors import ClientClosed, DeserializationFailed
from millbeck.client.serialization import IntSerde, StrSerde
from millbeck.kernel.errors import InvalidRequest, RebalanceInProgress
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse, SyncGroupRequest
from tests.unit.client.fake_cluster import FakeCluster, FakePartition, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def open_consumer(cluster: FakeCluster, **options: Any) -> Consumer[Any, Any]:
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(settings, environment=cluster.environment, **options)


def fill(log: FakePartition, count: int, start: int = 0) -> None:
    log.append(batch.build([Record(-1, 1, b"k%d" % number, b"%d" % number) for number in range(start, start + count)]))


def test_records_know_where_they_are_from_and_do_not_change() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            async for record in consumer:
                assert (record.topic, record.partition, record.offset, record.timestamp_type) == ("a", 0, 0, 0)
                with pytest.raises(AttributeError):
                    record.value = b"other"  # type: ignore[misc]
                break

    simulate(scenario)


def test_leaving_the_loop_loses_and_repeats_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 10)
        seen = []
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            for stop in (3, 7, 10):
                async for record in consumer:
                    seen.append(record.offset)
                    assert await consumer.position(A0) == record.offset + 1
                    if record.offset == stop - 1:
                        break
                if stop == 3:
                    polled = await consumer.poll(max_records=2)
                    seen += [each.offset for each in polled[A0]]
        assert seen == list(range(10))

    simulate(scenario)


def test_a_commit_in_the_loop_includes_the_record_at_hand_and_no_other() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 10)
        async with open_consumer(cluster, group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([A0])
            async for record in consumer:
                if record.offset == 4:
                    await consumer.commit()
                    break
            assert await consumer.committed([A0]) == {A0: CommittedOffset(5, 0)}

    simulate(scenario)


def test_a_rebalance_does_not_wait_for_the_records_at_hand() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 300)
        async with open_consumer(cluster, group_id="g", heartbeat_interval_ms=1000) as consumer:
            consumer.subscribe(["a"])
            joined: list[int] = []
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                joined.append(len(cluster.asked(SyncGroupRequest)))
                if len(seen) == 20:
                    cluster.next(HeartbeatRequest, HeartbeatResponse(error_code=RebalanceInProgress.code))
                if len(seen) == 40:
                    break
                await asyncio.sleep(0.2)
        # The heartbeat comes within a second, which is five records; then the member joins again.
        assert joined[19] == 1
        assert joined[27] == 2
        assert sorted(set(seen)) == list(range(max(seen) + 1))

    simulate(scenario)


def test_a_record_whose_processing_raises_is_not_committed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 10)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with open_consumer(cluster, group_id="g") as consumer:
                consumer.assign([A0])
                async for record in consumer:
                    if record.offset == 4:
                        raise ZeroDivisionError
        async with open_consumer(cluster, group_id="g") as consumer:
            assert await consumer.committed([A0]) == {A0: CommittedOffset(4, 0)}

    simulate(scenario)


def test_pausing_and_seeking_in_the_loop_take_effect_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        fill(first, 6)
        fill(second, 6)
        seen: list[tuple[int, int]] = []
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0, A1])
            async for record in consumer:
                seen.append((record.partition, record.offset))
                if seen[-1] == (0, 2) and A0 not in consumer.paused and len(seen) < 12:
                    consumer.pause(A0)
                elif seen[-1] == (1, 3) and seen.count((1, 3)) == 1:
                    consumer.seek(A1, 1)
                elif seen[-1] == (1, 5):
                    consumer.resume(A0)
                elif seen[-1] == (0, 5):
                    break
        assert [offset for partition, offset in seen if partition == 0] == [0, 1, 2, 3, 4, 5]
        assert [offset for partition, offset in seen if partition == 1] == [0, 1, 2, 3, 1, 2, 3, 4, 5]

    simulate(scenario)


def test_partitions_take_turns() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        logs = cluster.add_topic("a", 2)
        for log in logs:
            for start in range(0, 3000, 500):
                fill(log, 500, start)
        order: list[int] = []
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0, A1])
            await asyncio.sleep(5)
            async for record in consumer:
                if not order or order[-1] != record.partition:
                    order.append(record.partition)
                if len(order) == 6:
                    break
        assert order in ([0, 1] * 3, [1, 0] * 3)

    simulate(scenario)


def test_closing_ends_the_loop_and_cancelling_leaves_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        consumer = open_consumer(cluster)
        consumer.assign([A0])

        async def read() -> str:
            async for _ in consumer:
                pass
            return "ended"

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(2)
        with pytest.raises(InvalidRequest, match="already running"):
            await consumer.poll()
        await consumer.close()
        assert await reading == "ended"
        with pytest.raises(ClientClosed):
            await read()
        other = open_consumer(cluster)
        other.assign([A0])
        waiting = asyncio.ensure_future(anext(aiter(other)))
        await asyncio.sleep(2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await other.close()

    simulate(scenario)


def test_a_record_that_cannot_be_deserialized_is_named_and_can_be_passed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        whole = IntSerde().serialize("a", 7, [])
        log.append(batch.build([Record(-1, 1, b"key", data) for data in (whole, b"bad", whole)]))
        async with open_consumer(cluster, key_deserializer=StrSerde(), value_deserializer=IntSerde()) as consumer:
            consumer.assign([A0])
            records = aiter(consumer)
            seen = [await anext(records)]
            with pytest.raises(DeserializationFailed, match="the value of a-0 at offset 1") as caught:
                await anext(records)
            assert (caught.value.partition, caught.value.offset) == (A0, 1)
            with pytest.raises(DeserializationFailed):
                await consumer.poll()
            consumer.seek(A0, 2)
            seen.append(await anext(aiter(consumer)))
            assert [(record.key, record.value) for record in seen] == [("key", 7), ("key", 7)]

    simulate(scenario)


def test_interceptors_see_every_record_and_every_commit() -> None:
    class Counting:
        def __init__(self) -> None:
            self.seen: list[int] = []
            self.committed: list[Any] = []

        def on_consume(self, record: Record[Any, Any]) -> Record[Any, Any]:
            self.seen.append(record.offset)
            if record.offset == 1:
                raise ZeroDivisionError
            return record

        def on_commit(self, offsets: Any) -> None:
            self.committed.append(dict(offsets))

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)
        counting = Counting()
        async with open_consumer(cluster, group_id="g", enable_auto_commit=False, interceptors=[counting]) as consumer:
            consumer.assign([A0])
            assert len((await consumer.poll())[A0]) == 3
            await consumer.commit()
        assert counting.seen == [0, 1, 2]
        assert counting.committed == [{A0: CommittedOffset(3, 0)}]

    simulate(scenario)


def test_a_listener_is_told_of_its_partitions() -> None:
    class Watching(RebalanceListener):
        def __init__(self) -> None:
            self.told: list[tuple[str, Partitions]] = []

        async def on_assigned(self, partitions: Partitions) -> None:
            self.told.append(("assigned", partitions))

        def on_revoked(self, partitions: Partitions) -> None:
            self.told.append(("revoked", partitions))

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 1)
        watching = Watching()
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.subscribe("a", listener=watching)
            async for _ in consumer:
                break
        assert watching.told == [("assigned", [A0]), ("revoked", [A0])]

    simulate(scenario)


def test_a_slow_program_stays_a_member_as_long_as_it_takes_records() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 20)
        async with open_consumer(cluster, group_id="g", max_poll_interval_ms=10_000) as consumer:
            consumer.subscribe(["a"])
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                await asyncio.sleep(7)
                if len(seen) == 20:
                    break
            assert seen == list(range(20))
            assert consumer.assignment == [A0]

    simulate(scenario)
