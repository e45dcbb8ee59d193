"""Validates offset commits and fetches of a streams group by member id and epoch.

As in consumer groups, a member may commit with an earlier epoch for tasks that it had at that epoch and still has or
has not revoked yet (KIP-1251). The task of a partition is that of the subtopology that reads its topic.
"""

from __future__ import annotations

from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.member import StreamsMember
from millbeck.kernel import errors
from millbeck.wire.messages.group_offsets import OffsetCommitRequest

MEMBER_EPOCH_VERSION = 9


def validate_commit(group: StreamsGroup, request: OffsetCommitRequest, version: int) -> None:
    """Raise the error for the client. An administrator may commit, without member and epoch, in an empty group."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return
    member = group.member(request.member_id)
    if version < MEMBER_EPOCH_VERSION:
        raise errors.UnsupportedVersion(
            "OffsetCommit version 9 or above must be used by members using the streams group protocol"
        )
    if epoch > member.epoch:
        raise errors.StaleMemberEpoch(
            f"Received member epoch {epoch} is newer than current member epoch {member.epoch}."
        )
    if epoch < member.epoch:
        check_tasks(group, member, request)


def check_tasks(group: StreamsGroup, member: StreamsMember, request: OffsetCommitRequest) -> None:
    readers = {} if group.topology is None else group.topology.readers
    epoch = request.generation_id_or_member_epoch
    for topic in request.topics:
        subtopology_id = readers.get(topic.name)
        if subtopology_id is None:
            raise errors.StaleMemberEpoch(f"Topic {topic.name} is not in the topology.")
        for partition in topic.partitions:
            task = (subtopology_id, partition.partition_index)
            given = member.active_epoch(task)
            text = f"{subtopology_id}-{partition.partition_index}"
            if given is None:
                raise errors.StaleMemberEpoch(f"Task {text} is not assigned or pending revocation for member.")
            if epoch < given:
                raise errors.StaleMemberEpoch(
                    f"Received member epoch {epoch} is older than assignment epoch {given} for task {text}."
                )


def validate_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """Validate an OffsetFetch. Without a member id and epoch it comes from an administrator, which is allowed."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if epoch != member.epoch:
        raise errors.StaleMemberEpoch(
            f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
        )
