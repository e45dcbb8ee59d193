"""Options of topic creation and deletion."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, CLASS, INT, Importance, Section, at_least, option


class TopicDefaultOptions(Section):
    auto_create_topics_enable = option(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether a missing topic is created when a client requests its metadata.",
    )
    num_partitions = option(
        "num.partitions",
        INT,
        1,
        valid=at_least(1),
        doc="The default number of partitions of new topics.",
    )
    default_replication_factor = option(
        "default.replication.factor",
        INT,
        1,
        doc="The default replication factor of new topics.",
    )
    max_request_partition_size_limit = option(
        "max.request.partition.size.limit",
        INT,
        2000,
        valid=at_least(1),
        doc="The maximum number of partitions in one DescribeTopicPartitions response.",
    )
    delete_topic_enable = option(
        "delete.topic.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether topics can be deleted.",
    )
    create_topic_policy_class_name = option(
        "create.topic.policy.class.name",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="The class of a policy that validates new topics. Not available in this release: it must not be set.",
    )
    alter_config_policy_class_name = option(
        "alter.config.policy.class.name",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="The class of a policy that validates config changes. Not available in this release: it must not be set.",
    )
