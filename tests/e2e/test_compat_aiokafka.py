"""aiokafka's calls on millbeck's clients, against a running broker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from millbeck.client.compat.aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    ConsumerStoppedError,
    IllegalOperation,
    OffsetAndMetadata,
    TopicPartition,
)
from millbeck.client.compat.aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from millbeck.client.compat.aiokafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    MessageSizeTooLargeError,
    ProducerFenced,
)
from millbeck.testing import broker

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as started:
        yield started.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"compat-{next(_numbers)}"

    async def create() -> None:
        async with AIOKafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            response = await admin.create_topics([NewTopic(name, 2, 1)])
            assert response.topic_errors == [(name, 0, None)]

    asyncio.run(create())
    return name


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()
        assert len(asyncio.all_tasks()) == 1, "a client left a task behind"

    asyncio.run(bounded())


async def fill(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, key=b"k", partition=partition)


def test_records_are_sent_and_read_one_by_one_and_many_at_a_time(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=[bootstrap], key_serializer=str.encode, value_serializer=lambda value: b"%d" % value
        )
        await producer.start()
        assert await producer.partitions_for(topic) == {0, 1}
        stored = await producer.send_and_wait(topic, 0, "k", partition=1, timestamp_ms=77, headers=[("h", b"x")])
        assert (stored.topic_partition, stored.offset, stored.timestamp, stored.timestamp_type) == (
            (topic, 1),
            0,
            77,
            0,
        )
        futures = [await producer.send(topic, number, key="k", partition=1) for number in range(1, 10)]
        await producer.flush()
        assert [future.result().offset for future in futures] == list(range(1, 10))
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer=int
        )
        assert consumer.subscription() == {topic}
        await consumer.start()
        place = TopicPartition(topic, 1)
        first = await consumer.getone()
        assert first == ConsumerRecord(topic, 1, 0, 77, 0, b"k", 0, None, 1, 1, (("h", b"x"),))
        assert await consumer.position(place) == 1
        many = await consumer.getmany(place, timeout_ms=5000, max_records=3)
        assert [record.value for record in many[place]] == [1, 2, 3]
        seen = []
        async for record in consumer:
            seen.append(record.value)
            if record.value == 9:
                break
        assert seen == [4, 5, 6, 7, 8, 9]
        assert await consumer.getmany(timeout_ms=10) == {}
        assert consumer.assignment() == {(topic, 0), (topic, 1)}
        assert consumer.partitions_for_topic(topic) == {0, 1}
        assert topic in await consumer.topics()
        assert (consumer.highwater(place), await consumer.end_offsets([place])) == (10, {place: 10})
        await consumer.seek_to_beginning(place)
        assert await consumer.position(place) == 0
        consumer.seek(place, 5)
        consumer.pause(TopicPartition(topic, 0))
        assert consumer.paused() == {(topic, 0)}
        assert (await consumer.getone(place)).value == 5
        found = (await consumer.offsets_for_times({place: 78}))[place]
        assert found is not None
        assert found.offset == 1
        with pytest.raises(IllegalOperation):
            await consumer.commit()
        await consumer.stop()
        with pytest.raises(ConsumerStoppedError):
            await consumer.getone()

    run(scenario)


class Listener(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.seen: list[tuple[str, set[TopicPartition]]] = []

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.seen.append(("revoked", revoked))

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.seen.append(("assigned", assigned))


def test_a_group_member_commits_and_its_successor_continues(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await fill(bootstrap, topic, 5)
        options: dict[str, Any] = {"bootstrap_servers": bootstrap, "group_id": topic, "auto_offset_reset": "earliest"}
        place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
        consumer = AIOKafkaConsumer(enable_auto_commit=False, **options)
        listener = Listener()
        consumer.subscribe([topic], listener=listener)
        with pytest.raises(IllegalStateError):
            consumer.assign([place])
        async with consumer:
            assert listener.seen == [("assigned", {place, other})]
            assert consumer._coordinator.member_id
            assert await consumer.committed(place) is None
            await consumer.getone()
            await consumer.commit()
            assert await consumer.committed(place) == 1
            await consumer.commit({place: OffsetAndMetadata(3, "note"), other: 0})
        assert listener.seen[-1][0] == "revoked"
        async with AIOKafkaConsumer(topic, **options) as successor:
            assert (await successor.getone()).offset == 3
            await successor.seek_to_committed(place)
            assert (await successor.getone()).offset == 3
        async with AIOKafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            assert (topic, "consumer") in await admin.list_consumer_groups()
            assert (await admin.list_consumer_group_offsets(topic))[place].offset == 4

    run(scenario)


def test_transactions(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        place = TopicPartition(topic, 0)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept", partition=0)
                await producer.send_offsets_to_transaction({place: 7}, f"{topic}-group")
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with producer.transaction():
                    await producer.send(topic, b"dropped", partition=0)
                    raise ZeroDivisionError
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic):
                with pytest.raises(ProducerFenced):
                    async with producer.transaction():
                        await producer.send_and_wait(topic, b"late", partition=0)
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            assert [record.value for record in (await consumer.getmany(timeout_ms=5000))[place]] == [b"kept"]
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=f"{topic}-group") as group:
            assert await group.committed(place) == 7

    run(scenario)


def test_batches_partitioners_and_errors(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        with pytest.raises(KafkaConnectionError):
            await AIOKafkaProducer(bootstrap_servers="127.0.0.1:1").start()
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, partitioner=lambda key, all_, up: all_[-1]
        ) as producer:
            batch = producer.create_batch()
            for number in range(3):
                assert batch.append(key=None, value=b"%d" % number, timestamp=None) is not None
            assert batch.append(key=None, value=b"x" * 20_000, timestamp=None) is None
            stored = await (await producer.send_batch(batch, topic, partition=0))
            assert (stored.partition, stored.offset, batch.record_count()) == (0, 0, 3)
            assert batch.append(key=None, value=b"late", timestamp=None) is None
            assert (await producer.send_and_wait(topic, b"v")).partition == 1
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send(topic, b"x" * 2_000_000)
            with pytest.raises(AssertionError):
                await producer.send(topic, b"v", partition=9)

    run(scenario)


def test_topics_are_administered(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await fill(bootstrap, topic, 5)
        async with AIOKafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            again = (await admin.create_topics([NewTopic(topic, 1, 1)])).to_object()["topic_errors"]
            assert [(each["topic"], each["error_code"]) for each in again] == [(topic, 36)]
            await admin.create_partitions({topic: NewPartitions(3)})
            described = await admin.describe_topics([topic, "ghost"])
            assert [(each["topic"], each["error_code"], len(each["partitions"])) for each in described] == [
                (topic, 0, 3),
                ("ghost", 3, 0),
            ]
            assert await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(2)}) == {(topic, 0): 2}
            assert (await admin.describe_cluster())["brokers"]
            assert (await admin.delete_topics([topic])).topic_error_codes == [(topic, 0)]
            assert topic not in await admin.list_topics()

    run(scenario)


def test_without_a_group_new_topics_of_a_pattern_are_read(bootstrap: str) -> None:
    async def scenario() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", metadata_max_age_ms=200)
        consumer.subscribe(pattern="^late-.*")
        async with consumer:
            await fill(bootstrap, "late-one", 1)
            assert (await consumer.getone()).topic == "late-one"
            consumer.unsubscribe()
            await asyncio.sleep(0.1)
            assert consumer.assignment() == frozenset()

    run(scenario)
