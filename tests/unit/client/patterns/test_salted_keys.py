"""`SaltedPartitioner`: hot keys are spread, others stay where Kafka's clients send them."""

from __future__ import annotations

from collections import Counter

import pytest

from millbeck.client.metadata import PartitionMetadata, TopicView
from millbeck.client.patterns import PartialResults, SaltedPartitioner
from millbeck.client.patterns.salted_keys import HotKeys, part_of
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.records.partitioning import partition_for_key

TOPIC = TopicView("t", ZERO_UUID, False, {number: PartitionMetadata(number, 1) for number in range(12)})


def test_a_listed_key_is_spread_evenly_and_no_other() -> None:
    partitioner = SaltedPartitioner(["hot"], spread=4)
    counts = Counter(partitioner.partition(TOPIC, b"hot", 10) for _ in range(400))
    assert sorted(counts) == sorted(partitioner.partitions_of(TOPIC, b"hot"))
    assert set(counts.values()) == {100}
    for number in range(100):
        key = b"cold %d" % number
        assert partitioner.partition(TOPIC, key, 10) == partition_for_key(key, 12)
    assert len({partitioner.partition(TOPIC, None, 10) for _ in range(12)}) == 12


def test_more_salt_than_partitions_uses_all_of_them() -> None:
    partitioner = SaltedPartitioner([b"hot"], spread=100)
    assert {partitioner.partition(TOPIC, b"hot", 1) for _ in range(100)} == set(range(12))


def test_hot_keys_are_found_and_forgotten_in_bounded_memory() -> None:
    hot = HotKeys(share=0.1, window=1000)
    for number in range(5000):
        hot.seen(b"hot" if number % 4 == 0 else b"k%d" % number)
    assert b"hot" in hot
    assert not any(b"k%d" % number in hot for number in range(5000))
    assert len(hot._counts) <= 40
    for number in range(5000):
        hot.seen(b"n%d" % number)
    assert b"hot" not in hot


def test_a_partitioner_that_finds_hot_keys_itself() -> None:
    partitioner = SaltedPartitioner(HotKeys(share=0.5, window=100), spread=3)
    first = {partitioner.partition(TOPIC, b"k", 1) for _ in range(99)}
    assert first == {partition_for_key(b"k", 12)}
    assert len({partitioner.partition(TOPIC, b"k", 1) for _ in range(9)}) == 3


def test_partial_results_are_replaced_by_part_and_merged_by_key() -> None:
    totals: PartialResults[int, int] = PartialResults(sum)
    parts = [part_of(TopicPartition("t", number)) for number in range(2)]
    assert totals.update(b"hot", parts[0], 5) == 5
    assert totals.update(b"hot", parts[1], 7) == 12
    assert totals.update(b"hot", parts[0], 6) == 13
    assert (totals.result(b"hot"), totals.result(b"other")) == (13, 0)
    totals.forget(b"hot")
    assert totals.result(b"hot") == 0


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="spread"):
        SaltedPartitioner(["a"], spread=0)
    with pytest.raises(ValueError, match="share"):
        HotKeys(share=5)
    with pytest.raises(ValueError, match="window"):
        HotKeys(window=0)
