"""Keys go where other clients send them; records without one stick for a batch and then move."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from millbeck.client.metadata import PartitionMetadata, TopicView
from millbeck.client.producer.partitioner import DefaultPartitioner


class Dice:
    def __init__(self) -> None:
        self._random = random.Random(4)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def uuid(self) -> bytes:
        raise AssertionError


def topic(*leaders: int) -> TopicView:
    return TopicView(
        "t", bytes(16), False, {number: PartitionMetadata(number, leader) for number, leader in enumerate(leaders)}
    )


def test_a_key_goes_where_the_java_client_sends_it() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=100)
    kafka = pytest.importorskip("kafka.partitioner.default")
    murmur2 = kafka.murmur2
    for number in range(200):
        key = f"key-{number}".encode()
        assert partitioner.partition(topic(*[1] * 7), key, 10) == (murmur2(key) & 0x7FFFFFFF) % 7


def test_without_a_key_records_stick_for_a_batch_s_worth() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=100)
    chosen = [partitioner.partition(topic(1, 1, 1), None, 25) for _ in range(12)]
    runs = [chosen[start : start + 4] for start in (0, 4, 8)]
    assert all(len(set(run)) == 1 for run in runs)
    assert runs[0][0] != runs[1][0] != runs[2][0]


def test_over_time_every_partition_gets_its_share() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=10)
    counts = Counter(partitioner.partition(topic(1, 1, 1, 1), None, 10) for _ in range(2000))
    assert all(400 <= count <= 600 for count in counts.values())


def test_partitions_without_a_leader_are_left_out() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=1)
    assert {partitioner.partition(topic(-1, 1, -1, 1), None, 1) for _ in range(20)} == {1, 3}
    assert partitioner.partition(topic(-1), None, 1) == 0


def test_keys_can_be_ignored() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=1, ignores_keys=True)
    assert len({partitioner.partition(topic(1, 1, 1), b"same", 1) for _ in range(20)}) == 3


def test_a_topic_that_shrank_is_chosen_anew() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=1000)
    partitioner._sticky["t"] = (5, 10)
    assert partitioner.partition(topic(1), None, 1) == 0
