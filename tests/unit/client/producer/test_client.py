"""What a program sees of a producer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.errors import BufferExhausted, BufferFull, ClientClosed, DeliveryTimeout, RequestTimeout
from millbeck.client.metadata import TopicView
from millbeck.client.producer import Producer
from millbeck.kernel.errors import MessageTooLarge, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.wire.messages.metadata import MetadataRequest
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import SILENCE, FakeCluster, later, simulate


def open_producer(cluster: FakeCluster, **settings: Any) -> Producer:
    partitioner = settings.pop("partitioner", None)
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer(
        {"bootstrap.servers": cluster.bootstrap} | texts, partitioner=partitioner, environment=cluster.environment
    )


def test_a_record_arrives_as_it_was_sent() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            sent = await producer.enqueue("a", b"value", key=b"key", timestamp=1234, headers=[("h", b"x"), ("n", None)])
            assert tuple(await sent) == ("a", 0, 0, 1234)
            await producer.send("a")
        (first, second) = [record for one in log.batches for record in batch.records_of(one)]
        assert (first.key, first.value, first.timestamp) == (b"key", b"value", 1234)
        assert first.headers == (("h", b"x"), ("n", None))
        assert (second.key, second.value) == (None, None)
        assert second.timestamp >= 1_700_000_000_000

    simulate(scenario)


def test_records_are_gathered_for_linger_ms() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_producer(cluster, linger_ms=100) as producer:
            await producer.send("a", b"warm")
            loop = asyncio.get_running_loop()
            began = loop.time()
            sent = [await producer.enqueue("a", b"v") for _ in range(10)]
            await sent[-1]
            assert 0.1 <= loop.time() - began <= 0.15
        assert len(cluster.asked(ProduceRequest)) == 2

    simulate(scenario)


def test_a_record_whose_sending_is_cancelled_was_not_handed_over() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"warm")
            # Long enough that the next one lets others run first.
            await asyncio.sleep(1)
            sending = asyncio.ensure_future(producer.enqueue("a", b"cancelled"))
            await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        assert [record.value for one in log.batches for record in batch.records_of(one)] == [b"warm"]

    simulate(scenario)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(codec: str) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, compression_type=codec) as producer:
            for _ in range(20):
                await producer.enqueue("a", b"v" * 100)
        assert [batch.read_header(one).codec.name.lower() for one in log.batches] == [codec]
        assert log.values == [b"v" * 100] * 20

    simulate(scenario)


def test_flush_does_not_wait_for_linger() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, linger_ms=60_000) as producer:
            sent = await producer.enqueue("a", b"v")
            await producer.flush()
            assert sent.done()
            await producer.flush()
            assert asyncio.get_running_loop().time() < 5
        assert log.values == [b"v"]

    simulate(scenario)


def test_a_partition_without_a_leader_is_named_while_others_are_written() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, _ = cluster.add_topic("a", 2)
        first.leader_id = -1
        async with open_producer(cluster, delivery_timeout_ms=8000, request_timeout_ms=5000) as producer:
            stuck = await producer.enqueue("a", b"v", partition=0)
            assert (await (await producer.enqueue("a", b"v", partition=1))).offset == 0
            assert producer.partitions_without_leader() == [TopicPartition("a", 0)]
            with pytest.raises(DeliveryTimeout, match=r"for a-0 were .*; the last attempt: a-0 has no leader now"):
                await stuck
            assert producer.partitions_without_leader() == []

    simulate(scenario)


def test_flush_does_not_wait_for_what_was_given_up() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, lambda call: SILENCE)
        async with open_producer(cluster, delivery_timeout_ms=1000, request_timeout_ms=900) as producer:
            sent = await producer.enqueue("a", b"v")
            with pytest.raises(DeliveryTimeout):
                await sent
            # The request is still unanswered, and keeps its place.
            assert list(producer._accumulator.batches())
            await producer.flush(timeout_s=5)

    simulate(scenario)


def test_flush_gives_up_in_time_and_the_record_stays() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        cluster.next(ProduceRequest, later(5))
        async with open_producer(cluster) as producer:
            sent = await producer.enqueue("a", b"v")
            with pytest.raises(RequestTimeout):
                await producer.flush(timeout_s=2)
            assert (await sent).offset == 0
        assert log.values == [b"v"]

    simulate(scenario)


def test_closing_sends_what_is_left() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        producer = open_producer(cluster, linger_ms=60_000)
        sent = await producer.enqueue("a", b"v")
        await producer.close()
        await producer.close()
        assert sent.result().offset == 0
        assert log.values == [b"v"]
        with pytest.raises(ClientClosed):
            await producer.enqueue("a", b"v")
        with pytest.raises(ClientClosed):
            producer.send_nowait("a", b"v")

    simulate(scenario)


def test_a_topic_that_does_not_exist_is_named_after_max_block_ms() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with open_producer(cluster, max_block_ms=3000) as producer:
            with pytest.raises(UnknownTopicOrPartition, match="there is no topic ghost"):
                await producer.enqueue("ghost", b"v")
            assert asyncio.get_running_loop().time() < 4

    simulate(scenario)


def test_a_topic_is_made_where_brokers_do_that() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.creates_topics = True
        async with open_producer(cluster) as producer:
            assert (await (await producer.enqueue("new", b"v"))).topic == "new"
        assert "new" in cluster.topics

    simulate(scenario)


def test_a_partition_that_does_not_exist_is_named() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_producer(cluster) as producer:
            with pytest.raises(UnknownTopicOrPartition, match="2 partitions, no partition 7"):
                await producer.enqueue("a", b"v", partition=7)
            assert producer._accumulator.used_bytes == 0

    simulate(scenario)


def test_a_record_too_large_is_refused_before_anything_is_asked() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with open_producer(cluster) as producer:
            with pytest.raises(MessageTooLarge, match=r"max\.request\.size"):
                await producer.enqueue("a", b"v" * 2_000_000)
        assert not cluster.calls

    simulate(scenario)


@pytest.mark.parametrize(
    "record",
    [{"value": "text"}, {"key": 7}, {"value": bytearray(b"x")}, {"headers": [(b"h", b"x")]}, {"headers": [("h", "x")]}],
    ids=str,
)
def test_what_no_record_can_hold_is_refused_before_it_takes_room(record: dict[str, Any]) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            with pytest.raises(TypeError):
                await producer.enqueue("a", **record)
            assert producer._accumulator.used_bytes == 0
            await producer.send("a", b"good")
        assert log.values == [b"good"]

    simulate(scenario)


def test_send_waits_for_room_and_gives_up_in_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, buffer_memory=7000, max_block_ms=2000, linger_ms=60_000) as producer:
            cluster.next(ProduceRequest, later(1))
            for _ in range(10):
                await producer.enqueue("a", b"v" * 1000)
            await producer.flush()
            assert producer._accumulator.used_bytes == 0
            cluster.next(ProduceRequest, later(30))
            for _ in range(4):
                await producer.enqueue("a", b"v" * 1000)
            with pytest.raises(BufferExhausted, match=r"buffer\.memory"):
                await producer.send("a", b"v" * 1000)
            with pytest.raises(BufferFull, match=r"buffer\.memory \(7000 bytes\) is full"):
                producer.send_nowait("a", b"v" * 1000)
        assert len(log.values) == 14

    simulate(scenario)


def test_send_waits_for_the_acknowledgement() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            stored = await producer.send("a", b"v", b"k", timestamp=5)
            assert tuple(stored) == ("a", 0, 0, 5)

    simulate(scenario)


def test_send_nowait_holds_records_until_the_topic_is_known_and_keeps_their_order() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            first = producer.send_nowait("a", b"0")
            waiting = asyncio.ensure_future(producer.send("a", b"1"))
            await asyncio.sleep(0)
            third = producer.send_nowait("a", b"2")
            assert [(await future).offset for future in (first, waiting, third)] == [0, 1, 2]
        assert log.values == [b"0", b"1", b"2"]

    simulate(scenario)


def test_send_nowait_for_a_topic_that_does_not_exist_fails_in_its_future() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with open_producer(cluster, max_block_ms=1000) as producer:
            future = producer.send_nowait("ghost", b"v")
            with pytest.raises(UnknownTopicOrPartition, match="there is no topic ghost"):
                await future
            assert producer._accumulator.used_bytes == 0

    simulate(scenario)


def test_records_that_are_held_are_flushed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, linger_ms=60_000) as producer:
            futures = [producer.send_nowait("a", b"%d" % number) for number in range(10)]
            await producer.flush()
            assert all(future.done() for future in futures)
        assert log.values == [b"%d" % number for number in range(10)]

    simulate(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_cancelled_sends_lose_and_double_nothing(seed: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, buffer_memory=3000, linger_ms=0) as producer:
            dice = cluster.environment.randomness.below
            sends = []
            for number in range(60):
                sends.append(asyncio.ensure_future(producer.send("a", b"%d" % number)))
                if dice(2):
                    await asyncio.sleep(dice(20) / 10_000)
                if dice(3) == 0:
                    sends[dice(len(sends))].cancel()
            results = await asyncio.gather(*sends, return_exceptions=True)
        stored = [int(value or b"") for value in log.values]
        assert stored == sorted(set(stored)), "in order, and none twice"
        delivered = {number for number, result in enumerate(results) if not isinstance(result, BaseException)}
        assert delivered <= set(stored)

    simulate(scenario, seed=seed)


def test_a_program_that_never_waits_does_not_starve_the_sender() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"v")
            producer._yielded_s -= 1
            turns = 0

            def count() -> None:
                nonlocal turns
                turns += 1

            asyncio.get_running_loop().call_soon(count)
            await producer.enqueue("a", b"v")
            assert turns == 1

    simulate(scenario)


def test_a_partitioner_of_the_program_decides() -> None:
    class Last:
        def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
            return topic.partition_count - 1

    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 5)
        async with open_producer(cluster, partitioner=Last()) as producer:
            assert (await (await producer.enqueue("a", b"v"))).partition == 4

    simulate(scenario)


def test_an_error_in_the_program_does_not_wait_for_records() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, lambda call: SILENCE)
        producer = open_producer(cluster)

        async def program() -> None:
            async with producer:
                sent = await producer.enqueue("a", b"v")
                sent.add_done_callback(lambda future: future.exception())
                raise ValueError("the program's own")

        with pytest.raises(ValueError, match="own"):
            await program()
        assert asyncio.get_running_loop().time() < 2

    simulate(scenario)


def test_metadata_is_asked_for_the_topics_in_use() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.add_topic("b")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"v")
        asked = [[topic.name for topic in call.message.topics] for call in cluster.asked(MetadataRequest)]
        assert asked == [["a"]]

    simulate(scenario)


def test_topics_that_are_idle_are_no_longer_refreshed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        for name in ("busy", "idle"):
            cluster.add_topic(name)
        settings = {"bootstrap.servers": cluster.bootstrap, "metadata.max.age.ms": 2000, "metadata.max.idle.ms": 5000}
        async with Producer(settings, environment=cluster.environment) as producer:
            await producer.send("idle", b"1")
            for _ in range(15):
                await producer.send("busy", b"v")
                await asyncio.sleep(1)
            asked = [topic.name for topic in cluster.asked(MetadataRequest)[-1].message.topics]
            assert asked == ["busy"]
            stored = await producer.send("idle", b"2")
            assert stored.offset == 1
            await asyncio.sleep(3)
            asked = [topic.name for topic in cluster.asked(MetadataRequest)[-1].message.topics]
            assert sorted(asked) == ["busy", "idle"]

    simulate(scenario)


def test_the_time_of_calls_that_wait_is_added_up() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("t")
        async with Producer({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as producer:
            await producer.send("t", b"1")
            cluster.next(ProduceRequest, later(2.0))
            producer.send_nowait("t", b"2")
            await producer.flush()
            values = {each.name: value for each, value in producer.metrics().items()}
            assert 2e9 <= values["flush-time-ns-total"] < 3e9
            assert 0 < values["metadata-wait-time-ns-total"] < 1e9
            assert values["txn-commit-time-ns-total"] == 0

    simulate(scenario)


def test_a_loop_that_ends_with_unsent_records_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("t")
        producers = [
            Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 50}, environment=cluster.environment)
            for _ in range(2)
        ]
        for producer in producers:
            await producer.send("t", b"1")
        for _ in range(3):
            producers[0].send_nowait("t", b"2")
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "_keep_fresh" in repr(task):
                task.cancel()  # as asyncio.run does at its end
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [each.getMessage() for each in caplog.records if "event loop ends" in each.getMessage()] == [
            "the event loop ends before 3 records were acknowledged: use `async with`, or close() the producer"
        ]
        for producer in producers:
            await producer.close()

    simulate(scenario)


class Broken:
    """A partitioner that fails, or names a partition that is not there."""

    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        if key == b"far":
            return 99
        raise LookupError("no partition for this record")


WRONG = {
    "timestamp": ({"timestamp": 1.5}, TypeError, "whole number of milliseconds, not float"),
    "negative timestamp": ({"timestamp": -5}, ValueError, "-5 is not a valid timestamp"),
    "partition": ({"partition": "0"}, TypeError, "a partition is a number, not str"),
    "header": ({"headers": ["ab", "cd"]}, TypeError, "a header is a name"),
    "header value": ({"headers": [("a", "1")]}, TypeError, "a header is a name"),
    "topic": ({"topic": None}, TypeError, "the name of a topic is str, not NoneType"),
    "value": ({"value": "text"}, TypeError, "the value is str and must be bytes"),
    "key": ({"key": 7}, TypeError, "the key is int and must be bytes"),
}


@pytest.mark.parametrize(("fields", "kind", "words"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("method", ["send", "send_nowait"])
def test_what_cannot_be_sent_is_refused_and_leaves_nothing_behind(
    method: str, fields: dict[str, Any], kind: type[Exception], words: str
) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("t")
        async with Producer({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as producer:

            async def attempt() -> None:
                await getattr(producer, method)(**{"topic": "t", "value": b"v", **fields})

            with pytest.raises(kind, match=words):
                await attempt()
            assert producer.buffered_bytes == 0
            await producer.send("t", b"good", headers={"a": b"1"})
        assert log.values == [b"good"]

    simulate(scenario)


def test_a_partitioner_that_fails_refuses_the_record_alone() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("t")
        settings = {"bootstrap.servers": cluster.bootstrap}
        async with Producer(settings, partitioner=Broken(), environment=cluster.environment) as producer:
            for _ in range(2):  # before its metadata is there, and afterwards
                with pytest.raises(LookupError, match="no partition for this record"):
                    await producer.send_nowait("t", b"1")
                with pytest.raises(UnknownTopicOrPartition, match="no partition 99"):
                    await producer.send_nowait("t", b"1", key=b"far")
                assert producer.buffered_bytes == 0
            await producer.send("t", b"good", partition=0)
        assert log.values == [b"good"]

    simulate(scenario)
