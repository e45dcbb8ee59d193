from __future__ import annotations

from dataclasses import replace

import pytest

from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.directories import MIGRATING_DIRECTORY
from millbeck.metadata.image.topics import (
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from millbeck.metadata.records import PartitionChangeRecord, PartitionRecord

ONE, TWO = b"1" * 16, b"2" * 16
PARTITION = PartitionRegistration(
    replicas=(1, 2), directories=(ONE, TWO), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=9
)


def test_a_partition_survives_the_way_through_a_record() -> None:
    rich = replace(
        PARTITION,
        removing_replicas=(2,),
        adding_replicas=(1,),
        eligible_leader_replicas=(2,),
        last_known_elr=(1,),
        leader_recovery_state=1,
    )
    for partition in (PARTITION, rich):
        assert PartitionRegistration.from_record(partition.to_record(ONE, 0)) == partition


def test_naming_a_leader_raises_both_epochs_and_any_change_one() -> None:
    same_leader = PARTITION.changed(PartitionChangeRecord(leader=1))
    assert (same_leader.leader, same_leader.leader_epoch, same_leader.partition_epoch) == (1, 5, 10)
    shrunk = PARTITION.changed(PartitionChangeRecord(isr=[1]))
    assert (shrunk.isr, shrunk.leader, shrunk.leader_epoch, shrunk.partition_epoch) == ((1,), 1, 4, 10)
    nobody = PARTITION.changed(PartitionChangeRecord(leader=-1))
    assert not nobody.has_leader
    assert nobody.leader_epoch == 5


def test_only_what_a_change_names_is_different() -> None:
    assert PARTITION.changed(PartitionChangeRecord()) == replace(PARTITION, partition_epoch=10)
    recovering = PARTITION.changed(PartitionChangeRecord(leader_recovery_state=1))
    assert recovering.leader_recovery_state == 1
    assert recovering.changed(PartitionChangeRecord()).leader_recovery_state == 1
    moved = PARTITION.changed(PartitionChangeRecord(replicas=[2], directories=[TWO], eligible_leader_replicas=[1]))
    assert (moved.replicas, moved.directories, moved.eligible_leader_replicas) == ((2,), (TWO,), (1,))


def test_partitions_from_before_directories_were_tracked_have_none_known() -> None:
    partition = PartitionRegistration.from_record(PartitionRecord(replicas=[1, 2], isr=[1]))
    assert partition.directories == (MIGRATING_DIRECTORY, MIGRATING_DIRECTORY)


def test_directories_must_match_the_replicas() -> None:
    with pytest.raises(MetadataFault, match="1 directories for 2 replicas"):
        PartitionRegistration.from_record(PartitionRecord(replicas=[1, 2], directories=[ONE]))


def test_a_replicas_directory_is_found_by_broker() -> None:
    assert PARTITION.directory(2) == TWO
    with pytest.raises(MetadataFault, match="broker 3 is not a replica"):
        PARTITION.directory(3)


def test_topics_are_found_by_name_and_id_and_written_in_order() -> None:
    topic = TopicImage(name="b", topic_id=ONE, partitions={1: PARTITION, 0: PARTITION})
    other = TopicImage(name="a", topic_id=TWO)
    image = TopicsImage(by_id={ONE: topic, TWO: other}, by_name={"b": topic, "a": other})
    assert image.named("b") is image.with_id(ONE) is topic
    assert image.partition("b", 1) is PARTITION
    assert image.partition("b", 2) is None
    assert image.partition("c", 0) is None
    written = [getattr(record, "name", None) or getattr(record, "partition_id", None) for record in image.records()]
    assert written == ["a", "b", 0, 1]
