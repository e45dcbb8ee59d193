"""TxnOffsetCommit: who may commit a group's offsets as part of a transaction.

A producer that says nothing of its membership is let through, as the transaction's epoch fences it; one that does is
held to it, so that a member that was replaced cannot commit what its successor has read by now.
"""

from __future__ import annotations

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.consumer import offset_rules
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.kernel.errors import CoordinatorNotAvailable, IllegalGeneration, StaleMemberEpoch
from millbeck.wire.messages.offset_commit import OffsetCommitRequest

MEMBER_EPOCH_VERSION = 9
"""Of OffsetCommit: the first that has member epochs."""


def validate_commit(group: ClassicGroup | ConsumerGroup | None, request: OffsetCommitRequest) -> None:
    """Raises what the producer is told when it may not commit; ``group`` is None when there is none."""
    generation_id = request.generation_id_or_member_epoch
    is_member = generation_id >= 0 or request.member_id != "" or request.group_instance_id is not None
    if group is None:
        if generation_id >= 0:
            raise IllegalGeneration
        return
    if not is_member:
        return
    if isinstance(group, ConsumerGroup):
        try:
            offset_rules.validate_commit(group, request, MEMBER_EPOCH_VERSION)
        except StaleMemberEpoch as error:
            # What producers know.
            raise IllegalGeneration from error
        return
    if group.state is GroupState.DEAD:
        raise CoordinatorNotAvailable
    group.validate_member(request.member_id, request.group_instance_id)
    if generation_id != group.generation_id:
        raise IllegalGeneration
