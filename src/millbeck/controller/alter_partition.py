"""AlterPartition: a leader proposes a new ISR.

It is a compare-and-set. The leader sends the leader epoch and the partition epoch that it knows. Unless both are
current, the change is refused, because it was decided on outdated state; newer epochs mean that this node is no longer
the active controller. A broker that joins the ISR must be active, and from version 3 on its broker epoch must be the
one that the leader has seen. A replica in a failed directory cannot be in sync.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.controller.broker_changes import check_broker_epoch
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionContext
from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import ClusterImage, MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.image.topics import RECOVERED, RECOVERING
from millbeck.metadata.records import NO_LEADER_CHANGE, MetadataRecord
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
    BrokerState,
)

ANY_EPOCH = -1


def alter_partition(
    image: MetadataImage, rules: ConfigRules, request: AlterPartitionRequest
) -> Steps[Result[AlterPartitionResponse]]:
    """Change or refuse each partition separately. Raises `StaleBrokerEpoch` if the broker epoch is not the registered
    one."""
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    elections = ElectionContext(image, rules)
    records: list[MetadataRecord] = []
    results: list[AlterPartitionTopicResult] = []
    changed: dict[tuple[bytes, int], None] = {}
    for asked in request.topics:
        topic = image.topics.with_id(asked.topic_id)
        answers: list[AlterPartitionPartitionResult] = []
        for partition in asked.partitions:
            index = partition.partition_index
            try:
                if topic is None:
                    raise UnknownTopicId
                if (asked.topic_id, index) in changed:
                    raise InvalidUpdateVersion("The partition is listed twice in the request.")
                answer, new_records = _alter_one(image, elections, topic, request.broker_id, partition)
                records += new_records
                changed[(asked.topic_id, index)] = None
            except ApiError as error:
                answer = AlterPartitionPartitionResult(partition_index=index, error_code=error.code)
            except Exception as error:
                # The broker asks for all of its partitions at once.
                rules.isolation.failed(("AlterPartition", asked.topic_id.hex(), index), error)
                answer = AlterPartitionPartitionResult(partition_index=index, error_code=UnknownServerError.code)
            answers.append(answer)
            yield
        results.append(AlterPartitionTopicResult(topic_id=asked.topic_id, partitions=answers))
    return Result(response=AlterPartitionResponse(topics=results), records=records, is_atomic=False)


def _alter_one(
    image: MetadataImage, elections: ElectionContext, topic: TopicImage, broker_id: int, asked: AlterPartitionPartition
) -> tuple[AlterPartitionPartitionResult, list[MetadataRecord]]:
    index = asked.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition
    members = asked.new_isr_with_epochs or [BrokerState(broker_id=member) for member in asked.new_isr]
    _check_epochs(partition, broker_id, asked)
    _check_isr(partition, [member.broker_id for member in members], asked.leader_recovery_state)
    _check_eligible(image.cluster, partition, members)
    change = elections.change(topic, partition)
    change.isr = tuple(member.broker_id for member in members)
    change.recovery_state = asked.leader_recovery_state
    record = change.build(topic.topic_id, index)
    if record is not None:
        partition = partition.changed(record)
        if record.leader not in (NO_LEADER_CHANGE, broker_id):
            # The change completed a reassignment that removed the leader: it is made, and the sender gets this error.
            return AlterPartitionPartitionResult(partition_index=index, error_code=NewLeaderElected.code), [record]
    answer = AlterPartitionPartitionResult(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    return answer, [] if record is None else [record]


def _check_epochs(partition: PartitionRegistration, broker_id: int, asked: AlterPartitionPartition) -> None:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        raise NotController("The request has a newer epoch than this controller knows.")
    if asked.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpoch
    if broker_id != partition.leader:
        raise InvalidRequest(f"The leader is {partition.leader}, not {broker_id}.")
    if asked.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersion


def _check_isr(partition: PartitionRegistration, isr: Sequence[int], recovery_state: int) -> None:
    if not isr or len(dict.fromkeys(isr)) != len(isr) or any(member not in partition.replicas for member in isr):
        raise InvalidRequest(
            f"The ISR {list(isr)} has brokers that are not replicas; the replicas are {list(partition.replicas)}."
        )
    if partition.leader not in isr:
        raise InvalidRequest("The ISR must contain the leader.")
    if recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequest(f"Unknown leader recovery state {recovery_state}.")
    if recovery_state == RECOVERING and len(isr) > 1:
        raise InvalidRequest(
            "While the leader recovers from an unclean election, the ISR must contain only the leader."
        )
    if recovery_state == RECOVERING and partition.leader_recovery_state == RECOVERED:
        raise InvalidRequest("The leader recovery state cannot change from RECOVERED to RECOVERING.")


def _check_eligible(cluster: ClusterImage, partition: PartitionRegistration, members: Sequence[BrokerState]) -> None:
    for member in members:
        broker = cluster.brokers.get(member.broker_id)
        if broker is None or not broker.is_active or member.broker_epoch not in (ANY_EPOCH, broker.epoch):
            raise IneligibleReplica(f"Broker {member.broker_id} is not registered, not active, or has restarted since.")
        if not broker.has_online(partition.directory(member.broker_id)):
            raise IneligibleReplica(f"The directory of the replica on broker {member.broker_id} is offline.")
