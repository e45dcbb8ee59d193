from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.statistics import CommittedOffset


def test_groups_are_counted_by_state(world: Any) -> None:
    world.stable_group(1, group="stable")
    world.enter(group="joining")
    world.commit({("t", 0): 1, ("t", 1): 2}, group="simple")
    statistics = world.shard.statistics()
    assert statistics.group_counts == {
        "Empty": 1,
        "PreparingRebalance": 1,
        "CompletingRebalance": 0,
        "Stable": 1,
        "Dead": 0,
    }
    assert statistics.offset_count == 2
    assert (statistics.counters.offset_commits, statistics.counters.completed_rebalances) == (2, 1)


def test_lost_members_are_counted(world: Any) -> None:
    world.stable_group(2)
    world.advance(10_000)
    assert world.shard.statistics().counters.expired_members == 2


def test_lag_needs_every_offset_also_of_groups_without_members(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.commit({("t", 0): 7}, member_id=member, generation=1)
    world.commit({("t", 0): 1, ("u", 3): 2}, group="simple")
    assert list(world.shard.committed_offsets()) == [
        CommittedOffset("g", "t", 0, 7, False),
        CommittedOffset("simple", "t", 0, 1, True),
        CommittedOffset("simple", "u", 3, 2, True),
    ]
