"""A node with two log directories of which one is gone when it starts: the rest lives on, and all of it comes back."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from millbeck.cli.main import cli
from millbeck.testing import Broker, broker

PARTITIONS = 6


def test_a_directory_that_fails_at_the_start_takes_nothing_else_along(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with broker({"log.dirs": f"{first},{second}", "num.partitions": PARTITIONS}, data=first) as node:
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for number in range(PARTITIONS):
            producer.produce("t", b"before", partition=number)
        assert producer.flush(30) == 0
        there = {number: (first / f"t-{number}").is_dir() for number in range(PARTITIONS)}
        assert set(there.values()) == {True, False}, "the directories share the partitions"
        node.stop()
        second.rename(tmp_path / "away")
        second.write_text("not a directory")
        node.start()
        assert _readable(node) == [number for number, is_there in there.items() if is_there]
        assert _lost(node) == [str(second)]
        node.stop()
        second.unlink()
        (tmp_path / "away").rename(second)
        node.start()
        assert _readable(node) == list(range(PARTITIONS))
        assert _lost(node) == []


def test_a_directory_that_is_lost_while_the_node_runs_comes_back_as_it_was(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with broker({"log.dirs": f"{first},{second}", "num.partitions": PARTITIONS}, data=first) as node:
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for number in range(PARTITIONS):
            producer.produce("t", b"before", partition=number)
        assert producer.flush(30) == 0
        there = [number for number in range(PARTITIONS) if (first / f"t-{number}").is_dir()]
        second.rename(tmp_path / "away")
        producer.produce("new", b"elsewhere", partition=0)
        assert producer.flush(30) == 0
        assert not second.exists()
        assert _lost(node) == [str(second)]
        assert _readable(node) == there
        node.stop()
        (tmp_path / "away").rename(second)
        node.start()
        assert _readable(node) == list(range(PARTITIONS))
        assert _lost(node) == []


def _lost(node: Broker) -> list[str]:
    done = CliRunner().invoke(
        cli, ["log-dirs", "--bootstrap-server", node.bootstrap, "--output", "json"], prog_name="millbeck"
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    return sorted({str(row["directory"]) for row in rows if row["state"] != "ok"})


def _readable(node: Broker) -> list[int]:
    """Partitions whose record is still there."""
    found = []
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "enable.auto.commit": False})
    for number, partition in sorted(consumer.list_topics("t", timeout=30).topics["t"].partitions.items()):
        is_led = partition.error is None and partition.leader >= 0
        if is_led and consumer.get_watermark_offsets(TopicPartition("t", number), 10) == (0, 1):
            found.append(number)
    consumer.close()
    return found
