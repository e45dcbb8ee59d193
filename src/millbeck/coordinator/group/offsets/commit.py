"""OffsetCommit: validates commits and builds their records."""

from __future__ import annotations

from millbeck.coordinator.config import OffsetOptions
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.records import NO_TIMESTAMP, GroupRecord, offset_commit
from millbeck.coordinator.runtime.result import Result
from millbeck.kernel import errors
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUP_NOT_FOUND_VERSION = 9
DEFAULT_RETENTION = -1


def validate_commit(group: ClassicGroup | None, request: OffsetCommitRequest, version: int) -> None:
    """Validate a commit; raises the error for the client.

    A group that does not exist is created by a commit without a generation, which comes from an administrator or from a
    consumer that assigns partitions manually.
    """
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id < 0:
            return
        raise errors.GroupIdNotFound() if version >= GROUP_NOT_FOUND_VERSION else errors.IllegalGeneration()
    if group.state is GroupState.DEAD:
        raise errors.CoordinatorNotAvailable()
    if generation_id < 0 and group.is_empty:
        return
    if generation_id < 0 and request.member_id == "" and request.group_instance_id is None:
        raise errors.UnknownMemberId()
    group.validate_member(request.member_id, request.group_instance_id)
    if generation_id != group.generation_id:
        raise errors.IllegalGeneration()
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The member has joined this generation but has not received its assignment yet.
        raise errors.RebalanceInProgress()


def commit(
    request: OffsetCommitRequest, options: OffsetOptions, now_ms: int
) -> Result[GroupRecord, OffsetCommitResponse]:
    """Build the records of a valid commit. Topics have both name and id here, in every version."""
    records: list[GroupRecord] = []
    topics = [
        OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [_commit_one(request, topic, partition, options, now_ms, records) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return Result(records=records, response=OffsetCommitResponse(topics=topics))


def _commit_one(
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    options: OffsetOptions,
    now_ms: int,
    records: list[GroupRecord],
) -> OffsetCommitResponsePartition:
    metadata = partition.committed_metadata or ""
    if utf16_length(metadata) > options.metadata_bytes_max:
        return OffsetCommitResponsePartition(partition.partition_index, errors.OffsetMetadataTooLarge.code)
    has_own_retention = request.retention_time_ms != DEFAULT_RETENTION
    records.append(
        offset_commit(
            group_id=request.group_id,
            topic=topic.name,
            partition=partition.partition_index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            expire_timestamp=now_ms + request.retention_time_ms if has_own_retention else NO_TIMESTAMP,
            topic_id=topic.topic_id,
        )
    )
    return OffsetCommitResponsePartition(partition.partition_index, errors.NONE)


def utf16_length(text: str) -> int:
    """Length of the text in UTF-16 code units, as in Java: the metadata limit is compared with it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2
