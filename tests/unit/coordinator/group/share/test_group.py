from __future__ import annotations

from millbeck.coordinator.group.share.group import ShareGroup, StateTopics, assignment_of, shared_topics
from millbeck.coordinator.group.share.records import (
    DeletingTopic,
    SharedTopic,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    StateTopic,
)

A = b"a" * 16


def test_each_record_makes_a_group_of_a_group() -> None:
    empty = ShareGroup(group_id="g")
    assert (empty.state, empty.is_empty) == ("Empty", True)
    group = empty.replayed(ShareGroupMetadataKey("g"), ShareGroupMetadataValue(3, 44))
    group = group.replayed(
        ShareGroupMemberMetadataKey("g", "m"), ShareGroupMemberMetadataValue("rack", "client", "/host", ["t", "u"])
    )
    group = group.replayed(
        ShareGroupTargetAssignmentMemberKey("g", "m"), ShareGroupTargetAssignmentMemberValue([SharedTopic(A, [1, 0])])
    )
    group = group.replayed(ShareGroupTargetAssignmentMetadataKey("g"), ShareGroupTargetAssignmentMetadataValue(3, 99))
    group = group.replayed(
        ShareGroupCurrentMemberAssignmentKey("g", "m"),
        ShareGroupCurrentMemberAssignmentValue(3, 2, 0, [SharedTopic(A, [0])]),
    )
    member = group.members["m"]
    assert (group.epoch, group.metadata_hash, group.assignment_epoch, group.assigned_at_ms) == (3, 44, 3, 99)
    assert (member.epoch, member.previous_epoch, member.rack_id, member.client_id) == (3, 2, "rack", "client")
    assert (member.target, member.assigned) == ({A: (0, 1)}, {A: (0,)})
    assert (group.state, group.subscribed_names()) == ("Stable", ["t", "u"])
    assert empty.members == {}, "groups do not change"
    gone = group.replayed(ShareGroupCurrentMemberAssignmentKey("g", "m"), None)
    gone = gone.replayed(ShareGroupTargetAssignmentMemberKey("g", "m"), None)
    assert (gone.members["m"].epoch, gone.members["m"].target) == (0, {})
    gone = gone.replayed(ShareGroupMemberMetadataKey("g", "m"), None)
    assert gone.is_empty
    assert gone.replayed(ShareGroupTargetAssignmentMemberKey("g", "m"), None) == gone
    assert gone.replayed(ShareGroupTargetAssignmentMetadataKey("g"), None).assignment_epoch == 0


def test_state_topics_come_back_from_their_record() -> None:
    value = ShareGroupStatePartitionMetadataValue(
        [StateTopic(A, "t", [2])], [StateTopic(A, "t", [0, 1])], [DeletingTopic(b"b" * 16, "u")]
    )
    topics = StateTopics.of(value)
    assert topics.value() == value
    group = ShareGroup(group_id="g").replayed(ShareGroupStatePartitionMetadataKey("g"), value)
    assert group.topics == topics
    assert group.replayed(ShareGroupStatePartitionMetadataKey("g"), None).topics == StateTopics()


def test_assignments_come_back_from_their_topics() -> None:
    assert assignment_of(shared_topics({A: (0, 2)})) == {A: (0, 2)}
