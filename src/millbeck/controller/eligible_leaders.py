"""What the tracking of eligible leaders (KIP-966) asks of ``min.insync.replicas``.

A replica is eligible because nothing is committed while too few are in sync. So everybody must mean the same by too
few: while eligible leaders are tracked the option is set for the whole cluster and for topics, never for one broker.
And when it changes, those who were eligible by the old number need not be by the new one: they are forgotten.
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
    """What must be so while eligible leaders are tracked, and is not: the option set for all, and for no broker."""
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
    """Eligible leaders are forgotten; refused while a partition has nobody else."""
    for name in sorted(image.topics.by_name):
        for index, partition in image.topics.by_name[name].partitions.items():
            if not partition.isr:
                raise InvalidUpdateVersion(
                    f"Invalid update version 0 for feature {ELIGIBLE_LEADER_REPLICAS_VERSION}. Nobody is in sync for "
                    f"{name}-{index}: who may lead it would be forgotten."
                )
    return [ClearElrRecord(topic_name=ALL_TOPICS)]


def check_option(resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    """Raises `InvalidConfig` for what the option may not become while eligible leaders are tracked."""
    if resource.type != ResourceType.BROKER or MIN_INSYNC_REPLICAS not in changes:
        return
    if resource.name:
        raise InvalidConfig(f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.")
    if changes[MIN_INSYNC_REPLICAS] is None:
        raise InvalidConfig(f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled.")


def records_for_option(
    image: MetadataImage, resource: ConfigResource, changes: Mapping[str, str | None]
) -> list[MetadataRecord]:
    """What follows from a change of the option: those who were eligible by the old number are forgotten.

    Where nobody is in sync nothing has been committed since, and they are eligible by any number: they stay, since
    without them nobody could lead. Kafka has one record for all, which can not tell them apart.
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
