from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millbeck.controller import OptionRules
from millbeck.controller.election_rules import ElectionRules, partitions_where
from millbeck.controller.partition_change import Election
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
    rules = ElectionRules(image, make_rules())
    assert rules.options_of("plain") == (1, Election.ONLINE)
    assert rules.options_of("own") == (3, Election.ONLINE)
    assert rules.options_of("risky") == (1, Election.UNCLEAN)
    assert [rules.allows_unclean(name) for name in ("plain", "own", "risky")] == [False, False, True]
    default = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    rules = ElectionRules(replayed(image, [default]), make_rules())
    assert [rules.options_of(name).min_insync_replicas for name in ("plain", "own", "risky")] == [2, 3, 2]


def test_who_comes_back_to_leave_does_not_lead(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules
) -> None:
    image = with_topic(three_brokers, {"replicas": [1], "leader": -1})
    everything = list(partitions_where(image, lambda partition: True))
    for leaving, elections in ((False, 1), (True, 0)):
        broker = replace(image.cluster.brokers[1], is_fenced=True, in_controlled_shutdown=leaving)
        image = replace(image, cluster=replace(image.cluster, brokers={1: broker}))
        assert ElectionRules(image, make_rules()).changes(everything) == []
        assert len(ElectionRules(image, make_rules(), added=1).changes(everything)) == elections


def test_changes_are_made_where_something_is_different(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Rules, replayed: Callable[..., MetadataImage]
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2, 3]}, {"replicas": [2, 3]}, {"replicas": [3, 1], "isr": [3]})
    everything = list(partitions_where(image, lambda partition: True))
    assert [(placed.topic.name, placed.partition_id) for placed in everything] == [("t", 0), ("t", 1), ("t", 2)]
    after = replayed(image, ElectionRules(image, make_rules(), removed=1).changes(everything))
    partitions = after.topics.by_name["t"].partitions
    assert [(partition.leader, partition.isr) for partition in partitions.values()] == [
        (2, (2, 3)),
        (2, (2, 3)),
        (3, (3,)),
    ]
    assert partitions[1] is image.topics.by_name["t"].partitions[1]
