from __future__ import annotations

from millbeck.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupState
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    HeldTopic,
)
from millbeck.kernel.timeline import SnapshotRegistry

T = b"t" * 16


def current(epoch: int, *partitions: int, revoking: tuple[int, ...] = ()) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        epoch, epoch - 1, 0, [HeldTopic(T, list(partitions))], [HeldTopic(T, list(revoking))]
    )


def test_states_follow_from_the_epochs() -> None:
    registry = SnapshotRegistry()
    group = ConsumerGroup(registry, "g")
    assert group.state is ConsumerGroupState.EMPTY
    group.replay_member("m", ConsumerGroupMemberMetadataValue())
    group.replay_group(ConsumerGroupMetadataValue(1, 5))
    assert group.state is ConsumerGroupState.ASSIGNING
    group.replay_target_epoch(1)
    registry.snapshot(10)
    assert group.state is ConsumerGroupState.RECONCILING
    group.replay_current("m", current(1, 0))
    assert group.state is ConsumerGroupState.STABLE
    assert group.state_at(10) is ConsumerGroupState.RECONCILING
    registry.revert_to(10)
    assert group.state is ConsumerGroupState.RECONCILING


def test_a_partition_is_held_until_its_holder_gives_it_up() -> None:
    group = ConsumerGroup(SnapshotRegistry(), "g")
    group.replay_member("m", ConsumerGroupMemberMetadataValue())
    group.replay_current("m", current(1, 0, 1))
    assert [group.owner_epoch(T, each) for each in range(3)] == [1, 1, -1]
    group.replay_current("m", current(1, 0, revoking=(1,)))
    assert group.owner_epoch(T, 1) == 1
    group.replay_current("m", current(2, 0))
    assert [group.owner_epoch(T, each) for each in range(2)] == [2, -1]
    group.replay_current("m", None)
    group.replay_member("m", None)
    assert group.owner_epoch(T, 0) == -1


def test_what_one_member_held_before_another_is_the_other_s() -> None:
    group = ConsumerGroup(SnapshotRegistry(), "g")
    group.replay_current("old", current(1, 0))
    group.replay_current("new", current(2, 0))
    group.replay_current("old", None)
    assert group.owner_epoch(T, 0) == 2


def test_subscriptions_are_counted() -> None:
    group = ConsumerGroup(SnapshotRegistry(), "g")
    group.replay_member("m", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["a", "b"], instance_id="i"))
    group.replay_member("n", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["b"], subscribed_topic_regex="c"))
    group.replay_regex("c", ConsumerGroupRegularExpressionValue(["z", "b"], 1, 2))
    assert dict(group.name_counts) == {"a": 1, "b": 2}
    assert group.topics_of(group.members["n"]) == ("b", "z")
    assert [group.is_subscribed_to(name) for name in "abzx"] == [True, True, True, False]
    assert group.static_member("i") == group.members["m"]
    group.replay_member("m", None)
    group.replay_member("n", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["b"]))
    assert (dict(group.name_counts), dict(group.regex_counts), dict(group.static_members)) == ({"b": 1}, {}, {})
    group.replay_regex("c", None)
    assert not group.is_subscribed_to("z")


def test_records_that_compaction_has_put_in_another_order_make_the_same_group() -> None:
    group = ConsumerGroup(SnapshotRegistry(), "g")
    group.replay_current("m", current(3, 0))
    group.replay_member("m", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["t"]))
    member = group.member("m")
    assert (member.epoch, member.topic_names, member.assigned) == (3, ("t",), {T: (0,)})
    group.replay_member("nobody", None)
    group.replay_current("nobody", None)
    assert list(group.members) == ["m"]
