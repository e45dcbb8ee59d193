"""Options of topic creation and deletion."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, CLASS, INT, STRING, Importance, Section, at_least, option


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
        doc="The policy that new topics must satisfy: TopicBounds, with the settings millbeck.topic.policy.*, or the "
        "name of an entry point in the group millbeck.create_topic_policy. Set it on controllers.",
    )
    alter_config_policy_class_name = option(
        "alter.config.policy.class.name",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="The policy that changes of configs must satisfy: the name of an entry point in the group "
        "millbeck.alter_config_policy. Set it on controllers.",
    )
    schemas_topic = option(
        "millbeck.schemas.topic",
        STRING,
        "_schemas",
        importance=Importance.LOW,
        doc="The topic of the schema registry (its kafkastore.topic), which brokers read for the topic options "
        "confluent.key.schema.validation and confluent.value.schema.validation. They need READ on it.",
    )


class TopicPolicyOptions(Section):
    """Options of the policy TopicBounds."""

    name_pattern = option(
        "millbeck.topic.policy.name.pattern",
        STRING,
        "",
        doc="A regular expression that the whole name of a new topic must match; empty: any name.",
    )
    replication_factor_min = option(
        "millbeck.topic.policy.replication.factor.min",
        INT,
        1,
        valid=at_least(1),
        doc="The minimum replication factor of a new topic.",
    )
    partitions_min = option(
        "millbeck.topic.policy.partitions.min",
        INT,
        1,
        valid=at_least(1),
        doc="The minimum number of partitions of a new topic.",
    )
    partitions_max = option(
        "millbeck.topic.policy.partitions.max",
        INT,
        0,
        valid=at_least(0),
        doc="The maximum number of partitions of a new topic; 0: any number.",
    )
