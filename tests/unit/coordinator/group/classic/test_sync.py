"""SyncGroup, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel import errors


def joined(world: Any, count: int = 2) -> list[str]:
    """A group whose join phase has just ended."""
    joins = [world.enter(client=f"c{index}") for index in range(count)]
    world.advance(6000)
    assert world.state() == "CompletingRebalance"
    return [join.response.member_id for join in joins]


def test_everybody_waits_for_the_leader(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    assert not waiting.is_done
    given = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert (given.response.assignment, waiting.response.assignment) == (b"L", b"F")
    assert (waiting.response.protocol_type, waiting.response.protocol_name) == ("consumer", "range")
    assert world.state() == "Stable"
    assert world.sync(follower, 1).response.assignment == b"F"


def test_nobody_sees_the_assignment_before_it_is_durable(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.log.holds_commits = True
    given = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert not given.is_done
    assert not waiting.is_done
    assert world.state() == "CompletingRebalance"
    world.commit_log()
    assert (given.code_name, waiting.code_name, world.state()) == ("NONE", "NONE", "Stable")


def test_a_member_the_leader_forgot_gets_an_empty_assignment(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.sync(leader, 1, {leader: b"L", "stranger": b"S"})
    assert (waiting.code_name, waiting.response.assignment) == ("NONE", b"")
    stored = world.reload().group().members
    assert {name: member.assignment for name, member in stored.items()} == {leader: b"L", follower: b""}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no group": ({"group": ""}, "INVALID_GROUP_ID"),
    "unknown group": ({"group": "other"}, "UNKNOWN_MEMBER_ID"),
    "unknown member": ({"member_id": "x"}, "UNKNOWN_MEMBER_ID"),
    "unknown instance": ({"instance": "i"}, "UNKNOWN_MEMBER_ID"),
    "older generation": ({"generation": 0}, "ILLEGAL_GENERATION"),
    "newer generation": ({"generation": 2}, "ILLEGAL_GENERATION"),
    "another protocol type": ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "another protocol": ({"protocol_name": "sticky"}, "INCONSISTENT_GROUP_PROTOCOL"),
}


@pytest.mark.parametrize("is_stable", [False, True])
@pytest.mark.parametrize(("details", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(world: Any, details: dict[str, Any], expected: str, is_stable: bool) -> None:
    leader = world.stable_group(1)[0] if is_stable else joined(world, 1)[0]
    state = world.state()
    assert world.sync(**({"member_id": leader, "generation": 1} | details)).code_name == expected
    assert world.state() == state


def test_the_right_protocol_may_be_named(world: Any) -> None:
    leader = joined(world, 1)[0]
    assert world.sync(leader, 1, protocol_type="consumer", protocol_name="range").code_name == "NONE"


def test_a_group_that_is_empty_or_preparing_gives_nothing(world: Any) -> None:
    members = world.stable_group(2)
    world.join(members[0])
    assert world.sync(members[1], 1).code_name == "REBALANCE_IN_PROGRESS"
    world.leave(*((member, None) for member in members))
    assert world.state() == "Empty"
    assert world.sync(members[1], 2).code_name == "UNKNOWN_MEMBER_ID"


def test_an_assignment_that_cannot_be_written_restarts_the_rebalance(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.log.refusal = errors.NotEnoughReplicas()
    given = world.sync(leader, 1, {leader: b"L"})
    assert (given.code_name, waiting.code_name) == ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE")
    assert world.state() == "PreparingRebalance"
    world.log.refusal = None
    assert world.heartbeat(leader, 1).code_name == "REBALANCE_IN_PROGRESS"


def test_an_assignment_that_is_taken_back_restarts_the_rebalance(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.log.holds_commits = True
    offset = world.log.end_offset
    given = world.sync(leader, 1, {leader: b"L"})
    world.take_back(offset, errors.KafkaStorageError())
    assert (given.code_name, waiting.code_name) == ("NOT_COORDINATOR", "NOT_COORDINATOR")
    assert world.state() == "PreparingRebalance"


def test_an_assignment_that_comes_too_late_is_ignored(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.log.holds_commits = True
    given = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    newcomer = world.join(version=3, client="new")
    assert (given.code_name, waiting.code_name) == ("REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS")
    world.commit_log()
    assert world.state() == "PreparingRebalance"
    assert not newcomer.is_done


def test_a_sync_that_is_repeated_elsewhere_ends_the_first(world: Any) -> None:
    leader, follower = joined(world)
    first, again = world.sync(follower, 1), world.sync(follower, 1)
    assert (first.code_name, again.is_done) == ("REBALANCE_IN_PROGRESS", False)
    world.sync(leader, 1, {follower: b"F"})
    assert again.response.assignment == b"F"


def test_members_that_never_sync_are_dropped_after_the_rebalance_timeout(world: Any) -> None:
    leader, follower = joined(world)
    world.sync(leader, 1, {leader: b"L", follower: b"F"})
    for _ in range(12):
        world.advance(5000)
        world.heartbeat(leader, 1)
        world.heartbeat(follower, 1)
    assert world.state() == "PreparingRebalance"
    assert list(world.group().members) == [leader]


def test_a_member_that_leaves_while_it_syncs_is_told(world: Any) -> None:
    _, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.leave((follower, None))
    assert waiting.code_name == "UNKNOWN_MEMBER_ID"


def test_an_assignment_that_is_committed_late_still_counts(world: Any) -> None:
    leader, follower = joined(world)
    waiting = world.sync(follower, 1)
    world.log.holds_commits = True
    given = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    world.advance(5000)
    assert (given.code_name, waiting.code_name) == ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE")
    assert world.state() == "CompletingRebalance"
    world.commit_log()
    assert world.state() == "Stable"
    assert world.sync(follower, 1).response.assignment == b"F"


def test_a_leader_that_asks_again_does_not_write_a_second_assignment(world: Any) -> None:
    leader, follower = joined(world)
    world.log.holds_commits = True
    end_offset = world.log.end_offset
    first = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    again = world.sync(leader, 1, {leader: b"F", follower: b"L"})
    assert world.log.end_offset == end_offset + 1
    assert first.code_name == "REBALANCE_IN_PROGRESS"
    world.commit_log()
    assert again.response.assignment == b"L"
    assert world.reload().sync(follower, 1).response.assignment == b"F"
