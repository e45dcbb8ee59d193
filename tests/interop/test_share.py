"""Share groups with Java's and librdkafka's consumers, and Kafka's own tools for them.

Two consumers of different make read one group; one that is killed gives its records back; a record that is released
again and again is given up after the limit; the tools show, reset and delete groups; the logs of both internal topics
are decoded.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node
from millbeck.client.share import AcknowledgeType, ShareConsumer
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from tests.interop.cluster import TOOLS, run_tool, tool_command, until

TOOLS.setdefault("kafka-share-groups", "org.apache.kafka.tools.consumer.group.ShareGroupCommand")
TOOLS.setdefault("kafka-console-share-consumer", "org.apache.kafka.tools.consumer.ConsoleShareConsumer")
PARTITIONS = 4
RECORDS = 1000
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1500",
    "group.share.min.heartbeat.interval.ms": "1500",
}


@pytest.fixture(scope="module")
def share_node(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with SYSTEMS[system](tmp_path_factory.mktemp("share"), overrides=SETTINGS) as node:
        yield node


@pytest.fixture
def topic(share_node: Node, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z_]", "", request.node.name)[:60]
    admin = AdminClient({"bootstrap.servers": share_node.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return name


def _group(node: Node, name: str, **settings: str) -> str:
    texts = {"share.auto.offset.reset": "earliest"} | {key.replace("_", "."): text for key, text in settings.items()}
    options = ",".join(f"{key}={text}" for key, text in texts.items())
    done = run_tool(
        "kafka-configs",
        *("--bootstrap-server", node.bootstrap, "--alter", "--entity-type", "groups"),
        *("--entity-name", name, "--add-config", options),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return name


def _produce(node: Node, topic: str, count: int = RECORDS) -> set[str]:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    values = {f"value-{number}" for number in range(count)}
    for number, value in enumerate(sorted(values)):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return values


def _console(node: Node, topic: str, group: str, *arguments: str) -> subprocess.Popen[str]:
    command = tool_command(
        "kafka-console-share-consumer",
        *("--bootstrap-server", node.bootstrap, "--topic", topic, "--group", group, *arguments),
    )
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _share_groups(node: Node, *arguments: str) -> str:
    done = run_tool("kafka-share-groups", "--bootstrap-server", node.bootstrap, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _lag(node: Node, group: str) -> list[tuple[int, int]]:
    """Start offset and lag of each partition."""
    rows = re.findall(
        rf"^{group}\s+\S+\s+\d+\s+(\d+)\s+(\d+)", _share_groups(node, "--describe", "--group", group), re.M
    )
    return [(int(start), int(lag)) for start, lag in rows]


def test_java_consumers_share_a_topic_and_nothing_comes_twice(share_node: Node, topic: str) -> None:
    group = _group(share_node, "java-pair")
    values = _produce(share_node, topic)
    consumers = [_console(share_node, topic, group, "--timeout-ms", "8000") for _ in range(2)]
    printed = [value for each in consumers for value in each.communicate(timeout=100)[0].split()]
    assert sorted(printed) == sorted(values)
    assert [lag for _, lag in _lag(share_node, group)] == [0] * PARTITIONS


def test_librdkafkas_share_consumer_reads_and_acknowledges(share_node: Node, topic: str) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    if not hasattr(confluent, "ShareConsumer"):
        pytest.skip("this librdkafka has no share consumer")
    group = _group(share_node, "librdkafka")
    values = _produce(share_node, topic)
    consumer = confluent.ShareConsumer({"bootstrap.servers": share_node.bootstrap, "group.id": group})
    consumer.subscribe([topic])
    found: list[str] = []
    deadline_s = time.monotonic() + 60
    while len(found) < len(values) and time.monotonic() < deadline_s:
        found += [message.value().decode() for message in consumer.poll(1.0) or [] if message.error() is None]
    # What a poll returned is accepted by the next one.
    consumer.poll(1.0)
    consumer.close()
    assert sorted(found) == sorted(values)
    until(lambda: [lag for _, lag in _lag(share_node, group)] == [0] * PARTITIONS, "everything being settled", 20)


def test_what_a_killed_consumer_held_comes_back(share_node: Node, topic: str) -> None:
    group = _group(share_node, "killed")
    values = _produce(share_node, topic)
    doomed = _console(share_node, topic, group)
    assert doomed.stdout is not None
    assert doomed.stdout.readline(), "it has begun"
    doomed.kill()
    doomed.wait()
    printed = _console(share_node, topic, group, "--timeout-ms", "15000").communicate(timeout=100)[0].split()
    assert len(printed) == len(set(printed))
    assert set(printed) <= values
    assert [lag for _, lag in _lag(share_node, group)] == [0] * PARTITIONS


def test_fifty_consumers_of_which_ten_are_killed_accept_each_record_once(share_node: Node, topic: str) -> None:
    group = _group(share_node, "fifty")
    accepted: Counter[tuple[int, int]] = Counter()
    held: list[int] = []
    is_over = asyncio.Event()

    def told(partition: TopicPartition, offsets: Mapping[int, AcknowledgeType], error: ApiError | None) -> None:
        if error is None:
            accepted.update((partition.partition, offset) for offset in offsets)

    async def consume(number: int) -> None:
        settings = {"bootstrap.servers": share_node.bootstrap, "group.id": group}
        consumer = ShareConsumer(settings, on_acknowledged=told)
        consumer.subscribe([topic])
        polls = 0
        while not is_over.is_set():
            deliveries = await consumer.poll(timeout_s=0.5)
            polls += bool(deliveries)
            if number < 10 and polls == 2:
                held.append(len(deliveries))
                await consumer.cluster.close()
                return
        await consumer.close()

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(consume(number)) for number in range(50)]
        await asyncio.sleep(5)
        values = await asyncio.to_thread(_produce, share_node, topic, 20_000)
        async with asyncio.timeout(90):
            while len(accepted) < len(values):
                await asyncio.sleep(0.1)
        is_over.set()
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())
    assert set(accepted.values()) == {1}
    assert held


def test_a_poison_record_is_given_up_after_the_limit(share_node: Node, topic: str) -> None:
    group = _group(share_node, "poisoned", share_delivery_count_limit="3")
    producer = Producer({"bootstrap.servers": share_node.bootstrap})
    producer.produce(topic, "poison", partition=0)
    assert producer.flush(30) == 0
    printed = _console(share_node, topic, group, "--release", "--timeout-ms", "8000").communicate(timeout=100)[0]
    assert printed.split() == ["poison"] * 3
    # Kafka shows no start for partitions in which nothing was settled yet.
    assert {lag for _, lag in _lag(share_node, group)} == {0}


def test_kafkas_tool_shows_resets_and_deletes_groups(share_node: Node, topic: str) -> None:
    group = _group(share_node, "tooled")
    _produce(share_node, topic, 40)
    _console(share_node, topic, group, "--timeout-ms", "6000").communicate(timeout=100)
    assert group in _share_groups(share_node, "--list").split()
    assert re.search(
        rf"{group}\s+\S+\s+\(\d+\)\s+Empty", _share_groups(share_node, "--describe", "--group", group, "--state")
    )
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest")
    _share_groups(share_node, *reset, "--execute")
    assert _lag(share_node, group) == [(0, 10)] * PARTITIONS
    assert "Successful" in _share_groups(share_node, "--delete-offsets", "--group", group, "--topic", topic)
    assert "successful" in _share_groups(share_node, "--delete", "--group", group)
    assert group not in _share_groups(share_node, "--list").split()


def test_kafka_decodes_the_logs(share_node: Node, topic: str) -> None:
    group = _group(share_node, "decoded")
    _produce(share_node, topic, 40)
    _console(share_node, topic, group, "--timeout-ms", "6000").communicate(timeout=100)
    states = _dumped(share_node, "__share_group_state", "--share-group-state-decoder")
    assert f'"groupId":"{group}"' in states
    assert '"snapshotEpoch"' in states
    assert '"deliveryState":2' in states or '"startOffset":10' in states
    groups = _dumped(share_node, "__consumer_offsets", "--offsets-decoder")
    assert f'"groupId":"{group}"' in groups
    assert '"initializedTopics"' in groups
    assert '"subscribedTopicNames"' in groups


def _dumped(node: Node, topic: str, decoder: str) -> str:
    """Every partition's log as kafka-dump-log prints it; it copes with what the broker has open."""
    files = [str(each) for each in sorted(Path(node.data).glob(f"{topic}-*/*.log")) if each.stat().st_size]
    done = run_tool("kafka-dump-log", "--files", ",".join(files), "--print-data-log", decoder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in done.stdout.lower()
    return done.stdout
