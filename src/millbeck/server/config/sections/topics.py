"""How topics come and go."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, CLASS, INT, Importance, Section, at_least, option


class TopicDefaultOptions(Section):
    auto_create_topics_enable = option(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Create a topic when a client asks for its metadata and it does not exist.",
    )
    num_partitions = option(
        "num.partitions",
        INT,
        1,
        valid=at_least(1),
        doc="Partitions of a topic that is created without a number of them.",
    )
    default_replication_factor = option(
        "default.replication.factor",
        INT,
        1,
        doc="Replicas of a topic that is created without a number of them.",
    )
    max_request_partition_size_limit = option(
        "max.request.partition.size.limit",
        INT,
        2000,
        valid=at_least(1),
        doc="The most partitions in one page of DescribeTopicPartitions.",
    )
    delete_topic_enable = option(
        "delete.topic.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether topics can be deleted at all.",
    )
    create_topic_policy_class_name = option(
        "create.topic.policy.class.name",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="A policy that may refuse new topics. Not available in this release: it must not be set.",
    )
    alter_config_policy_class_name = option(
        "alter.config.policy.class.name",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="A policy that may refuse changes of settings. Not available in this release: it must not be set.",
    )
