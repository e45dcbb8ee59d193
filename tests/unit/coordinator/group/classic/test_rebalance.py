"""The phases of a rebalance and their time-outs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.kernel import errors


def test_the_first_rebalance_waits_for_more_members(world: Any) -> None:
    first = world.enter(client="a")
    world.advance(2999)
    assert not first.is_done
    second = world.enter(client="b")
    world.advance(1)
    assert not first.is_done, "somebody came: wait once more"
    world.advance(3000)
    assert (first.response.generation_id, second.response.generation_id) == (1, 1)


def test_the_first_rebalance_ends_at_the_rebalance_timeout_at_the_latest(world: Any) -> None:
    first = world.enter(client="c", rebalance_ms=10_000)
    for index in range(20):
        world.advance(1000)
        world.enter(client=f"c{index}", rebalance_ms=10_000)
        if first.is_done:
            break
    assert world.now_ms - 1_000_000 == 10_000


def test_without_delay_the_first_rebalance_is_over_with_the_next_timer(worlds: ModuleType) -> None:
    world = worlds.World(initial_rebalance_delay_ms=0)
    join = world.enter()
    world.advance(0)
    assert join.code_name == "NONE"


def test_a_rebalance_ends_when_everybody_has_rejoined(world: Any) -> None:
    members = world.stable_group(3)
    joins = [world.join(member) for member in members]
    assert [join.response.generation_id for join in joins] == [2, 2, 2]
    assert world.state() == "CompletingRebalance"


def test_dynamic_members_that_do_not_rejoin_are_dropped(world: Any) -> None:
    first, second = world.stable_group(2)
    rejoin = world.join(second, protocols={"range": b"changed"})
    for _ in range(12):
        world.advance(5000)
        world.heartbeat(first, 1)
    assert rejoin.response.generation_id == 2
    assert (rejoin.response.leader, list(world.group().members)) == (second, [second])


def test_static_members_that_do_not_rejoin_stay_until_their_session_ends(world: Any) -> None:
    static = world.join(instance="s", session_ms=120_000)
    dynamic = world.enter(session_ms=120_000)
    world.advance(6000)
    leader, follower = static.response.member_id, dynamic.response.member_id
    world.sync(leader, 1, {})
    world.sync(follower, 1)
    rejoin = world.join(follower, session_ms=120_000, protocols={"range": b"changed"})
    world.advance(60_000)
    assert rejoin.response.generation_id == 2
    assert sorted(world.group().members) == sorted([leader, follower])
    assert rejoin.response.leader == follower, "a leader that has not rejoined cannot assign"


def test_when_only_absent_static_members_are_left_the_group_waits_for_them(world: Any) -> None:
    static = world.join(instance="s", session_ms=600_000)
    dynamic = world.enter()
    world.advance(6000)
    world.sync(static.response.member_id, 1, {})
    world.leave((dynamic.response.member_id, None))
    world.advance(60_000)
    assert world.state() == "PreparingRebalance"
    again = world.join(static.response.member_id, instance="s", session_ms=600_000)
    assert again.response.generation_id == 2


def test_a_new_member_may_be_dropped_while_it_waits(world: Any) -> None:
    members = world.stable_group(1, rebalance_ms=1_000_000, session_ms=1_000_000)
    join = world.enter(client="new", rebalance_ms=1_000_000)
    world.advance(299_999)
    assert not join.is_done
    world.heartbeat(members[0], 1)
    world.advance(1)
    assert (join.code_name, join.response.member_id) == ("UNKNOWN_MEMBER_ID", "")


def test_a_waiting_member_needs_no_heartbeat(world: Any) -> None:
    first, second = world.stable_group(2, rebalance_ms=200_000)
    rejoin = world.join(first, rebalance_ms=200_000)
    for _ in range(10):
        world.advance(9000)
        world.heartbeat(second, 1)
    assert not rejoin.is_done
    assert list(world.group().members) == [first, second]


def test_a_member_that_dies_in_the_sync_phase_restarts_the_rebalance(world: Any) -> None:
    joins = [world.enter(client="a", session_ms=6000), world.enter(client="b", session_ms=60_000)]
    world.advance(6000)
    second = joins[1].response.member_id
    waiting = world.sync(second, 1)
    world.advance(6000)
    assert (waiting.code_name, world.state()) == ("REBALANCE_IN_PROGRESS", "PreparingRebalance")
    assert list(world.group().members) == [second]


def test_the_last_death_in_the_join_phase_ends_it(world: Any) -> None:
    first, _ = world.stable_group(2)
    rejoin = world.join(first)
    world.advance(10_000)
    assert rejoin.response.generation_id == 2
    assert list(world.group().members) == [first]


def test_an_empty_group_rebalances_with_the_initial_delay_again(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.leave((member, None))
    join = world.enter(client="next")
    assert not join.is_done
    world.advance(3000)
    assert join.response.generation_id == 3


def test_a_loaded_group_goes_on_where_it_was(world: Any) -> None:
    first, second = world.stable_group(2)
    reloaded = world.reload()
    assert reloaded.heartbeat(first, 1).code_name == "NONE"
    assert reloaded.sync(second, 1).response.assignment == second.encode()
    reloaded.advance(9999)
    reloaded.heartbeat(first, 1)
    reloaded.advance(1)
    assert (reloaded.state(), list(reloaded.group().members)) == ("PreparingRebalance", [first])


@pytest.mark.parametrize("is_syncing", [False, True])
def test_unloading_answers_everybody_who_waits(world: Any, is_syncing: bool) -> None:
    if is_syncing:
        joins = [world.enter(client=name) for name in ("a", "b")]
        world.advance(6000)
        waiting = world.sync(joins[1].response.member_id, 1)
    else:
        waiting = world.enter()
    world.host.close()
    assert waiting.code == errors.NotCoordinator.code
    assert world.state() == "Dead"
    world.advance(1_000_000)
