"""AlterPartitionReassignments: begin, replace and cancel reassignments of partitions.

A reassignment first only adds replicas. It is completed by the AlterPartition that adds the last new replica to the ISR
(`partition_change`). If no data must be copied, it is complete at once. A new reassignment replaces an ongoing one.
Null replicas cancel it.
"""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionContext
from millbeck.controller.placement import check_assignment
from millbeck.controller.reassignment import Reassignment
from millbeck.controller.result import RECORD_COUNT_MAX, Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    NoReassignmentInProgress,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.image.topics import RECOVERING
from millbeck.metadata.records import MetadataRecord, PartitionChangeRecord
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    image: MetadataImage, rules: ConfigRules, request: AlterPartitionReassignmentsRequest
) -> Steps[Result[AlterPartitionReassignmentsResponse]]:
    """Start or refuse each reassignment separately; those that are valid start in one batch."""
    elections = ElectionContext(image, rules)
    # If a partition is listed twice, the last entry applies.
    records: dict[tuple[str, int], MetadataRecord] = {}
    responses: list[ReassignableTopicResponse] = []
    for asked in request.topics:
        answers: list[ReassignablePartitionResponse] = []
        for partition in asked.partitions:
            index = partition.partition_index
            answer = ReassignablePartitionResponse(partition_index=index, error_message=None)
            try:
                record = _alter_one(
                    image, elections, asked.name, partition, may_change_count=request.allow_replication_factor_change
                )
                if record is not None:
                    records[(asked.name, index)] = record
            except ApiError as error:
                answer.error_code, answer.error_message = error.code, error.message
            answers.append(answer)
            yield
        responses.append(ReassignableTopicResponse(name=asked.name, partitions=answers))
    if len(records) > RECORD_COUNT_MAX:
        raise PolicyViolation("Unable to perform excessively large batch operation.")
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return Result(response=response, records=list(records.values()))


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The ongoing reassignments of all or of the given partitions; others are omitted."""
    topics: list[OngoingTopicReassignment] = []
    if request.topics is None:
        for name in sorted(image.topics.by_name):
            topic = image.topics.by_name[name]
            _list_topic(topics, topic, sorted(topic.partitions))
    else:
        for asked in request.topics:
            named = image.topics.named(asked.name)
            if named is not None:
                _list_topic(topics, named, asked.partition_indexes)
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _alter_one(
    image: MetadataImage,
    elections: ElectionContext,
    name: str,
    asked: ReassignablePartition,
    *,
    may_change_count: bool,
) -> PartitionChangeRecord | None:
    topic = image.topics.named(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        raise UnknownTopicOrPartition(f"Unable to find partition {name}:{asked.partition_index}.")
    if asked.replicas is None:
        return _cancelled(elections, topic, asked.partition_index, partition)
    check_assignment(image.cluster, asked.replicas, None)
    count = len(Reassignment.of(partition).target)
    if not may_change_count and len(asked.replicas) != count:
        raise InvalidReplicationFactor(f"The replication factor is changed from {count} to {len(asked.replicas)}")
    target = Reassignment.between(partition.replicas, asked.replicas)
    change = elections.change(topic, partition)
    change.replicas, change.removing, change.adding = target.replicas, target.removing, target.adding
    return change.build(topic.topic_id, asked.partition_index)


def _cancelled(
    elections: ElectionContext, topic: TopicImage, index: int, partition: PartitionRegistration
) -> PartitionChangeRecord | None:
    if not partition.is_being_reassigned:
        raise NoReassignmentInProgress
    origin = Reassignment.of(partition).origin
    isr = tuple(member for member in partition.isr if member in origin)
    if not origin:
        raise InvalidReplicaAssignment("Invalid replica assignment: addingReplicas contains all replicas.")
    change = elections.change(topic, partition)
    eligible = [replica for replica in partition.eligible_leader_replicas if replica in origin]
    if partition.isr and not isr and not eligible:
        # Only replicas that the reassignment added are in sync: cancelling it would lose records that the others lack.
        if not elections.allows_unclean(topic.name):
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
        isr = tuple(replica for replica in origin if elections.image.cluster.is_active(replica))[:1]
        if not isr:
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {topic.name}:{index} because no former ISR member is alive."
            )
        change.recovery_state = RECOVERING
    change.isr, change.replicas, change.removing, change.adding = isr, origin, (), ()
    return change.build(topic.topic_id, index)


def _list_topic(topics: list[OngoingTopicReassignment], topic: TopicImage, indexes: Iterable[int]) -> None:
    ongoing = [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
        )
        for index in indexes
        if (partition := topic.partitions.get(index)) is not None and partition.is_being_reassigned
    ]
    if ongoing:
        topics.append(OngoingTopicReassignment(name=topic.name, partitions=ongoing))
