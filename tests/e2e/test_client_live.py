"""The client against a running broker: a millbeck node started for it, or whatever CLIENT_BOOTSTRAP names.

CLIENT_BOOTSTRAP=127.0.0.1:9092 pytest tests/e2e/test_client_live.py      # Apache Kafka, for instance
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import (
    EARLIEST,
    LATEST,
    ConfigChange,
    ConfigResource,
    GroupOffset,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from millbeck.client.errors import NoBrokerReachable, RequestTimeout
from millbeck.kernel.errors import (
    GroupIdNotFound,
    InvalidConfig,
    InvalidTopic,
    MessageTooLarge,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.testing import broker

_names = itertools.count(1)
_run = os.getpid()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    given = os.environ.get("CLIENT_BOOTSTRAP")
    if given:
        yield given
        return
    with broker() as started:
        yield started.bootstrap


@pytest.fixture
def topic() -> str:
    return f"live-{_run}-{next(_names)}"


def run(scenario: Callable[[], Coroutine[Any, Any, None]], limit_s: float = 60) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(limit_s):
            await scenario()
        assert len(asyncio.all_tasks()) == 1, "a client left a task behind"

    asyncio.run(bounded())


def admin_of(bootstrap: str) -> Admin:
    return Admin({"bootstrap.servers": bootstrap})


def producer_of(bootstrap: str, **settings: Any) -> Producer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap} | texts)


def consumer_of(bootstrap: str, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(defaults | texts)


async def create(bootstrap: str, topic: str, partition_count: int = 1, **configs: str) -> list[TopicPartition]:
    async with admin_of(bootstrap) as admin:
        texts = {key.replace("_", "."): value for key, value in configs.items()}
        wanted = NewTopic(name=topic, partition_count=partition_count, replication_factor=1, configs=texts)
        (await admin.create_topics([wanted])).all()
    return [TopicPartition(topic, number) for number in range(partition_count)]


async def read(consumer: Consumer, count: int) -> dict[TopicPartition, list[Any]]:
    found: dict[TopicPartition, list[Any]] = {}
    while sum(map(len, found.values())) < count:
        for partition, records in (await consumer.poll(timeout_s=1)).items():
            found.setdefault(partition, []).extend(records)
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read(bootstrap: str, topic: str, codec: str) -> None:
    async def scenario() -> None:
        partitions = await create(bootstrap, topic, 3)
        async with producer_of(bootstrap, compression_type=codec) as producer:
            sent = [
                await producer.enqueue(
                    topic,
                    b"value %d" % index,
                    key=b"key %d" % (index % 10),
                    headers=[("n", b"%d" % index), ("x", None)],
                )
                for index in range(500)
            ]
            await producer.flush()
        landed = [future.result() for future in sent]
        async with consumer_of(bootstrap) as consumer:
            consumer.assign(partitions)
            found = await read(consumer, 500)
        for index, place in enumerate(landed):
            record = found[TopicPartition(topic, place.partition)][place.offset]
            assert (record.offset, record.value) == (place.offset, b"value %d" % index)
            assert (record.key, record.timestamp) == (b"key %d" % (index % 10), place.timestamp)
            assert record.headers == (("n", b"%d" % index), ("x", None))

    run(scenario)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acknowledgement(bootstrap: str, topic: str, acks: str) -> None:
    async def scenario() -> None:
        (partition,) = await create(bootstrap, topic)
        async with producer_of(bootstrap, acks=acks) as producer:
            for index in range(100):
                await producer.enqueue(topic, b"%d" % index)
        async with consumer_of(bootstrap) as consumer:
            consumer.assign([partition])
            found = await read(consumer, 100)
        assert [record.value for record in found[partition]] == [b"%d" % index for index in range(100)]

    run(scenario)


def test_large_records_are_taken_where_they_are_allowed_and_refused_where_not(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        (partition,) = await create(bootstrap, topic, max_message_bytes="3000000")
        settings = {"max_request_size": 10_000_000, "batch_size": 5_000_000, "linger_ms": 20}
        async with producer_of(bootstrap, **settings) as producer:
            with pytest.raises(MessageTooLarge, match=r"max\.message\.bytes|larger"):
                await producer.send(topic, os.urandom(4_000_000))
            # Together they are too large for one batch: it is split on the way.
            values = [os.urandom(1_000_000) for _ in range(5)]
            sent = [await producer.enqueue(topic, value) for value in values]
            assert [(await future).offset for future in sent] == [0, 1, 2, 3, 4]
        async with consumer_of(bootstrap) as consumer:
            consumer.assign([partition])
            found = await read(consumer, 5)
        assert [record.value for record in found[partition]] == values

    run(scenario)


def test_positions(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        (partition,) = await create(bootstrap, topic)
        async with producer_of(bootstrap) as producer:
            for index in range(50):
                await producer.enqueue(topic, b"%d" % index, timestamp=1_000_000 + index * 10)
        async with consumer_of(bootstrap) as consumer:
            consumer.assign([partition])
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 50}
            found = await consumer.offsets_for_times({partition: 1_000_105})
            assert found[partition] is not None
            at = found[partition]
            assert at is not None
            assert tuple(at)[:2] == (11, 1_000_110)
            assert await consumer.offsets_for_times({partition: 9_000_000_000_000}) == {partition: None}
            consumer.seek(partition, 40)
            assert len((await read(consumer, 10))[partition]) == 10
            consumer.seek_to_end()
            assert await consumer.position(partition) == 50
            consumer.seek(partition, 999)
            assert (await read(consumer, 50))[partition][0].offset == 0

    run(scenario)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_group_shares_partitions_and_goes_on_where_it_was(bootstrap: str, topic: str, strategy: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, 4)
        settings = {
            "group_id": f"group-{topic}",
            "partition_assignment_strategy": strategy,
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 6000,
        }
        async with producer_of(bootstrap) as producer:
            for index in range(400):
                await producer.enqueue(topic, b"%d" % index, partition=index % 4)
        first = consumer_of(bootstrap, **settings)
        first.subscribe([topic])
        assert sum(map(len, (await read(first, 400)).values())) == 400
        await first.commit()
        second = consumer_of(bootstrap, **settings)
        second.subscribe([topic])
        while (len(first.assignment), len(second.assignment)) != (2, 2):
            assert not any(await asyncio.gather(first.poll(timeout_s=0.2), second.poll(timeout_s=0.2)))
        assert sorted(first.assignment + second.assignment) == [TopicPartition(topic, number) for number in range(4)]
        await first.close()
        while len(second.assignment) < 4:
            assert await second.poll(timeout_s=0.2) == {}
        async with producer_of(bootstrap) as producer:
            await producer.enqueue(topic, b"new", partition=0)
        assert [record.value for records in (await read(second, 1)).values() for record in records] == [b"new"]
        await second.close()

    run(scenario)


def test_a_static_member_comes_back_to_its_partitions(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, 2)
        settings = {"group_id": f"group-{topic}", "group_instance_id": "one", "session_timeout_ms": 6000}
        generations = []
        for _ in range(2):
            consumer = consumer_of(bootstrap, **settings)
            consumer.subscribe([topic])
            while len(consumer.assignment) < 2:
                await consumer.poll(timeout_s=0.2)
            assert consumer._membership is not None
            generations.append(consumer._membership.generation)
            await consumer.close()
        assert len(generations) == 2

    run(scenario)


def test_topics_are_administered(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        async with admin_of(bootstrap) as admin:
            wanted = [NewTopic(name=topic, partition_count=2, replication_factor=1), NewTopic(name="no/name")]
            created = await admin.create_topics(wanted)
            assert created[topic].partition_count == 2
            assert isinstance(created.failed["no/name"], InvalidTopic)
            assert isinstance((await admin.create_topics(wanted[:1])).failed[topic], TopicAlreadyExists)
            assert (await admin.list_topics())[topic].topic_id == created[topic].topic_id
            (await admin.create_partitions({topic: NewPartitions(total_count=4)})).all()
            described = await admin.describe_topics([topic, "ghost"])
            assert [entry.partition for entry in described[topic].partitions] == [0, 1, 2, 3]
            assert isinstance(described.failed["ghost"], UnknownTopicOrPartition)
            change = ConfigChange(name="retention.ms", value="12345")
            (await admin.incremental_alter_configs({resource: [change]})).all()
            assert (await admin.describe_configs({resource: ["retention.ms"]}))[resource][
                "retention.ms"
            ].value == "12345"
            refused = await admin.incremental_alter_configs({resource: [ConfigChange(name="nonsense", value="1")]})
            assert isinstance(refused.failed[resource], InvalidConfig)
            (await admin.alter_configs({resource: {"segment.ms": "99999"}})).all()
            settings = (await admin.describe_configs([resource]))[resource]
            assert (settings["segment.ms"].value, settings["retention.ms"].is_default) == ("99999", True)
            assert resource in await admin.list_config_resources([ResourceType.TOPIC])
            (await admin.delete_topics([topic])).all()
            assert topic not in await admin.list_topics()

    run(scenario)


def test_the_cluster_is_administered(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        (partition,) = await create(bootstrap, topic)
        async with producer_of(bootstrap) as producer:
            for _ in range(10):
                await producer.enqueue(topic, b"v")
        async with admin_of(bootstrap) as admin:
            cluster = await admin.describe_cluster()
            assert cluster.nodes
            directories = (await admin.describe_log_dirs())[cluster.nodes[0].node_id]
            sizes = {entry.partition: entry.size_bytes for directory in directories for entry in directory.replicas}
            assert sizes[partition] > 0
            (producing,) = (await admin.describe_producers([partition]))[partition]
            assert producing.last_sequence == 9
            assert (await admin.describe_quorum()).leader_id == cluster.nodes[0].node_id
            assert "metadata.version" in (await admin.describe_features()).finalized
            assert (await admin.delete_records({partition: 4})).all() == {partition: 4}
            offsets = await admin.list_offsets({partition: EARLIEST})
            assert offsets[partition].offset == 4
            assert (await admin.list_offsets({partition: LATEST}))[partition].offset == 10

    run(scenario)


def test_groups_are_administered(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        (partition,) = await create(bootstrap, topic)
        group = f"group-{topic}"
        async with admin_of(bootstrap) as admin:
            assert isinstance((await admin.describe_groups([group])).failed[group], GroupIdNotFound)
            (await admin.alter_group_offsets(group, {partition: GroupOffset(offset=0, metadata="note")})).all()
            committed = (await admin.list_group_offsets([group]))[group]
            assert (committed[partition].offset, committed[partition].metadata) == (0, "note")
            assert (await admin.list_groups())[group].state == "Empty"
            assert (await admin.describe_groups([group]))[group].members == ()
            async with consumer_of(bootstrap, group_id=group) as consumer:
                consumer.subscribe([topic])
                while not consumer.assignment:
                    await consumer.poll(timeout_s=0.2)
                (member,) = (await admin.describe_groups([group]))[group].members
                assert member.assignment == (partition,)
            (await admin.delete_group_offsets(group, [partition])).all()
            (await admin.delete_groups([group])).all()
            assert group not in await admin.list_groups()

    run(scenario)


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_over_tls(topic: str, tmp_path: Path, client_auth: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "broker.pem")
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    listener = {
        "listeners": "SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.client.auth": client_auth,
    }
    tls = {"security_protocol": "SSL", "ssl_truststore_location": str(tmp_path / "ca.pem")}
    own = {"ssl_keystore_location": str(tmp_path / "client.pem")} if client_auth == "required" else {}
    value = os.urandom(300_000)

    async def scenario() -> None:
        async with producer_of(started.bootstrap, **tls, **own) as producer:
            place = await producer.send(topic, value)
        async with consumer_of(started.bootstrap, **tls, **own) as consumer:
            consumer.assign([TopicPartition(topic, place.partition)])
            ((record,),) = (await read(consumer, 1)).values()
        assert record.value == value
        if own:
            with pytest.raises((NoBrokerReachable, RequestTimeout)):
                async with producer_of(started.bootstrap, max_block_ms=1000, **tls) as stranger:
                    await stranger.send(topic, b"v")

    with broker(listener) as started:
        run(scenario)
