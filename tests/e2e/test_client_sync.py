"""The synchronous clients against a running broker."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from millbeck.client import TopicPartition
from millbeck.client.admin.results import NewTopic
from millbeck.client.errors import BufferFull, ClientClosed, WrongEventLoop
from millbeck.client.serialization import StrSerde
from millbeck.client.sync import Admin, Consumer, Producer, ShareConsumer
from millbeck.kernel.errors import UnknownTopicOrPartition
from millbeck.testing import broker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as started:
        yield started.bootstrap


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name=name, partition_count=2, replication_factor=1)]).all()
        assert name in admin.list_topics()
        with pytest.raises(AttributeError):
            admin.no_such_method()
    return name


def test_what_is_sent_is_read(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, value_serializer=StrSerde()) as producer:
        stored = producer.send(topic, "first", partition=0)
        assert (stored.partition, stored.offset) == (0, 0)
        deliveries = [producer.send_nowait(topic, f"{number}", partition=0) for number in range(2500)]
        assert [delivery.result(30).offset for delivery in deliveries] == list(range(1, 2501))
        with pytest.raises(UnknownTopicOrPartition):
            producer.send_nowait(topic, "nowhere", partition=9).result(30)
    with pytest.raises(ClientClosed):
        producer.send_nowait(topic, "late")
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer=StrSerde()) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        seen = []
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 2501:
                break
        assert seen == ["first", *map(str, range(2500))]
        assert consumer.position(TopicPartition(topic, 0)) == 2501
        consumer.seek(TopicPartition(topic, 0), 2499)
        assert [record.value for record in consumer.poll(timeout_s=30)[TopicPartition(topic, 0)]] == ["2498", "2499"]


def test_several_threads_share_a_producer_and_each_keeps_its_order(bootstrap: str, topic: str) -> None:
    def produce(index: int) -> None:
        for number in range(500):
            producer.send_nowait(topic, b"%d %d" % (index, number), partition=0)

    with Producer(bootstrap_servers=bootstrap) as producer:
        threads = [threading.Thread(target=produce, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush(30)
    found: dict[int, list[int]] = {}
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        for count, record in enumerate(consumer, 1):
            index, number = map(int, (record.value or b"").split())
            found.setdefault(index, []).append(number)
            if count == 2000:
                break
    assert found == {index: list(range(500)) for index in range(4)}


def test_a_group_member_s_callbacks_run_in_its_own_thread_and_membership_survives_a_busy_program(
    bootstrap: str, topic: str
) -> None:
    told: list[tuple[str, Any, bool]] = []
    here = threading.current_thread()
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "enable.auto.commit": False,
    }
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"v", partition=0)
    with Consumer(settings) as consumer:
        consumer.subscribe(
            [topic],
            on_assigned=lambda partitions: told.append(("assigned", partitions, threading.current_thread() is here)),
            on_revoked=lambda partitions: told.append(("revoked", partitions, threading.current_thread() is here)),
        )
        for record in consumer:
            assert record.value == b"v"
            break
        before = consumer.group_metadata()
        time.sleep(7)
        consumer.commit()
        assert consumer.group_metadata() == before
        assert consumer.committed([TopicPartition(topic, 0)])[TopicPartition(topic, 0)] is not None
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert [(what, sorted(partitions), is_here) for what, partitions, is_here in told] == [
        ("assigned", both, True),
        ("revoked", both, True),
    ]


def test_transactions(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send_nowait(topic, b"kept", partition=0)
        with pytest.raises(ZeroDivisionError), producer.transaction():  # noqa: PT012
            producer.send_nowait(topic, b"dropped", partition=0)
            raise ZeroDivisionError
    settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with Consumer(settings, bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in consumer.poll(timeout_s=30)[TopicPartition(topic, 0)]] == [b"kept"]


def test_a_share_consumer(bootstrap: str, topic: str) -> None:
    from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType

    with Admin(bootstrap_servers=bootstrap) as admin:
        change = ConfigChange(name="share.auto.offset.reset", value="earliest")
        admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, topic): [change]}).all()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"job")
    with ShareConsumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        consumer.subscribe([topic])
        acquired: list[Any] = []
        end = time.monotonic() + 30
        while not acquired and time.monotonic() < end:
            acquired = consumer.poll(timeout_s=1)
        assert [one.record.value for one in acquired] == [b"job"]


def test_memory_is_bounded_for_a_caller_that_never_waits(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, buffer_memory=100_000) as producer:
        refused = 0
        for _ in range(5000):
            try:
                producer.send_nowait(topic, b"v" * 100)
            except BufferFull:
                refused += 1
                producer.flush(30)
        assert refused
        producer.flush(30)


def test_a_fork_says_what_is_wrong_instead_of_hanging(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"parent")
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()

        def child() -> None:
            try:
                producer.send(topic, b"child")
            except WrongEventLoop as error:
                answers.put(str(error))
            producer.close()
            os._exit(0)

        forked = context.Process(target=child)
        forked.start()
        assert "before a fork" in answers.get()
        forked.join(10)
        producer.send(topic, b"parent again")


UNCLOSED = """
from millbeck.client.sync import Producer

producer = Producer(bootstrap_servers={bootstrap!r}, linger_ms=1000)
for number in range(10):
    producer.send_nowait({topic!r}, b"%d" % number)
"""


def test_a_program_that_ends_without_closing_loses_nothing(bootstrap: str, topic: str) -> None:
    program = UNCLOSED.format(bootstrap=bootstrap, topic=topic)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        ends = consumer.end_offsets([TopicPartition(topic, number) for number in range(2)])
        assert sum(ends.values()) == 10
