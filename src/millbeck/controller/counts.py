"""Counts for the metrics of the controller: brokers, offline and leaderless partitions, unclean elections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millbeck.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.records import NO_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerCounts:
    """The counts, named like Kafka's metrics."""

    active_brokers: int
    fenced_brokers: int
    in_controlled_shutdown: int
    topics: int
    partitions: int
    offline_partitions: int
    preferred_replica_imbalance: int


def counts_of(image: MetadataImage) -> ControllerCounts:
    """Count an image: a few milliseconds for ten thousand partitions, so only when metrics are collected."""
    brokers = image.cluster.brokers.values()
    partitions = offline = imbalanced = 0
    for topic in image.topics.by_id.values():
        for partition in topic.partitions.values():
            partitions += 1
            offline += partition.leader == NO_LEADER
            imbalanced += not partition.has_preferred_leader
    return ControllerCounts(
        active_brokers=sum(not broker.is_fenced for broker in brokers),
        fenced_brokers=sum(broker.is_fenced for broker in brokers),
        in_controlled_shutdown=sum(broker.in_controlled_shutdown for broker in brokers),
        topics=len(image.topics.by_id),
        partitions=partitions,
        offline_partitions=offline,
        preferred_replica_imbalance=imbalanced,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionCounts:
    """The number of leader changes, and of unclean ones among them."""

    elections: int
    unclean: int
    """Elections of replicas that were neither in sync nor eligible: records may be lost."""
    from_eligible: int
    """Elections of replicas that were not in sync but eligible: they have all acknowledged records (KIP-966)."""


def elections_in(changed: Iterable[tuple[TopicImage, int, PartitionRegistration]]) -> ElectionCounts:
    """Count the elections in a delta."""
    elections = unclean = from_eligible = 0
    for topic, index, partition in changed:
        before = topic.partitions.get(index)
        if before is None or partition.leader in (NO_LEADER, before.leader):
            continue
        elections += 1
        if partition.leader not in before.isr:
            is_eligible = partition.leader in before.eligible_leader_replicas
            from_eligible += is_eligible
            unclean += not is_eligible
    return ElectionCounts(elections=elections, unclean=unclean, from_eligible=from_eligible)
