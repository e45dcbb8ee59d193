"""The node's own topics are made as the settings say."""

from __future__ import annotations

from millbeck.server.config import NodeConfig
from millbeck.server.internal_topics import OFFSETS_TOPIC, internal_topics


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
    assert list(topics) == [OFFSETS_TOPIC] == ["__consumer_offsets"]
    topic = topics[OFFSETS_TOPIC]
    assert (topic.partition_count, topic.replication_factor) == (7, 1)
    assert topic.options["cleanup.policy"] == "compact"
    assert topic.options["segment.bytes"] == "2000000"
