from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from millbeck.coordinator.group.consumer import payloads


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    encoded = b"".join(pack(">h", len(topic)) + topic.encode() for topic in topics)
    held = pack(">i", len(owned or {}))
    for topic, partitions in (owned or {}).items():
        held += pack(">h", len(topic)) + topic.encode() + pack(">i", len(partitions))
        held += b"".join(pack(">i", each) for each in partitions)
    return pack(">hi", 1, len(topics)) + encoded + pack(">i", -1) + held


def join(world: Any, member_id: str, *, owned: dict[str, list[int]] | None = None, **options: Any) -> Any:
    options.setdefault("protocols", {"range": subscription("t", owned=owned)})
    return world.join(member_id, **options)


def partitions(world: Any, outcome: Any) -> list[int]:
    found = payloads.read_assignment(outcome.response.assignment, world.cluster)
    return [each for part in found.values() for each in part]


@pytest.fixture
def mixed(world: Any) -> tuple[Any, str]:
    """A consumer group with one member of each protocol; the classic one has joined and not synced."""
    world.enter_consumer("new")
    world.advance(2000)
    first = join(world, "")
    assert first.code_name == "MEMBER_ID_REQUIRED"
    second = join(world, first.response.member_id)
    assert (second.code_name, second.response.generation_id) == ("NONE", 2)
    assert (second.response.protocol_name, second.response.leader) == ("range", "")
    return world, second.response.member_id


def test_a_classic_member_gets_its_part_when_it_is_free(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    assert partitions(world, world.sync(member, 2, protocol_type="consumer", protocol_name="range")) == []
    assert world.heartbeat(member, 2).code_name == "NONE"
    world.beat("new", 1)
    assert world.heartbeat(member, 2).code_name == "NONE"
    world.beat("new", 1, owned={"t": [0, 1]})
    assert world.heartbeat(member, 2).code_name == "REBALANCE_IN_PROGRESS"
    assert join(world, member).response.generation_id == 2
    assert partitions(world, world.sync(member, 2)) == [2, 3]
    assert world.heartbeat(member, 2).code_name == "NONE"


def test_a_classic_member_gives_up_by_rejoining(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    world.beat("new", 1)
    world.beat("new", 1, owned={"t": [0, 1]})
    join(world, member)
    world.sync(member, 2)
    world.advance(2000)
    world.enter_consumer("third")
    assert world.heartbeat(member, 2).code_name == "REBALANCE_IN_PROGRESS"
    again = join(world, member, owned={"t": [2, 3]})
    assert again.response.generation_id == 2
    assert world.heartbeat(member, 2).code_name == "REBALANCE_IN_PROGRESS"
    kept = partitions(world, world.sync(member, 2))
    assert len(kept) == 1
    assert join(world, member, owned={"t": kept}).response.generation_id == 3
    assert partitions(world, world.sync(member, 3)) == kept


ERRORS: dict[str, tuple[Any, str]] = {
    "another generation": (lambda world, member: world.heartbeat(member, 9), "ILLEGAL_GENERATION"),
    "nobody": (lambda world, _: world.heartbeat("nobody", 1), "UNKNOWN_MEMBER_ID"),
    "a member of the other protocol": (lambda world, _: world.heartbeat("new", 1), "UNKNOWN_MEMBER_ID"),
    "a sync of another protocol": (
        lambda world, member: world.sync(member, 2, protocol_name="other"),
        "INCONSISTENT_GROUP_PROTOCOL",
    ),
    "a sync of another generation": (lambda world, member: world.sync(member, 1), "ILLEGAL_GENERATION"),
    "a protocol nobody shares": (
        lambda world, _: join(world, "", protocols={"sticky": subscription("t")}),
        "INCONSISTENT_GROUP_PROTOCOL",
    ),
    "another type": (lambda world, _: join(world, "", protocol_type="connect"), "INCONSISTENT_GROUP_PROTOCOL"),
    "a subscription that is none": (
        lambda world, _: join(world, "x", protocols={"range": b"\xff\xff"}),
        "INCONSISTENT_GROUP_PROTOCOL",
    ),
    "a commit of another generation": (
        lambda world, member: world.commit({("t", 0): 1}, member_id=member, generation=1),
        "ILLEGAL_GENERATION",
    ),
}


@pytest.mark.parametrize(("ask", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_a_classic_member_is_refused(mixed: tuple[Any, str], ask: Any, code: str) -> None:
    world, member = mixed
    assert ask(world, member).code_name == code


def test_sync_waits_for_a_rejoin_when_the_group_has_moved_on(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    world.enter_consumer("third")
    assert world.sync(member, 2).code_name == "NONE"
    assert world.heartbeat(member, 2).code_name == "NONE"
    world.advance(1001)
    assert world.sync(member, 2).code_name == "REBALANCE_IN_PROGRESS"
    assert world.heartbeat(member, 2).code_name == "REBALANCE_IN_PROGRESS"


def test_a_classic_member_that_does_not_sync_or_rejoin_goes(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    for _ in range(13):
        world.advance(5000)
        world.beat("new", world.group().members["new"].epoch, owned={"t": [0, 1]})
        world.heartbeat(member, 2)
    assert list(world.group().members) == ["new"]
    assert member not in world.group().members


def test_a_classic_member_has_its_own_session(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    world.sync(member, 2)
    world.advance(9000)
    world.commit({("t", 0): 1}, member_id=member, generation=2)
    world.advance(9000)
    assert member in world.group().members
    world.advance(2000)
    assert member not in world.group().members


def test_classic_members_leave_one_by_one_and_by_instance(mixed: tuple[Any, str]) -> None:
    world, member = mixed
    static = join(world, "", instance="i")
    assert static.code_name == "NONE"
    answers = world.leave((member, None), (member, None), ("new", None), ("", "i"), ("", "j")).response.members
    assert [answer.error_code for answer in answers] == [0, 25, 25, 0, 25]
    assert list(world.group().members) == ["new"]


def test_a_static_member_changes_its_protocol_both_ways(world: Any) -> None:
    world.enter_consumer("other")
    world.enter_consumer("a", instance="i")
    back = join(world, "", instance="i")
    assert back.code_name == "NONE"
    assert world.group().static_member("i").uses_classic_protocol
    assert join(world, "stranger", instance="i").code_name == "FENCED_INSTANCE_ID"
    assert world.enter_consumer("b", instance="i").code_name == "NONE"
    assert not world.group().static_member("i").uses_classic_protocol


def test_a_full_group_takes_nobody(worlds: Any) -> None:
    world = worlds.World(consumer={"size_max": 1})
    world.enter_consumer("a")
    assert join(world, "").code_name == "GROUP_MAX_SIZE_REACHED"
