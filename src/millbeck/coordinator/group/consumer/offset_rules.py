"""Validates offset commits and fetches of a consumer group by member id and epoch.

A member may commit with an earlier epoch for partitions that it owned at that epoch and still owns or has not revoked
yet, since it may not know yet of a rebalance that left them unchanged (KIP-1251). A request is accepted or rejected as
a whole.
"""

from __future__ import annotations

from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.kernel import errors
from millbeck.wire.messages.group_offsets import OffsetCommitRequest

MEMBER_EPOCH_VERSION = 9


def validate_commit(group: ConsumerGroup, request: OffsetCommitRequest, version: int) -> ConsumerMember | None:
    """Return the committing member, or None for an administrator of an empty group; raises the error for the client."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return None
    member = group.member(request.member_id)
    if version < MEMBER_EPOCH_VERSION and not member.uses_classic_protocol:
        raise errors.UnsupportedVersion(
            "OffsetCommit version 9 or above must be used by members using the modern group protocol"
        )
    if epoch < member.epoch:
        check_assignments(member, request)
    else:
        check_epoch(member, epoch)
    return member


def check_assignments(member: ConsumerMember, request: OffsetCommitRequest) -> None:
    epoch = request.generation_id_or_member_epoch
    for topic in request.topics:
        for partition in topic.partitions:
            place = f"{topic.name}-{partition.partition_index}"
            given = member.assignment_epoch(topic.topic_id, partition.partition_index)
            if given is None:
                raise _stale(member, f"Partition {place} is not assigned or pending revocation for member.")
            if epoch < given:
                raise _stale(
                    member,
                    f"The received member epoch {epoch} is older than the assignment epoch {given} of {place}.",
                )


def validate_fetch(group: ConsumerGroup, member_id: str | None, epoch: int, at: int) -> None:
    """Validate an OffsetFetch. Without a member id and epoch it comes from an administrator, which is allowed."""
    if member_id is None and epoch < 0:
        return
    member = group.members.get_at(member_id or "", at)
    if member is None:
        raise errors.UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
    check_epoch(member, epoch)


def check_epoch(member: ConsumerMember, epoch: int) -> None:
    if epoch == member.epoch:
        return
    raise _stale(member, f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}.")


def _stale(member: ConsumerMember, message: str) -> errors.ApiError:
    return errors.IllegalGeneration(message) if member.uses_classic_protocol else errors.StaleMemberEpoch(message)
