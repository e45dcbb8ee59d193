from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.consumer import payloads
from millbeck.kernel.errors import NotEnoughReplicas

TAIL = b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"


def classic_group(world: Any, worlds: Any, count: int = 2, **options: Any) -> list[str]:
    """Members of a stable classic group, each with its part of topic t."""
    protocols = {"range": worlds.subscription("t", version=1, tail=TAIL)}
    joins = [world.enter(client=f"c{index}", protocols=protocols, **options) for index in range(count)]
    world.advance(world.options.classic.initial_rebalance_delay_ms * 2)
    members = [join.response.member_id for join in joins]
    parts = {
        member: payloads.write_assignment({worlds.TOPIC_ID: tuple(range(index, 4, count))}, 1, world.cluster)
        for index, member in enumerate(members)
    }
    for index, member in enumerate(members):
        assert world.sync(member, 1, parts if index == 0 else None).code_name == "NONE"
    return members


def test_a_heartbeat_makes_a_consumer_group_of_a_classic_one(world: Any, worlds: Any) -> None:
    members = classic_group(world, worlds)
    joined = world.enter_consumer("new")
    assert (joined.code_name, joined.response.member_epoch) == ("NONE", 2)
    described = world.described()
    assert sorted(each.member_type for each in described.members) == [0, 0, 1]
    assert {each.member_id: each.member_epoch for each in described.members} == {**dict.fromkeys(members, 1), "new": 2}
    assert world.heartbeat(members[0], 1).code_name == "REBALANCE_IN_PROGRESS"
    assert world.reload().described() == described


def test_who_waits_for_a_classic_rebalance_has_to_rejoin(world: Any, worlds: Any) -> None:
    members = classic_group(world, worlds)
    waiting = world.join(members[0], protocols={"range": worlds.subscription("t", "u", version=1, tail=TAIL)})
    assert not waiting.is_done
    world.enter_consumer("new")
    assert waiting.code_name == "REBALANCE_IN_PROGRESS"


def test_an_upgrade_that_cannot_be_written_leaves_the_classic_group(world: Any, worlds: Any) -> None:
    members = classic_group(world, worlds)
    world.log.refusal = NotEnoughReplicas()
    assert world.enter_consumer("new").code_name == "COORDINATOR_NOT_AVAILABLE"
    world.log.refusal = None
    assert world.state() == "Stable"
    assert world.heartbeat(members[0], 1).code_name == "NONE"
    world.advance(11_000)
    assert world.state() == "Empty"


@pytest.mark.parametrize(
    ("policy", "is_upgraded"), [("bidirectional", True), ("upgrade", True), ("downgrade", False), ("disabled", False)]
)
def test_the_policy_of_going_up(worlds: Any, policy: str, is_upgraded: bool) -> None:
    world = worlds.World(consumer={"migration_policy": policy})
    classic_group(world, worlds)
    assert world.enter_consumer("new").code_name == ("NONE" if is_upgraded else "GROUP_ID_NOT_FOUND")


def test_groups_that_are_no_consumers_or_too_large_stay(worlds: Any) -> None:
    world = worlds.World(consumer={"size_max": 1})
    classic_group(world, worlds)
    assert world.enter_consumer("new").code_name == "GROUP_ID_NOT_FOUND"
    other = worlds.World()
    other.stable_group(protocol_type="connect")
    assert other.enter_consumer("new").code_name == "GROUP_ID_NOT_FOUND"


def test_payloads_that_cannot_be_read_stop_the_upgrade(world: Any) -> None:
    world.stable_group(protocols={"range": b"\xff"})
    assert world.enter_consumer("new").code_name == "GROUP_ID_NOT_FOUND"
    assert world.state() == "Stable"


def test_the_last_consumer_member_leaves_a_classic_group_behind(world: Any, worlds: Any) -> None:
    members = classic_group(world, worlds)
    world.enter_consumer("new")
    assert world.beat("new", -1).code_name == "NONE"
    group = world.group()
    assert (world.state(), group.generation_id, list(group.members)) == ("PreparingRebalance", 2, members)
    protocols = {"range": worlds.subscription("t", version=1, tail=TAIL)}
    joins = [world.join(member, protocols=protocols) for member in members]
    assert [join.response.generation_id for join in joins] == [3, 3]
    after = world.reload()
    assert (after.state(), list(after.group().members)) == ("Stable", members)


def test_sessions_of_the_classic_group_count_after_going_down(world: Any, worlds: Any) -> None:
    classic_group(world, worlds)
    world.enter_consumer("new")
    world.beat("new", -1)
    world.advance(120_000)
    assert world.group().members == {}


@pytest.mark.parametrize(("policy", "state"), [("upgrade", "Reconciling"), ("bidirectional", "PreparingRebalance")])
def test_the_policy_of_going_down(worlds: Any, policy: str, state: str) -> None:
    world = worlds.World(consumer={"migration_policy": policy})
    classic_group(world, worlds)
    world.enter_consumer("new")
    world.beat("new", -1)
    assert world.state() == state


def test_a_consumer_member_whose_session_ends_is_the_last_too(world: Any, worlds: Any) -> None:
    members = classic_group(world, worlds, session_ms=1_000_000)
    world.enter_consumer("new")
    world.advance(46_000)
    assert list(world.group().members) == members
    assert world.state() == "PreparingRebalance"


def test_a_static_member_that_goes_back_to_the_classic_protocol_may_be_the_last(world: Any, worlds: Any) -> None:
    world.enter_consumer("a", instance="i")
    protocols = {"range": worlds.subscription("t", version=1, tail=TAIL)}
    back = world.join("", instance="i", protocols=protocols)
    assert back.code_name == "NONE"
    world.advance(1)
    assert world.state() == "PreparingRebalance"
    assert world.sync(back.response.member_id, back.response.generation_id, instance="i").code_name in (
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
    )
    again = world.join(back.response.member_id, instance="i", protocols=protocols)
    assert again.code_name == "NONE"
    assert again.response.leader == back.response.member_id
