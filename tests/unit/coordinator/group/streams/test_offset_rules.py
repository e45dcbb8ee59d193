"""Offset commits and fetches of a streams group, by member id and epoch."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.streams.offset_rules import check_tasks
from millbeck.kernel.errors import StaleMemberEpoch
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.unit.coordinator.group.streams.streams_world import Player, beat_in_turn, group_of, world_of
from tests.unit.coordinator.world import Outcome, World


def commit(
    world: World, member_id: str, epoch: int, *places: tuple[str, int], version: int = 9, is_transactional: bool = False
) -> str:
    topics = [
        OffsetCommitRequestTopic(name, bytes(16), [OffsetCommitRequestPartition(index, 5)]) for name, index in places
    ]
    request = OffsetCommitRequest("g", epoch, member_id, topics=topics)

    def operation(shard: Any, _: Outcome) -> Any:
        if is_transactional:
            return shard.commit_in_transaction(request, world.now_ms)
        return shard.commit_offsets(request, version, world.now_ms)

    outcome = world.write(operation)
    return "NONE" if outcome.error is None else outcome.code_name


def fetch(world: World, member_id: str | None, epoch: int) -> str:
    topics = [OffsetFetchRequestTopics("t", bytes(16), [0])]
    request = OffsetFetchRequestGroup("g", member_id, epoch, topics)
    outcome = Outcome()
    world.host.read(lambda shard, at: shard.fetch_offsets(request, at), outcome.reply)
    return "NONE" if outcome.error is None else outcome.code_name


@pytest.fixture
def rebalanced() -> tuple[World, Player, Player]:
    """The first member has had tasks 0 and 1 since epoch 2, the second has 2 and 3 since epoch 3."""
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    beat_in_turn(second, first, second)
    assert (first.active, first.epoch, second.active, second.epoch) == ({"0": (0, 1)}, 3, {"0": (2, 3)}, 3)
    return world, first, second


def test_a_member_commits_with_its_epoch(rebalanced: tuple[World, Player, Player]) -> None:
    world, _, _ = rebalanced
    assert commit(world, "m1", 3, ("t", 0)) == "NONE"
    assert commit(world, "m1", 4, ("t", 0)) == "STALE_MEMBER_EPOCH"
    assert commit(world, "m3", 3, ("t", 0)) == "UNKNOWN_MEMBER_ID"
    assert commit(world, "m1", 3, ("t", 0), version=8) == "UNSUPPORTED_VERSION"


def test_an_earlier_epoch_is_good_for_tasks_that_the_member_had_then(rebalanced: tuple[World, Player, Player]) -> None:
    world, _, _ = rebalanced
    assert commit(world, "m1", 2, ("t", 0), ("t", 1)) == "NONE"
    assert commit(world, "m1", 1, ("t", 0)) == "STALE_MEMBER_EPOCH"
    # These it has given up, and that one it got later.
    assert commit(world, "m1", 2, ("t", 0), ("t", 2)) == "STALE_MEMBER_EPOCH"
    assert commit(world, "m2", 2, ("t", 2)) == "STALE_MEMBER_EPOCH"
    assert commit(world, "m1", 2, ("other", 0)) == "STALE_MEMBER_EPOCH"
    group = group_of(world)
    request = OffsetCommitRequest("g", 2, "m1", topics=[OffsetCommitRequestTopic("other")])
    with pytest.raises(StaleMemberEpoch, match="Topic other is not in the topology"):
        check_tasks(group, group.members["m1"], request)


def test_a_task_that_is_being_given_up_may_still_be_committed() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    second.beat()
    before = first.tasks
    first.beat()
    assert commit(world, "m1", first.epoch, ("t", 3)) == "NONE"
    first.beat(owned=before)
    assert commit(world, "m1", first.epoch, ("t", 3)) == "NONE"


def test_producers_hear_of_a_generation(rebalanced: tuple[World, Player, Player]) -> None:
    world, _, _ = rebalanced
    assert commit(world, "m1", 3, ("t", 0), is_transactional=True) == "NONE"
    assert commit(world, "m1", 2, ("t", 2), is_transactional=True) == "ILLEGAL_GENERATION"
    # Without member and epoch the producer's epoch fences.
    assert commit(world, "", -1, ("t", 0), is_transactional=True) == "NONE"


def test_an_administrator_commits_only_for_an_empty_group(rebalanced: tuple[World, Player, Player]) -> None:
    world, first, second = rebalanced
    assert commit(world, "", -1, ("t", 0)) == "UNKNOWN_MEMBER_ID"
    first.leave()
    second.leave()
    assert commit(world, "", -1, ("t", 0)) == "NONE"


def test_offsets_are_fetched_with_the_members_epoch(rebalanced: tuple[World, Player, Player]) -> None:
    world, _, _ = rebalanced
    assert fetch(world, "m1", 3) == "NONE"
    assert fetch(world, None, -1) == "NONE"
    assert fetch(world, "m1", 2) == "STALE_MEMBER_EPOCH"
    assert fetch(world, "m9", 3) == "UNKNOWN_MEMBER_ID"


def test_epochs_of_tasks_outlive_the_coordinator(rebalanced: tuple[World, Player, Player]) -> None:
    world, _, _ = rebalanced
    moved = world.reload()
    assert group_of(moved).members["m1"].active_epochs == {("0", 0): 2, ("0", 1): 2}
    assert commit(moved, "m1", 2, ("t", 0)) == "NONE"
