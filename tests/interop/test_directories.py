"""Kafka's own eyes on the data directory: its dump tool reads every file, and its broker serves from a copy.

One node is filled (every codec, several segments, an idempotent producer, deleted records, a deleted topic, altered
configs, committed offsets), stopped cleanly, and left; the tests then look at what it wrote.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench.raw import RawConnection
from bench.systems import SYSTEMS, Node
from bench.systems.apache_kafka import adopt, dump_log
from tests.interop.clients import ALL_CODECS

SEGMENT_BYTES = 1 << 20
Record = tuple[int | None, bytes | None, bytes | None, tuple[object, ...], int]


@dataclass(slots=True, kw_only=True)
class Filled:
    """A stopped node's directory and what was in it: records by (topic, partition), offsets by (group, topic)."""

    node: Node
    records: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    committed: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)


def _read(bootstrap: str, topic: str, partition: int) -> list[Record]:
    """Everything from the log's start to its end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer(settings | {"enable.partition.eof": False, "auto.offset.reset": "error"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        consumer.assign([TopicPartition(topic, partition, low)])
        found: list[Record] = []
        idle = 0
        while (not found or (found[-1][0] or 0) + 1 < high) and low < high and idle < 50:
            batch = consumer.consume(5000, 0.2)
            idle = 0 if batch else idle + 1
            for message in batch:
                assert not message.error(), message.error()
                headers = tuple(message.headers() or ())
                found.append((message.offset(), message.key(), message.value(), headers, message.timestamp()[1]))
        return found
    finally:
        consumer.close()


def _committed(admin: AdminClient, group: str, topic: str, partitions: int) -> list[int]:
    wanted = [TopicPartition(topic, partition) for partition in range(partitions)]
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(30)
    return [one.offset for one in found.topic_partitions]


def _fill_topics(bootstrap: str, admin: AdminClient) -> dict[str, int]:
    """Create the topics and write to them; returns partitions by topic."""
    partitions = {f"codec-{codec}": 2 for codec in ALL_CODECS} | {"idempotent": 3, "trimmed": 1, "doomed": 2}
    configs = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "1024"}
    for future in admin.create_topics(
        [NewTopic(name, count, 1, config=configs) for name, count in partitions.items()]
    ).values():
        future.result(30)
    for topic, count in partitions.items():
        codec = topic.removeprefix("codec-") if topic.startswith("codec-") else "none"
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": topic == "idempotent",
                "batch.size": 16384,
                "linger.ms": 5,
            }
        )
        for index in range(4000):
            # Half random digits, half repeated words: compressible, and still more than one segment.
            value = f"{(index * 2654435761) % (1 << 64):020d}" * 12 + " the beck turns the mill" * 10
            producer.produce(
                topic,
                value=value if index % 97 else None,
                key=f"key-{index % 50}",
                partition=index % count,
                headers=[("index", str(index).encode()), ("index", b"again")] if index % 5 == 0 else None,
                timestamp=1_700_000_000_000 + index,
            )
            producer.poll(0)
        assert producer.flush(60) == 0
    return partitions


def _alter(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


@pytest.fixture(scope="module")
def filled(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    node = SYSTEMS[system](tmp_path_factory.mktemp("filled"), overrides={"offsets.topic.num.partitions": "5"})
    contents = Filled(node=node)
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        partitions = _fill_topics(node.bootstrap, admin)
        for group in ("one", "two"):
            consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group, "group.protocol": "classic"})
            offsets = [TopicPartition("idempotent", one, 100 * one + len(group)) for one in range(3)]
            consumer.commit(offsets=offsets, asynchronous=False)
            consumer.close()
            contents.committed[group, "idempotent"] = [one.offset for one in offsets]
        (trimmed,) = admin.delete_records([TopicPartition("trimmed", 0, 2500)]).values()
        assert trimmed.result(30).low_watermark == 2500
        _alter(admin, "codec-lz4", "retention.ms", "987654321000")
        contents.configs["codec-lz4"] = {"retention.ms": "987654321000", "segment.bytes": str(SEGMENT_BYTES)}
        admin.delete_topics(["doomed"])["doomed"].result(30)
        del partitions["doomed"]
        for topic, count in partitions.items():
            for partition in range(count):
                contents.records[topic, partition] = _read(node.bootstrap, topic, partition)
        assert sum(len(records) for records in contents.records.values()) == 6 * 4000 + 1500
        node.stop()
        yield contents


def _files(filled: Filled, pattern: str) -> list[Path]:
    found = sorted(filled.node.data.glob(pattern))
    assert found, f"no file matches {pattern}"
    return [path for path in found if "-delete" not in path.parent.name]


def _assert_clean(output: str, complaints: str) -> None:
    for sign in ("Exception", "corrupt", "Mismatches", "not valid", "isvalid: false", "Found timestamp mismatch"):
        assert sign not in output, output[-3000:]
        assert sign not in complaints, complaints[-3000:]


def test_dump_log_reads_every_data_segment(filled: Filled) -> None:
    logs = [path for path in _files(filled, "*-*/*.log") if not path.parent.name.startswith("__")]
    assert len(logs) > len(filled.records), "the topics should have rolled"
    done = dump_log("--deep-iteration", "--files", ",".join(map(str, logs)))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    dumped = sum(line.startswith("| offset:") for line in done.stdout.splitlines())
    stored = sum(len(records) for records in filled.records.values())
    # The segment that holds the trimmed partition's start still has older records in it.
    assert stored <= dumped <= 7 * 4000
    for codec in ALL_CODECS:
        assert f"compresscodec: {codec}" in done.stdout.replace("NONE", "none")


def test_dump_log_finds_the_indexes_sound(filled: Filled) -> None:
    indexes = [*_files(filled, "*-*/*.index"), *_files(filled, "*-*/*.timeindex")]
    for check in ("--index-sanity-check", "--verify-index-only"):
        done = dump_log(check, "--files", ",".join(map(str, indexes)))
        assert done.returncode == 0, done.stderr
        _assert_clean(done.stdout, done.stderr)


def test_dump_log_reads_producer_snapshots(filled: Filled) -> None:
    done = dump_log("--files", ",".join(map(str, _files(filled, "idempotent-*/*.snapshot"))))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    assert "producerId:" in done.stdout


def test_dump_log_decodes_the_offsets_topic(filled: Filled) -> None:
    done = dump_log("--offsets-decoder", "--files", ",".join(map(str, _files(filled, "__consumer_offsets-*/*.log"))))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    for (group, topic), offsets in filled.committed.items():
        assert f'"group":"{group}"' in done.stdout
        assert f'"topic":"{topic}"' in done.stdout
        assert all(f'"offset":{offset}' in done.stdout for offset in offsets)


def test_dump_log_decodes_the_metadata_log(filled: Filled) -> None:
    parts = _files(filled, "__cluster_metadata-0/*.log")
    parts += sorted(filled.node.data.glob("__cluster_metadata-0/*.checkpoint"))
    done = dump_log("--cluster-metadata-decoder", "--files", ",".join(map(str, parts)))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    for expected in ('"type":"REGISTER_BROKER_RECORD"', '"type":"TOPIC_RECORD"', '"name":"codec-zstd"', "LeaderChange"):
        assert expected in done.stdout
    assert '"type":"REMOVE_TOPIC_RECORD"' in done.stdout


def test_apache_kafka_serves_a_copy_of_the_directory(filled: Filled, tmp_path: Path) -> None:
    shutil.copytree(filled.node.data, tmp_path / "data")
    with adopt(tmp_path, node_id=filled.node.node_id) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        topics = {name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")}
        assert topics == {topic for topic, _ in filled.records}
        for (topic, partition), expected in filled.records.items():
            assert _read(kafka.bootstrap, topic, partition) == expected, (topic, partition)
        for (group, topic), offsets in filled.committed.items():
            assert _committed(admin, group, topic, len(offsets)) == offsets
        for topic, configs in filled.configs.items():
            resource = ConfigResource(ResourceType.TOPIC, topic)
            described = admin.describe_configs([resource])[resource].result(30)
            assert {name: described[name].value for name in configs} == configs
        _keeps_appending(kafka, filled)


def _keeps_appending(kafka: Node, filled: Filled) -> None:
    """The adopted log is writable and goes on where it ended."""
    end = (filled.records["codec-none", 0][-1][0] or 0) + 1
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    producer.produce("codec-none", value=b"after the move", partition=0)
    assert producer.flush(30) == 0
    with RawConnection(kafka.bootstrap) as connection:
        (batch,) = connection.stored_batches("codec-none", 0, end)
    assert (batch.base_offset, batch.record_count) == (end, 1)
