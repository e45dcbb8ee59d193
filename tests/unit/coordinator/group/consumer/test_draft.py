from __future__ import annotations

from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import ConsumerGroup, ResolvedRegex
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from millbeck.kernel.timeline import SnapshotRegistry

T = b"t" * 16


def group() -> ConsumerGroup:
    found = ConsumerGroup(SnapshotRegistry(), "g")
    found.replay_member("a", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["x", "y"]))
    found.replay_member("b", ConsumerGroupMemberMetadataValue(subscribed_topic_names=["y"], subscribed_topic_regex="r"))
    found.replay_regex("r", ConsumerGroupRegularExpressionValue(["z"], 1, 1))
    found.replay_target("a", {T: (0,)})
    return found


def test_what_is_decided_is_seen_at_once_and_only_in_the_draft() -> None:
    stored = group()
    draft = Draft(stored)
    assert draft.subscribed_names() == ["x", "y", "z"]
    draft.remove_member("a")
    draft.store_member(ConsumerMember(member_id="c", topic_names=("w",)))
    assert list(draft.members()) == ["b", "c"]
    assert draft.subscribed_names() == ["y", "w", "z"]
    assert draft.target_of("a") == {}
    draft.remove_member("b")
    assert draft.regexes() == []
    assert not draft.is_empty
    draft.remove_member("c")
    assert draft.is_empty
    assert list(stored.members) == ["a", "b"]


def test_only_targets_that_differ_are_written() -> None:
    draft = Draft(group())
    draft.store_targets(7, {"a": {T: (0,)}, "b": {}})
    assert [type(record.key).__name__ for record in draft.records] == [
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
    ]
    assert draft.assignment_epoch == 7


def test_expressions_and_epochs() -> None:
    draft = Draft(group())
    draft.store_regex("r", ResolvedRegex(("q",), 2, 2))
    assert draft.topics_of(draft.members()["b"]) == ("q", "y")
    draft.remove_regex("old")
    draft.raise_epoch(9)
    assert (draft.epoch, draft.metadata_hash, len(draft.records)) == (1, 9, 3)
