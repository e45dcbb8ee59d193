"""Heartbeat and LeaveGroup, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no group": ({"group": ""}, "INVALID_GROUP_ID"),
    "unknown group": ({"group": "other"}, "UNKNOWN_MEMBER_ID"),
    "unknown member": ({"member_id": "x"}, "UNKNOWN_MEMBER_ID"),
    "unknown instance": ({"instance": "i"}, "UNKNOWN_MEMBER_ID"),
    "wrong generation": ({"generation": 9}, "ILLEGAL_GENERATION"),
}


@pytest.mark.parametrize(("details", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_heartbeats_are_refused(world: Any, details: dict[str, Any], expected: str) -> None:
    member = world.stable_group(1)[0]
    assert world.heartbeat(**({"member_id": member, "generation": 1} | details)).code_name == expected


def test_heartbeats_keep_a_member_alive(world: Any) -> None:
    member = world.stable_group(1)[0]
    for _ in range(5):
        world.advance(9999)
        assert world.heartbeat(member, 1).code_name == "NONE"
    world.advance(9999)
    assert world.state() == "Stable"
    world.advance(1)
    assert (world.state(), world.group().members) == ("Empty", {})
    assert world.heartbeat(member, 1).code_name == "UNKNOWN_MEMBER_ID"


def test_heartbeats_tell_of_a_rebalance_and_still_count(world: Any) -> None:
    first, second = world.stable_group(2)
    rejoin = world.join(first)
    for _ in range(5):
        world.advance(9000)
        assert world.heartbeat(second, 1).code_name == "REBALANCE_IN_PROGRESS"
    assert not rejoin.is_done
    assert second in world.group().members


def test_heartbeats_count_while_the_group_syncs(world: Any) -> None:
    join = world.enter()
    world.advance(3000)
    assert world.heartbeat(join.response.member_id, 1).code_name == "NONE"


def test_a_member_that_leaves_starts_a_rebalance(world: Any) -> None:
    first, second = world.stable_group(2)
    left = world.leave((second, None))
    assert left.code_name == "NONE"
    assert [(one.member_id, one.error_code) for one in left.response.members] == [(second, 0)]
    assert world.state() == "PreparingRebalance"
    rejoined = world.join(first)
    assert (rejoined.response.generation_id, len(rejoined.response.members)) == (2, 1)


def test_the_last_member_that_leaves_empties_the_group_durably(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.leave((member, None))
    for group in (world.group(), world.reload().group()):
        assert (group.generation_id, group.leader_id, group.members) == (2, None, {})
        assert (group.protocol_type, group.protocol_name) == ("consumer", None)


def test_many_leave_at_once_and_each_is_answered(world: Any) -> None:
    first, second, third = world.stable_group(3)
    left = world.leave((first, None), ("nobody", None), (third, "fake"), (second, None))
    codes = [one.error_code for one in left.response.members]
    assert codes == [0, 25, 25, 0]
    assert list(world.group().members) == [third]
    assert world.group().leader_id == third


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_the_one_member_s_error_is_the_reply_s(world: Any, version: int) -> None:
    member = world.stable_group(1)[0]
    unknown = world.leave(("x", None), version=version)
    assert (unknown.code_name, unknown.response.members) == ("UNKNOWN_MEMBER_ID", [])
    assert world.leave((member, None), version=version).code_name == "NONE"
    assert world.leave((member, None), version=version, group="other").code_name == "UNKNOWN_MEMBER_ID"


def test_an_unknown_group_is_refused_without_waiting_for_a_commit(world: Any) -> None:
    left = world.leave(("a", None), ("", "i"), group="other")
    assert left.code_name == "UNKNOWN_MEMBER_ID"
    assert left.response is None
    assert world.leave(("a", None), group="").code_name == "INVALID_GROUP_ID"


def test_a_static_member_is_removed_by_its_instance_id(world: Any) -> None:
    join = world.join(instance="i")
    world.advance(3000)
    member = join.response.member_id
    world.sync(member, 1, {member: b"x"})
    fenced = world.leave(("someone-else", "i"))
    assert fenced.response.members[0].error_code == 82
    unknown = world.leave(("", "j"), ("", None))
    assert [one.error_code for one in unknown.response.members] == [25, 25]
    assert world.leave(("", "i")).response.members[0].error_code == 0
    assert world.state() == "Empty"


def test_a_pending_member_may_leave_and_lets_the_join_phase_end(world: Any) -> None:
    members = world.stable_group(1)
    pending = world.join(client="late").response.member_id
    rejoin = world.join(members[0])
    assert not rejoin.is_done
    assert world.leave((pending, None)).response.members[0].error_code == 0
    assert rejoin.code_name == "NONE"


def test_a_member_that_leaves_while_it_joins_is_told(world: Any) -> None:
    world.stable_group(2)
    join = world.enter(client="new")
    world.leave((list(world.group().members)[-1], None))
    assert (join.code_name, join.response.member_id) == ("UNKNOWN_MEMBER_ID", "")
