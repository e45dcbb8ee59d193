"""A word count with Kafka Streams and exactly_once_v2, killed in the middle and started again.

With no cache before its output every word is counted out: readers of what is committed must see 1, 2, 3 and so on for
each word, no number twice and none left out, up to what an oracle counts.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.systems import Node
from tests.interop.cluster import _LIGHT
from tools import peers

SOURCE = Path(__file__).parent / "java" / "WordCount.java"
PATIENCE_S = 120.0
WORDS = [f"word-{number}" for number in range(40)]
PARTITIONS = 2


@contextmanager
def word_count(node: Node, application: str, directory: Path, topics: tuple[str, str]) -> Iterator[None]:
    """The application; at the end it is killed with everything that it has under way."""
    command = ["java", *_LIGHT, "-Xmx384m", "-cp", f"{peers.peer_path('kafka-streams')}/*", str(SOURCE)]
    said = directory / "said"
    with said.open("ab") as out:
        process = subprocess.Popen(
            [*command, node.bootstrap, application, str(directory / "state"), *topics],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        assert process.poll() is None, said.read_text()[-3000:]
    finally:
        process.kill()
        process.wait(30)


def produce(node: Node, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number, line in enumerate(lines):
        producer.produce(topic, value=line, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


class Counts:
    """What readers of committed records see of the output: the counts of each word, as they came."""

    def __init__(self, node: Node, topic: str) -> None:
        self.seen: dict[str, list[int]] = {}
        self.total = 0
        settings = {"group.id": f"counts-{topic}", "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": node.bootstrap, **settings})
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])

    def read_until(self, total: int) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while self.total < total and time.monotonic() < deadline_s:
            self._read(0.2)
        assert self.total >= total, f"{self.total} counts of {total} in {PATIENCE_S} s"

    def read_rest(self, seconds: float) -> None:
        """What else there is: nothing, if nothing is counted twice."""
        deadline_s = time.monotonic() + seconds
        while time.monotonic() < deadline_s:
            self._read(0.2)

    def _read(self, seconds: float) -> None:
        for message in self._consumer.consume(1000, seconds):
            assert not message.error(), message.error()
            word, count = (message.key() or b"").decode(), int(message.value() or b"")
            self.seen.setdefault(word, []).append(count)
            self.total += 1

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.timeout(400)
def test_words_are_counted_exactly_once(node: Node, new_topic: Callable[..., str], tmp_path: Path) -> None:
    topics = new_topic(partitions=PARTITIONS), new_topic(partitions=PARTITIONS)
    rng = random.Random(7)
    lines = [" ".join(rng.choices(WORDS, k=5)) for _ in range(3000)]
    oracle = Counter(word for line in lines for word in line.split())
    application = f"word-count-{topics[0]}"
    counts = Counts(node, topics[1])
    produce(node, topics[0], lines[:1000])
    with word_count(node, application, tmp_path, topics):
        counts.read_until(1000)
        produce(node, topics[0], lines[1000:2500])
        counts.read_until(5500)
    # Killed between two commits, with some of its work neither committed nor aborted.
    produce(node, topics[0], lines[2500:])
    with word_count(node, application, tmp_path, topics):
        counts.read_until(oracle.total())
        counts.read_rest(2.0)
    counts.close()
    assert counts.seen == {word: list(range(1, count + 1)) for word, count in oracle.items()}
