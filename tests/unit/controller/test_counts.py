from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millbeck.controller.counts import ControllerCounts, ElectionCounts, counts_of, elections_in
from millbeck.metadata.delta import advance
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import PartitionChangeRecord

WithTopic = Callable[..., MetadataImage]
TOPIC_ID = b"topic-id--------"


def test_what_is_in_trouble_is_counted(three_brokers: MetadataImage, with_topic: WithTopic) -> None:
    brokers = dict(three_brokers.cluster.brokers)
    brokers[2] = replace(brokers[2], in_controlled_shutdown=True)
    brokers[3] = replace(brokers[3], is_fenced=True)
    image = replace(three_brokers, cluster=replace(three_brokers.cluster, brokers=brokers))
    image = with_topic(image, {"replicas": [1, 2]}, {"replicas": [2, 1], "leader": 1}, {"replicas": [3], "leader": -1})
    assert counts_of(image) == ControllerCounts(
        active_brokers=2,
        fenced_brokers=1,
        in_controlled_shutdown=1,
        topics=1,
        partitions=3,
        offline_partitions=1,
        preferred_replica_imbalance=2,
    )


def test_only_leaders_that_may_lack_records_are_unclean(tracking: MetadataImage, with_topic: WithTopic) -> None:
    image = with_topic(
        tracking,
        {"replicas": [1, 2, 3], "isr": [1, 2]},
        {"replicas": [1, 2, 3], "isr": [], "leader": -1, "eligible_leader_replicas": [2]},
        {"replicas": [1, 2, 3], "isr": [], "leader": -1, "eligible_leader_replicas": [2]},
        {"replicas": [1, 2, 3], "isr": [1]},
        {"replicas": [1, 2, 3], "isr": [1]},
    )
    leaders = {0: 2, 1: 2, 2: 3, 3: -1, 4: 1}
    records = [
        PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, leader=leader) for index, leader in leaders.items()
    ]
    _, delta = advance(image, records, offset=image.offset + 5, epoch=1, timestamp_ms=1)
    assert elections_in(delta.topics.changed_partitions()) == ElectionCounts(elections=3, unclean=1, from_eligible=1)
