"""Compaction side by side: a log compacted here is read by Kafka's tools, and Kafka's broker goes on compacting it.

The oracle is the map of everything that was written. Both systems must come to it, leave offsets where they were, and
agree in the checkpoint on where the dirty part begins.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node
from bench.systems.apache_kafka import adopt, dump_log
from tests.interop.test_directories import Filled, _assert_clean, _files

TOPIC = "table"
KEYS = 400
EAGER = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "1000"}
OPTIONS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "file.delete.delay.ms": "1000",
}
Records = dict[int, tuple[bytes, bytes | None]]
"""By offset: key and value."""


def write(bootstrap: str, dice: random.Random, count: int) -> Records:
    """Write records of a few hundred keys, a tenth of them deletions, in batches of every codec."""
    written: Records = {}

    def note(error: object, message: object) -> None:
        assert error is None, error
        written[message.offset()] = (message.key(), message.value())  # type: ignore[attr-defined]

    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "batch.size": 16384,
                "linger.ms": 5,
            }
        )
        for _ in range(count):
            value = None if dice.random() < 0.1 else dice.randbytes(100).hex().encode()
            producer.produce(TOPIC, key=f"key-{dice.randrange(KEYS)}", value=value, partition=0, on_delivery=note)
            producer.poll(0)
        assert producer.flush(60) == 0
    return written


def table(records: Records) -> dict[bytes, bytes]:
    latest = {key: value for _, (key, value) in sorted(records.items())}
    return {key: value for key, value in latest.items() if value is not None}


def read(bootstrap: str) -> Records:
    """Everything from the start to the end; the end may be a batch without records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        found: Records = {}
        while True:
            for message in consumer.consume(5000, 5):
                if error := message.error():
                    assert error.name() == "_PARTITION_EOF", error
                    return found
                found[message.offset() or 0] = (message.key() or b"", message.value())
    finally:
        consumer.close()


def first_dirty_offset(node: Node) -> int:
    path = node.data / "cleaner-offset-checkpoint"
    if path.exists():
        for line in path.read_text().splitlines()[2:]:
            topic, partition, offset = line.split(" ")
            if (topic, partition) == (TOPIC, "0"):
                return int(offset)
    return 0


def active_offset(node: Node) -> int:
    return max(int(path.stem) for path in (node.data / f"{TOPIC}-0").glob("*.log"))


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def wait_until_compacted(node: Node) -> None:
    wait_until(lambda: first_dirty_offset(node) == active_offset(node), f"{node.name} does not compact")


def assert_compacted(found: Records, written: Records, active_from: int) -> None:
    """The right table, offsets unmoved, and below the active segment each key once."""
    assert table(found) == table(written)
    assert found.items() <= written.items()
    below = [key for offset, (key, _) in found.items() if offset < active_from]
    assert len(below) == len(set(below))


def without_empty_batches(complaints: str) -> str:
    """The tool looks for a time index's timestamp among records. Of a last batch that is kept as a header alone there
    are none, and it says -1: of segments that Kafka has compacted, too."""
    return re.sub(r"Found timestamp mismatch in :.*\n  Index timestamp: \d+, log timestamp: -1\n", "", complaints)


@pytest.fixture(scope="module")
def compacted(system: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Node, Records]:
    """A stopped node that has compacted its log, and everything that was ever written to it."""
    node = SYSTEMS[system](tmp_path_factory.mktemp("compacted"), overrides=EAGER)
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=OPTIONS)])[TOPIC].result(30)
        written = write(node.bootstrap, random.Random(1), 6000)
        wait_until_compacted(node)
        found = read(node.bootstrap)
        assert len(found) < len(written) / 3
        assert_compacted(found, written, active_offset(node))
        node.stop()
    return node, written


def test_dump_log_reads_compacted_segments_and_their_indexes(compacted: tuple[Node, Records]) -> None:
    node, written = compacted
    logs = _files(Filled(node=node), f"{TOPIC}-0/*.log")
    done = dump_log("--deep-iteration", "--files", ",".join(map(str, logs)))
    assert done.returncode == 0, done.stderr
    _assert_clean(done.stdout, done.stderr)
    dumped = sum(line.startswith("| offset:") for line in done.stdout.splitlines())
    assert KEYS / 2 < dumped < len(written) / 3
    assert "deleteHorizonMs: OptionalLong[" in done.stdout, "clean tombstones have the time at which they go"
    indexes = [path for suffix in ("index", "timeindex") for path in _files(Filled(node=node), f"{TOPIC}-0/*.{suffix}")]
    for check in ("--index-sanity-check", "--verify-index-only"):
        done = dump_log(check, "--files", ",".join(map(str, indexes)))
        assert done.returncode == 0, done.stderr
        _assert_clean(done.stdout, without_empty_batches(done.stderr))


def test_apache_kafka_goes_on_compacting_a_copy(compacted: tuple[Node, Records], tmp_path: Path) -> None:
    node, written = compacted
    shutil.copytree(node.data, tmp_path / "data")
    with adopt(tmp_path, node_id=node.node_id, overrides=EAGER) as kafka:
        clean_before = first_dirty_offset(kafka)
        assert clean_before == first_dirty_offset(node) > 0
        assert table(read(kafka.bootstrap)) == table(written)
        more = written | write(kafka.bootstrap, random.Random(2), 6000)
        wait_until_compacted(kafka)
        assert first_dirty_offset(kafka) > clean_before
        assert_compacted(read(kafka.bootstrap), more, active_offset(kafka))
        kafka.stop()
        assert "Resetting first dirty offset" not in kafka.log_path.read_text(errors="replace")


def test_both_come_to_the_same_log(compacted: tuple[Node, Records], tmp_path: Path) -> None:
    """The same history after the move: what each of them leaves below the active segment is the same."""
    node, written = compacted
    left: list[Records] = []
    for name in ("millbeck", "apache-kafka"):
        home = tmp_path / name
        shutil.copytree(node.data, home / "data")
        kind = SYSTEMS[name](home, node_id=node.node_id, overrides=EAGER)
        with kind as other:
            more = written | write(other.bootstrap, random.Random(3), 4000)
            wait_until_compacted(other)
            found = read(other.bootstrap)
            assert_compacted(found, more, active_offset(other))
            left.append({offset: record for offset, record in found.items() if offset < first_dirty_offset(node)})
            other.stop()
    assert table(left[0]) == table(left[1])
    assert left[0] == left[1]
