"""What may be destroyed, by what the replicas hold."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.topics import PartitionRegistration, TopicImage, TopicsImage
from millbeck.simulation.faults.budget import FaultBudget
from millbeck.simulation.observer.findings import Violations
from millbeck.simulation.observer.image_watch import MetadataFacts
from millbeck.simulation.observer.partition_watch import ReplicationFacts
from tests.unit.simulation.observer.test_partition_watch import replica

PARTITION = PartitionRegistration(
    replicas=(1, 2, 3), directories=(bytes(16),) * 3, isr=(1, 2, 3), leader=1, leader_epoch=4, partition_epoch=9
)


def budget(
    partition: PartitionRegistration, logs: dict[int, list[int]], away: tuple[int, ...] = ()
) -> tuple[FaultBudget, ReplicationFacts]:
    findings = Violations(lambda: 1.0)
    data = ReplicationFacts(findings, 2)
    metadata = MetadataFacts(findings, data)
    topic = TopicImage(name="t", topic_id=bytes(16), partitions={0: partition})
    metadata.newest = MetadataImage(offset=1, topics=TopicsImage(by_id={bytes(16): topic}, by_name={"t": topic}))
    facts = data.of("t", 0)
    for node_id, checksums in logs.items():
        shadow = replica(facts, node_id, checksums)
        if node_id == 1:
            for entry in shadow.entries:
                facts.lineage.commit(entry)
    observer = SimpleNamespace(data=data, metadata=metadata, is_registered=lambda node_id: node_id not in away)
    return FaultBudget(observer), data  # type: ignore[arg-type]


def test_one_of_several_whole_replicas_may_lose_data() -> None:
    allowed, _ = budget(PARTITION, {1: [11], 2: [11], 3: [11]})
    assert allowed.may_lose(1)
    assert allowed.may_lose(7)


def test_the_last_whole_replica_must_not() -> None:
    alone, _ = budget(replace(PARTITION, isr=(1,)), {1: [11], 2: [11], 3: [11]})
    assert not alone.may_lose(1)
    assert alone.may_lose(2)
    behind, _ = budget(replace(PARTITION, isr=(1, 2)), {1: [11, 12], 2: [11], 3: []})
    assert not behind.may_lose(1)
    assert behind.refused_count == 1


def test_after_a_loss_whoever_is_left_must_not_even_be_killed() -> None:
    allowed, data = budget(replace(PARTITION, isr=(1, 2)), {1: [11], 2: [11], 3: [11]})
    assert allowed.may_end([1, 2, 3])
    data.mark_data_lost(2)
    assert not allowed.may_end([1])
    assert not allowed.may_lose(1)
    assert not allowed.may_end([3])
    assert allowed.may_end([2])


def test_nobody_who_is_away_is_counted_on() -> None:
    alone, _ = budget(PARTITION, {1: [11], 2: [11], 3: [11]}, away=(2, 3))
    assert not alone.may_lose(1)
    assert not alone.may_lose(2)
