from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import OptionRules
from millbeck.controller.election_rules import ElectionContext, find_partitions
from millbeck.controller.partition_change import ElectionMode, PartitionChange
from millbeck.controller.result import finished
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ConfigRecord

WithTopic = Callable[..., MetadataImage]
Rules = Callable[[], OptionRules]


def test_a_topics_options_come_before_the_clusters(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules, replayed: Callable[..., MetadataImage]
) -> None:
    image = with_topic(three_brokers, {"replicas": [1]}, name="plain", topic_id=b"p" * 16)
    image = with_topic(image, {"replicas": [1]}, name="own", topic_id=b"o" * 16, min_insync_replicas="3")
    image = with_topic(
        image, {"replicas": [1]}, name="risky", topic_id=b"r" * 16, unclean_leader_election_enable="true"
    )
    rules = ElectionContext(image, make_rules())
    assert rules.options_of("plain") == (1, ElectionMode.ONLINE)
    assert rules.options_of("own") == (3, ElectionMode.ONLINE)
    assert rules.options_of("risky") == (1, ElectionMode.UNCLEAN)
    assert [rules.allows_unclean(name) for name in ("plain", "own", "risky")] == [False, False, True]
    default = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    rules = ElectionContext(replayed(image, [default]), make_rules())
    assert [rules.options_of(name).min_insync_replicas for name in ("plain", "own", "risky")] == [2, 3, 2]


def test_who_comes_back_to_leave_does_not_lead(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules
) -> None:
    image = with_topic(three_brokers, {"replicas": [1], "leader": -1})
    everything = list(find_partitions(image, lambda partition: True))
    for leaving, elections in ((False, 1), (True, 0)):
        broker = replace(image.cluster.brokers[1], is_fenced=True, in_controlled_shutdown=leaving)
        image = replace(image, cluster=replace(image.cluster, brokers={1: broker}))
        assert finished(ElectionContext(image, make_rules()).changes(everything)) == []
        assert len(finished(ElectionContext(image, make_rules(), added=1).changes(everything))) == elections


def test_changes_are_made_where_something_is_different(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules, replayed: Callable[..., MetadataImage]
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2, 3]}, {"replicas": [2, 3]}, {"replicas": [3, 1], "isr": [3]})
    everything = list(find_partitions(image, lambda partition: True))
    assert [placed and (placed.topic.name, placed.partition_id) for placed in everything] == [
        ("t", 0),
        ("t", 1),
        ("t", 2),
    ]
    after = replayed(image, finished(ElectionContext(image, make_rules(), removed=1).changes(everything)))
    partitions = after.topics.by_name["t"].partitions
    assert [(partition.leader, partition.isr) for partition in partitions.values()] == [
        (2, (2, 3)),
        (2, (2, 3)),
        (3, (3,)),
    ]
    assert partitions[1] is image.topics.by_name["t"].partitions[1]


def test_one_bad_partition_does_not_keep_the_others_from_changing(
    three_brokers: MetadataImage,
    with_topic: WithTopic,
    make_rules: Rules,
    replayed: Callable[..., MetadataImage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2]}, {"replicas": [1, 2]}, {"replicas": [1, 2]})
    original = PartitionChange.build

    def build(self: PartitionChange, topic_id: bytes, partition_id: int) -> Any:
        if partition_id == 1:
            raise ValueError(partition_id)
        return original(self, topic_id, partition_id)

    monkeypatch.setattr(PartitionChange, "build", build)
    rules = make_rules()
    for _ in range(2):
        records = finished(ElectionContext(image, rules, removed=1).changes(find_partitions(image, lambda _: True)))
    partitions = replayed(image, records).topics.by_name["t"].partitions
    assert [partition.leader for partition in partitions.values()] == [2, 1, 2]
    assert rules.isolation.failure_count == 2


def test_a_stored_option_that_is_not_understood_is_as_if_it_were_not_set(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2]}, name="bad", min_insync_replicas="many")
    rules = make_rules()
    elections = ElectionContext(image, rules, removed=1)
    assert elections.options_of("bad").min_insync_replicas == 1
    assert len(finished(elections.changes(find_partitions(image, lambda _: True)))) == 1
    assert rules.isolation.failure_count == 1
