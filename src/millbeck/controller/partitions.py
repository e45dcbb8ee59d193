"""CreatePartitions."""

from __future__ import annotations

from collections import Counter

from millbeck.controller.placement import check_assignment, new_partition, place
from millbeck.controller.reassignment import Reassignment
from millbeck.controller.result import RECORD_COUNT_MAX, RECORDS_AT_ONCE, Result, Steps
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import (
    ApiError,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import ClusterImage, MetadataImage
from millbeck.metadata.records import MetadataRecord
from millbeck.wire.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, *, randomness: Randomness
) -> Steps[Result[CreatePartitionsResponse]]:
    """Add partitions to topics; the count cannot decrease, because keys map to partitions by it."""
    counts = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    refusal = _refuse_all(image, request)
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if refusal is not None:
                raise refusal
            if counts[topic.name] > 1:
                raise InvalidRequest("Duplicate topic name.")
            records += yield from _added(image, topic, randomness)
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except ApiError as error:
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            )
    return Result(response=CreatePartitionsResponse(results=results), records=[] if request.validate_only else records)


def _refuse_all(image: MetadataImage, request: CreatePartitionsRequest) -> ApiError | None:
    total = 0
    for topic in request.topics:
        existing = image.topics.named(topic.name)
        if existing is not None:
            total += max(topic.count - len(existing.partitions), 0)
    return PolicyViolation("Excessively large number of partitions per request.") if total > RECORD_COUNT_MAX else None


def _added(image: MetadataImage, topic: CreatePartitionsTopic, randomness: Randomness) -> Steps[list[MetadataRecord]]:
    existing = image.topics.named(topic.name)
    if existing is None:
        raise UnknownTopicOrPartition
    count = len(existing.partitions)
    if topic.count == count:
        raise InvalidPartitions(f"Topic already has {count} partition(s).")
    if topic.count < count:
        raise InvalidPartitions(
            f"The topic {topic.name} currently has {count} partition(s); {topic.count} would not be an increase."
        )
    replica_count = len(Reassignment.of(existing.partitions[0]).target)
    if topic.assignments is not None:
        placed = _checked(image.cluster, topic.assignments, topic.count - count, replica_count)
    else:
        assignments = yield from place(
            image.cluster,
            partition_count=topic.count - count,
            replication_factor=replica_count,
            randomness=randomness,
        )
        placed = [assignment.replicas for assignment in assignments]
    records: list[MetadataRecord] = []
    for partition_id, replicas in enumerate(placed, start=count):
        if partition_id % RECORDS_AT_ONCE == 0:
            yield
        partition = new_partition(image.cluster, replicas)
        if partition is None:
            raise InvalidReplicaAssignment(
                f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or "
                "in controlled shutdown."
            )
        records.append(partition.to_record(existing.topic_id, partition_id))
    return records


def _checked(
    cluster: ClusterImage, assignments: list[CreatePartitionsAssignment], added: int, replica_count: int
) -> list[tuple[int, ...]]:
    if len(assignments) != added:
        raise InvalidReplicaAssignment(
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
    for assignment in assignments:
        check_assignment(cluster, assignment.broker_ids, replica_count)
    return [tuple(assignment.broker_ids) for assignment in assignments]
