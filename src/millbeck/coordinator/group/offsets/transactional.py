"""TxnOffsetCommit: validates commits of a group's offsets in a transaction.

A request without member id and generation is accepted, since the producer is fenced by its epoch; one with them is
validated, so that a replaced member cannot commit offsets of partitions its successor has already read.
"""

from __future__ import annotations

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.consumer import offset_rules
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.streams import offset_rules as streams_offset_rules
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.kernel.errors import CoordinatorNotAvailable, IllegalGeneration, StaleMemberEpoch
from millbeck.wire.messages.group_offsets import OffsetCommitRequest

MEMBER_EPOCH_VERSION = 9
"""First OffsetCommit version with member epochs."""


def validate_commit(group: ClassicGroup | ConsumerGroup | StreamsGroup | None, request: OffsetCommitRequest) -> None:
    """Validate the commit; raises the error for the producer. ``group`` is None if it does not exist."""
    generation_id = request.generation_id_or_member_epoch
    is_member = generation_id >= 0 or request.member_id != "" or request.group_instance_id is not None
    if group is None:
        if generation_id >= 0:
            raise IllegalGeneration
        return
    if not is_member:
        return
    if not isinstance(group, ClassicGroup):
        try:
            if isinstance(group, StreamsGroup):
                streams_offset_rules.validate_commit(group, request, MEMBER_EPOCH_VERSION)
            else:
                offset_rules.validate_commit(group, request, MEMBER_EPOCH_VERSION)
        except StaleMemberEpoch as error:
            # Producers do not know STALE_MEMBER_EPOCH.
            raise IllegalGeneration from error
        return
    if group.state is GroupState.DEAD:
        raise CoordinatorNotAvailable
    group.validate_member(request.member_id, request.group_instance_id)
    if generation_id != group.generation_id:
        raise IllegalGeneration
