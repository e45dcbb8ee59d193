"""AssignReplicasToDirs: a broker reports the directories of its replicas (KIP-858).

A replica in an offline directory is treated like one on a fenced broker: it leaves the ISR, and another replica is
elected leader. A replica that is reported in another directory because its own failed is no longer an eligible leader,
even after a clean shutdown: its data was in the old directory.
"""

from __future__ import annotations

from millbeck.controller.broker_changes import check_broker_epoch
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionContext
from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from millbeck.kernel.ids import Uuid
from millbeck.metadata.features import DIRECTORY_ASSIGNMENT_FROM
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.directories import LOST_DIRECTORY
from millbeck.metadata.records import MetadataRecord, PartitionChangeRecord
from millbeck.wire.messages.replicas import (
    AssignReplicasToDirsDirectoryResult,
    AssignReplicasToDirsPartitionResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopicResult,
)


def assign_replicas_to_directories(
    image: MetadataImage, rules: ConfigRules, request: AssignReplicasToDirsRequest
) -> Steps[Result[AssignReplicasToDirsResponse]]:
    """Assign or refuse each replica separately."""
    if image.features.metadata_version < DIRECTORY_ASSIGNMENT_FROM:
        raise UnsupportedVersion("Directory assignment is not supported yet.")
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    elections = ElectionContext(image, rules)
    # If a replica is listed twice, the last entry applies.
    records: dict[tuple[Uuid, int], MetadataRecord] = {}
    directories: list[AssignReplicasToDirsDirectoryResult] = []
    for asked in request.directories:
        topics: list[AssignReplicasToDirsTopicResult] = []
        for topic in asked.topics:
            outcomes: list[AssignReplicasToDirsPartitionResult] = []
            for partition in topic.partitions:
                index = partition.partition_index
                outcome = AssignReplicasToDirsPartitionResult(partition_index=index)
                try:
                    record = _assigned(elections, topic.topic_id, index, broker.broker_id, asked.id)
                    if record is not None:
                        records[(topic.topic_id, index)] = record
                except ApiError as error:
                    outcome.error_code = error.code
                outcomes.append(outcome)
                yield
            topics.append(AssignReplicasToDirsTopicResult(topic_id=topic.topic_id, partitions=outcomes))
        directories.append(AssignReplicasToDirsDirectoryResult(id=asked.id, topics=topics))
    response = AssignReplicasToDirsResponse(directories=directories)
    return Result(response=response, records=list(records.values()), is_atomic=False)


def _assigned(
    elections: ElectionContext, topic_id: Uuid, index: int, broker_id: int, directory: Uuid
) -> PartitionChangeRecord | None:
    topic = elections.image.topics.with_id(topic_id)
    if topic is None:
        raise UnknownTopicId
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition
    if broker_id not in partition.replicas:
        raise NotLeaderOrFollower
    change = elections.change(topic, partition)
    change.directories = {broker_id: directory}
    broker = elections.image.cluster.brokers[broker_id]
    if not broker.has_online(directory):
        change.isr = tuple(member for member in partition.isr if member != broker_id)
    if directory == LOST_DIRECTORY or not broker.has_online(partition.directory(broker_id)):
        # A broker reports a single log as lost when it is damaged: it may lack committed records. So may a replica
        # whose directory failed: it was created again, empty, in another directory.
        change.unclean_shutdown = broker_id
    return change.build(topic_id, index)
