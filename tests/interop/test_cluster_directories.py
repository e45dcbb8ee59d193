"""Kafka's own eyes on the directories of three nodes: its tools decode the metadata, its brokers serve from copies.

Three nodes are filled, one of them dies and comes back on the way, and all are stopped. What they left is then read by
kafka-dump-log, and three Apache Kafka nodes are started on copies.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.cluster import NODE_IDS, Cluster, run_tool, until
from tests.interop.test_directories import _assert_clean

COUNT = 3000
TOPICS = {"three": "1:2:3,2:3:1,3:1:2", "two": "2:3,3:2", "one": "1,2,3"}
COMMITTED = [111, 222, 333]


@dataclass(slots=True, kw_only=True)
class Filled:
    cluster: Cluster
    records: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)


def _values(topic: str) -> list[bytes]:
    return [f"{topic} {index:06d} ".encode() * 12 for index in range(COUNT)]


@pytest.fixture(scope="module")
def filled(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    # Small snapshots and segments, so that the metadata log has several of both.
    settings = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
    cluster = Cluster(system, tmp_path_factory.mktemp("directories"), overrides=settings)
    contents = Filled(cluster=cluster)
    with cluster:
        for topic, assignment in TOPICS.items():
            cluster.tool(
                "kafka-topics",
                *("--create", "--topic", topic, "--replica-assignment", assignment),
                *("--config", "segment.bytes=1048576", "--config", "min.insync.replicas=1"),
            )
        cluster.tool("kafka-topics", "--create", "--topic", "doomed", "--partitions", "2")
        for topic in TOPICS:
            cluster.produce(topic, _values(topic), partitions=TOPICS[topic].count(",") + 1)
        cluster.nodes[2].kill()
        until(lambda: all("2" not in row["Isr"] for row in cluster.described("three").values()), "a shorter ISR")
        cluster.produce("three", _values("three again"), partitions=3)
        cluster.nodes[2].start()
        until(lambda: all(row["Isr"].count(",") == 2 for row in cluster.described("three").values()), "a full ISR")
        cluster.tool("kafka-topics", "--delete", "--topic", "doomed")
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "keeper", "group.protocol": "classic"})
        offsets = [TopicPartition("three", partition, offset) for partition, offset in enumerate(COMMITTED)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        for topic, assignment in TOPICS.items():
            for partition in range(assignment.count(",") + 1):
                contents.records[topic, partition] = cluster.consume(topic, partition)
        assert sum(map(len, contents.records.values())) == 4 * COUNT
        cluster.stop()
        yield contents


def _metadata_files(filled: Filled, node_id: int, pattern: str) -> list[Path]:
    return sorted((filled.cluster.nodes[node_id].data / "__cluster_metadata-0").glob(pattern))


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_dump_log_decodes_the_metadata_log_of_every_node(filled: Filled, node_id: int) -> None:
    parts = _metadata_files(filled, node_id, "*.log")
    assert parts
    done = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, parts)))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    # What lies before the newest snapshot may be gone; that all of them were stopped is at the end.
    assert '"type":"BROKER_REGISTRATION_CHANGE_RECORD"' in done.stdout


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_dump_log_decodes_the_snapshots_of_every_node(filled: Filled, node_id: int) -> None:
    snapshots = _metadata_files(filled, node_id, "*.checkpoint")
    assert snapshots, "the metadata log should have been long enough for one"
    done = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(snapshots[-1]))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    for expected in (
        "SnapshotHeader",
        "SnapshotFooter",
        '"type":"FEATURE_LEVEL_RECORD"',
        '"type":"REGISTER_BROKER_RECORD"',
        '"type":"REGISTER_CONTROLLER_RECORD"',
        '"type":"TOPIC_RECORD"',
        '"type":"PARTITION_RECORD"',
        '"type":"CONFIG_RECORD"',
    ):
        assert expected in done.stdout, expected


def test_every_replica_has_the_same_batches(filled: Filled) -> None:
    dumps = []
    for node_id in NODE_IDS:
        parts = sorted((filled.cluster.nodes[node_id].data / "three-0").glob("*.log"))
        done = run_tool("kafka-dump-log", "--files", ",".join(map(str, parts)))
        assert done.returncode == 0, done.stderr
        _assert_clean(done.stdout, done.stderr)
        dumps.append(re.findall(r"^baseOffset: .*$", done.stdout, re.MULTILINE))
    assert dumps[0]
    assert dumps[0] == dumps[1] == dumps[2]


def test_three_kafka_nodes_serve_copies_of_the_directories(filled: Filled, tmp_path: Path) -> None:
    kafka = Cluster("apache-kafka", tmp_path)
    for node_id, node in kafka.nodes.items():
        shutil.copytree(filled.cluster.nodes[node_id].data, node.data)
    with kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        assert {name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")} == set(TOPICS)
        for (topic, partition), expected in filled.records.items():
            assert kafka.consume(topic, partition) == expected, (topic, partition)
        until(
            lambda: all(row["Isr"].count(",") == 2 for row in kafka.described("three").values()),
            "every replica in sync",
        )
        wanted = [TopicPartition("three", partition) for partition in range(3)]
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("keeper", wanted)])["keeper"]
        assert [one.offset for one in found.result(30).topic_partitions] == COMMITTED
        kafka.produce("three", [b"after the move"] * 3, partitions=3)
        for partition in range(3):
            assert kafka.consume("three", partition) == [*filled.records["three", partition], b"after the move"]
