"""``min.insync.replicas`` while eligible leader replicas (KIP-966) are tracked.

A replica that leaves the ISR stays eligible because nothing is committed while fewer than ``min.insync.replicas`` are
in sync. So all nodes must agree on that number: while eligible leaders are tracked, the option can be set for the
cluster and for topics, not for one broker. When it changes, the recorded eligible leaders are removed.
"""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import MIN_INSYNC_REPLICAS
from millbeck.kernel.errors import InvalidConfig, InvalidUpdateVersion
from millbeck.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from millbeck.metadata.image import CLUSTER_DEFAULT, ConfigResource, MetadataImage, ResourceType
from millbeck.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord, PartitionChangeRecord

ALL_TOPICS = ""


def records_for_tracking(image: MetadataImage, rules: ConfigRules) -> list[MetadataRecord]:
    """The records needed before tracking begins: set the option for the cluster, remove it from brokers."""
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in image.configs.of_all_brokers():
        value = rules.value_in_force(image.configs, CLUSTER_DEFAULT, MIN_INSYNC_REPLICAS)
        records.append(_option(CLUSTER_DEFAULT, value or "1"))
    for name in image.configs.names(ResourceType.BROKER):
        resource = ConfigResource(ResourceType.BROKER, name)
        if name and MIN_INSYNC_REPLICAS in image.configs.of(resource):
            records.append(_option(resource, None))
    return records


def records_for_untracking(image: MetadataImage) -> list[MetadataRecord]:
    """Remove all eligible leaders; refused while a partition depends on one."""
    for name in sorted(image.topics.by_name):
        for index, partition in image.topics.by_name[name].partitions.items():
            if not partition.isr:
                raise InvalidUpdateVersion(
                    f"Invalid update version 0 for feature {ELIGIBLE_LEADER_REPLICAS_VERSION}. {name}-{index} has "
                    "no in-sync replica: the replicas that are eligible to lead it would be lost."
                )
    return [ClearElrRecord(topic_name=ALL_TOPICS)]


def check_option(resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    """Raise `InvalidConfig` for a change that is not allowed while eligible leaders are tracked."""
    if resource.type != ResourceType.BROKER or MIN_INSYNC_REPLICAS not in changes:
        return
    if resource.name:
        raise InvalidConfig(f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.")
    if changes[MIN_INSYNC_REPLICAS] is None:
        raise InvalidConfig(f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled.")


def records_for_option(
    image: MetadataImage, resource: ConfigResource, changes: Mapping[str, str | None]
) -> list[MetadataRecord]:
    """The records that follow a change of the option: eligible leaders are removed.

    Where the ISR is empty, nothing has been committed since: the eligible leaders are kept, because no other replica
    could lead. Kafka writes one record for all topics, which cannot make this distinction.
    """
    before = image.configs.of(resource).get(MIN_INSYNC_REPLICAS)
    if MIN_INSYNC_REPLICAS not in changes or before == changes[MIN_INSYNC_REPLICAS]:
        return []
    if resource.type == ResourceType.TOPIC:
        topic = image.topics.named(resource.name)
        topics = [] if topic is None else [topic]
    elif resource == CLUSTER_DEFAULT:
        topics = [image.topics.by_name[name] for name in sorted(image.topics.by_name)]
    else:
        return []
    if all(partition.isr for topic in topics for partition in topic.partitions.values()):
        return [ClearElrRecord(topic_name=resource.name if resource.type == ResourceType.TOPIC else ALL_TOPICS)]
    return [
        PartitionChangeRecord(
            partition_id=index, topic_id=topic.topic_id, eligible_leader_replicas=[], last_known_elr=[]
        )
        for topic in topics
        for index, partition in topic.partitions.items()
        if partition.isr and (partition.eligible_leader_replicas or partition.last_known_elr)
    ]


def _option(resource: ConfigResource, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=MIN_INSYNC_REPLICAS, value=value)
