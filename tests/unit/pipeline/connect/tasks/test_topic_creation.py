"""Which settings the topics of a source are made with."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.tasks.topic_creation import TopicCreation, TopicShape

SETTINGS = {
    "topic.creation.default.partitions": "3",
    "topic.creation.default.replication.factor": "-1",
    "topic.creation.default.cleanup.policy": "delete",
    "topic.creation.groups": "compacted, wide",
    "topic.creation.compacted.include": "state\\..*, keys",
    "topic.creation.compacted.exclude": "state\\.log",
    "topic.creation.compacted.cleanup.policy": "compact",
    "topic.creation.wide.include": "state\\.log",
    "topic.creation.wide.partitions": "12",
}


def test_the_first_group_that_includes_a_topic_counts() -> None:
    creation = TopicCreation(SETTINGS)
    assert creation.shape("keys") == TopicShape(partitions=3, configs={"cleanup.policy": "compact"})
    assert creation.shape("state.log") == TopicShape(partitions=12)
    assert creation.shape("else") == TopicShape(partitions=3, configs={"cleanup.policy": "delete"})


def test_without_settings_brokers_make_topics() -> None:
    assert TopicCreation({"topic": "x"}).shape("x") is None


@pytest.mark.parametrize("name", ["partitions", "replication.factor"])
def test_a_wrong_number_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"topic\.creation\.default\.{name}"):
        TopicCreation({f"topic.creation.default.{name}": "0"}).shape("x")


def test_a_wrong_pattern_is_named() -> None:
    settings = {
        "topic.creation.default.partitions": "1",
        "topic.creation.groups": "g",
        "topic.creation.g.include": "(",
    }
    with pytest.raises(ConfigError, match=r"topic\.creation\.g\.include"):
        TopicCreation(settings).shape("x")
