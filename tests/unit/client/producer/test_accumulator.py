"""Batches fill up, and the memory they share is never exceeded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.errors import BufferExhausted
from millbeck.client.producer.accumulator import KEPT_OVERHEAD, RecordAccumulator, record_size_max
from millbeck.client.producer.config import ProducerConfig
from millbeck.kernel.errors import MessageTooLarge
from millbeck.kernel.ids import TopicPartition
from millbeck.records.builder import BatchBuilder
from tests.unit.client.fake_cluster import FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def make(**settings: Any) -> RecordAccumulator:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return RecordAccumulator(ProducerConfig.parse({"bootstrap.servers": "a:1"} | texts))


def add(accumulator: RecordAccumulator, partition: TopicPartition, value: bytes, now_s: float = 0.0) -> bool:
    size_bytes = record_size_max(None, value, ())
    assert accumulator.try_reserve(size_bytes)
    future = asyncio.get_running_loop().create_future()
    return accumulator.append(partition, 0, None, value, (), future, size_bytes, lambda: now_s)


HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3).map(tuple)


@given(st.integers(0, 2**40), st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300), HEADERS)
def test_the_size_given_for_a_record_is_never_too_small(
    timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    builder = BatchBuilder()
    builder.append(0, None, None)
    before = builder.size_bytes
    builder.append(timestamp, key, value, headers)
    assert builder.size_bytes - before <= record_size_max(key, value, headers)


def test_a_full_batch_is_followed_by_another() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(batch_size=400)
        news = [add(accumulator, A0, b"x" * 100) for _ in range(6)]
        queue = accumulator.queues[A0]
        assert [batch.record_count for batch in queue.waiting] == [2, 2, 2]
        assert [batch.is_closed for batch in queue.waiting] == [True, True, False]
        assert news == [True, False, True, False, True, False]
        assert all(batch.encoded_size_bytes <= 400 for batch in queue.waiting)

    simulate(scenario)


def test_a_record_larger_than_a_batch_goes_alone() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(batch_size=100)
        for size in (10, 1000, 10):
            add(accumulator, A0, b"x" * size)
        assert [batch.record_count for batch in accumulator.queues[A0].waiting] == [1, 1, 1]

    simulate(scenario)


def test_when_a_batch_is_due() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(batch_size=400, linger_ms=50)
        add(accumulator, A0, b"x" * 100, now_s=7.0)
        queue = accumulator.queues[A0]
        assert accumulator.ready_at_s(queue) == pytest.approx(7.05)
        accumulator.is_flushing = True
        assert accumulator.ready_at_s(queue) == 0
        accumulator.is_flushing = False
        for _ in range(3):
            add(accumulator, A0, b"x" * 100, now_s=7.0)
        assert accumulator.ready_at_s(queue) == 0
        queue.waiting[0].attempts = 1
        queue.waiting[0].not_before_s = 9.0
        assert accumulator.ready_at_s(queue) == 9.0

    simulate(scenario)


def test_memory_is_waited_for_in_turn() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(buffer_memory=10_000, batch_size=100)
        assert accumulator.try_reserve(9000 - KEPT_OVERHEAD)
        order: list[str] = []

        async def reserve(name: str, size_bytes: int) -> None:
            await accumulator.reserve(size_bytes, 60)
            order.append(name)

        large = asyncio.ensure_future(reserve("large", 5000 - KEPT_OVERHEAD))
        await asyncio.sleep(0)
        small = asyncio.ensure_future(reserve("small", 500 - KEPT_OVERHEAD))
        await asyncio.sleep(0)
        assert accumulator.is_exhausted
        assert not accumulator.try_reserve(10)
        accumulator.release(3000)
        await asyncio.sleep(0.1)
        assert order == []
        accumulator.release(2000)
        await asyncio.gather(large, small)
        assert order == ["large", "small"]
        assert accumulator.used_bytes == 9500

    simulate(scenario)


def test_nobody_overtakes_a_caller_that_has_its_memory_and_has_not_run_yet() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(buffer_memory=10_000)
        assert accumulator.try_reserve(10_000 - KEPT_OVERHEAD)
        waiting = asyncio.ensure_future(accumulator.reserve(100, 60))
        await asyncio.sleep(0)
        accumulator.release(10_000)
        assert not accumulator.try_reserve(100)
        await waiting
        assert accumulator.try_reserve(100)

    simulate(scenario)


def test_memory_that_does_not_come_is_an_error_that_names_the_setting() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(buffer_memory=10_000)
        assert accumulator.try_reserve(10_000 - KEPT_OVERHEAD)
        patient = asyncio.ensure_future(accumulator.reserve(600 - KEPT_OVERHEAD, 60))
        await asyncio.sleep(0)
        with pytest.raises(BufferExhausted, match=r"buffer\.memory \(10000 bytes\) was full for 2000 ms"):
            await accumulator.reserve(5000, 2)
        leaving = asyncio.ensure_future(accumulator.reserve(5000, 60))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        accumulator.release(10_000)
        await patient
        assert accumulator.used_bytes == 600

    simulate(scenario)


def test_a_turn_that_comes_too_late_is_given_back() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make(buffer_memory=10_000)
        assert accumulator.try_reserve(10_000 - KEPT_OVERHEAD)
        waiting = asyncio.ensure_future(accumulator.reserve(4000, 60))
        await asyncio.sleep(0)
        accumulator.release(10_000)
        waiting.cancel()
        await asyncio.sleep(0)
        assert accumulator.used_bytes == 0

    simulate(scenario)


@pytest.mark.parametrize(
    ("settings", "name"), [({"max_request_size": 500}, "max.request.size"), ({"buffer_memory": 800}, "buffer.memory")]
)
def test_a_record_that_can_never_be_sent_names_the_setting(settings: dict[str, Any], name: str) -> None:
    accumulator = make(**settings)
    accumulator.check_size(300)
    with pytest.raises(MessageTooLarge, match=name.replace(".", r"\.")):
        accumulator.check_size(501)


def test_a_settled_batch_gives_its_memory_back_and_sequences_go_on() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        accumulator = make()
        add(accumulator, A0, b"v")
        add(accumulator, A1, b"v")
        queue = accumulator.queues[A0]
        batch = queue.waiting[0]
        queue.dropped(batch)
        accumulator.settled(batch)
        assert A0 not in accumulator.queues
        assert accumulator.used_bytes == record_size_max(None, b"v", ()) + KEPT_OVERHEAD
        assert [other.partition for other in accumulator.batches()] == [A1]
        add(accumulator, A0, b"v")
        assert accumulator.queues[A0] is queue

    simulate(scenario)
