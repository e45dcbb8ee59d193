"""The node's own topics are made as the settings say."""

from __future__ import annotations

from millbeck.server.config import NodeConfig
from millbeck.server.coordinators.internal_topics import OFFSETS_TOPIC, internal_topics


def test_the_offsets_topic_follows_its_settings() -> None:
    config = NodeConfig(
        {
            "log.dirs": "/data",
            "offsets.topic.num.partitions": "7",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.segment.bytes": "2000000",
        }
    )
    topics = internal_topics(config)
    assert list(topics) == [OFFSETS_TOPIC, "__transaction_state", "__share_group_state"]
    assert OFFSETS_TOPIC == "__consumer_offsets"
    topic = topics[OFFSETS_TOPIC]
    assert (topic.partition_count, topic.replication_factor) == (7, 1)
    assert topic.options["cleanup.policy"] == "compact"
    assert topic.options["segment.bytes"] == "2000000"


def test_the_other_two_have_options_of_their_own() -> None:
    config = NodeConfig(
        {
            "log.dirs": "/data",
            "transaction.state.log.num.partitions": "5",
            "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "6",
        }
    )
    topics = internal_topics(config)
    transactions, share = topics["__transaction_state"], topics["__share_group_state"]
    assert (transactions.partition_count, transactions.replication_factor) == (5, 2)
    assert transactions.options == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    assert (share.partition_count, share.replication_factor) == (6, 3)
    assert share.options["cleanup.policy"] == "delete"
    assert (share.options["retention.ms"], share.options["min.insync.replicas"]) == ("-1", "2")
