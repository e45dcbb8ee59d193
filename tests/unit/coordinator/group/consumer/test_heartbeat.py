from __future__ import annotations

from typing import Any

import pytest

T = bytes(range(16))


def assigned(outcome: Any) -> list[int] | None:
    found = outcome.response.assignment
    return None if found is None else [each for topic in found.topic_partitions for each in topic.partitions]


def test_the_first_member_gets_everything_at_once(world: Any) -> None:
    joined = world.enter_consumer("m")
    assert (joined.response.member_id, joined.response.member_epoch, joined.response.heartbeat_interval_ms) == (
        "m",
        1,
        5000,
    )
    assert assigned(joined) == [0, 1, 2, 3]
    described = world.described()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 1, 1)
    assert described.members[0].assignment.topic_partitions[0].topic_name == "t"


def test_a_version_0_client_is_given_its_id(world: Any) -> None:
    assert world.enter_consumer("", version=0).response.member_id == "uuid1"
    assert world.enter_consumer("", version=1).code_name == "INVALID_REQUEST"


def test_an_assignment_is_told_when_it_changes_or_everything_was_said(world: Any) -> None:
    world.enter_consumer("m")
    assert assigned(world.beat("m", 1)) is None
    assert assigned(world.beat("m", 1, topics=["t"], owned={"t": [0, 1, 2, 3]}, rebalance_ms=9)) == [0, 1, 2, 3]
    assert assigned(world.beat("m", 1, owned={"t": [0, 1, 2, 3]})) is None


def test_a_partition_has_a_new_owner_only_when_the_old_one_let_go(world: Any) -> None:
    world.enter_consumer("a")
    world.advance(2000)
    second = world.enter_consumer("b")
    assert (second.response.member_epoch, assigned(second)) == (2, [])
    assert second.response.heartbeat_interval_ms == 1000
    asked = world.beat("a", 1)
    assert (asked.response.member_epoch, assigned(asked)) == (1, [0, 1])
    assert assigned(world.beat("b", 2)) is None
    assert world.beat("a", 1, owned={"t": [0, 1, 2, 3]}).response.member_epoch == 1
    assert assigned(world.beat("b", 2)) is None
    assert world.described().group_state == "Reconciling"
    released = world.beat("a", 1, owned={"t": [0, 1]})
    assert (released.response.member_epoch, assigned(released)) == (2, None)
    assert assigned(world.beat("b", 2)) == [2, 3]
    assert world.described().group_state == "Stable"


def test_a_member_whose_part_stays_never_stops(world: Any) -> None:
    world.set_topics(t=6)
    world.enter_consumer("a")
    world.advance(2000)
    world.enter_consumer("b")
    world.advance(2000)
    world.enter_consumer("c")
    for _ in range(3):
        for name in "abc":
            epoch = world.group().members[name].epoch
            owned = {"t": list(world.group().members[name].assigned.get(T, ()))}
            world.beat(name, epoch, owned=owned)
    assert world.state() == "Stable"
    before = {name: world.group().members[name].assigned for name in "ab"}
    world.advance(2000)
    world.beat("c", -1)
    for name in "ab":
        reply = world.beat(name, world.group().members[name].epoch)
        assert set(before[name][T]) < set(assigned(reply) or ())
        assert world.group().members[name].revoking == {}


WRONG_EPOCHS = {
    "greater": (9, {"t": []}, "FENCED_MEMBER_EPOCH"),
    "older than the previous": (1, {"t": []}, "FENCED_MEMBER_EPOCH"),
    "the previous, with more than it has": (2, {"t": [0, 1]}, "FENCED_MEMBER_EPOCH"),
    "the previous, without saying what it has": (2, None, "FENCED_MEMBER_EPOCH"),
    "the previous, as after a lost answer": (2, {"t": [0]}, "NONE"),
    "its own": (3, {"t": [0, 1]}, "NONE"),
}


@pytest.mark.parametrize(("epoch", "owned", "code"), WRONG_EPOCHS.values(), ids=WRONG_EPOCHS.keys())
def test_an_epoch(world: Any, epoch: int, owned: dict[str, list[int]] | None, code: str) -> None:
    world.set_topics(t=1)
    world.enter_consumer("a")
    for number in (1, 2):
        world.advance(2000)
        world.beat("a", number, rack=f"r{number}")
    assert world.group().members["a"].epoch == 3
    assert world.group().members["a"].previous_epoch == 2
    assert world.beat("a", epoch, owned=owned).code_name == code


INVALID: dict[str, dict[str, Any]] = {
    "no group": {"group": "", "epoch": 0, "topics": ["t"], "owned": {}, "rebalance_ms": 1},
    "no instance": {"epoch": 0, "instance": "", "topics": ["t"], "owned": {}, "rebalance_ms": 1},
    "no rack": {"epoch": 0, "rack": "", "topics": ["t"], "owned": {}, "rebalance_ms": 1},
    "no timeout": {"epoch": 0, "topics": ["t"], "owned": {}},
    "owns something": {"epoch": 0, "topics": ["t"], "owned": {"t": [1]}, "rebalance_ms": 1},
    "says not what it owns": {"epoch": 0, "topics": ["t"], "rebalance_ms": 1},
    "subscribes to nothing": {"epoch": 0, "owned": {}, "rebalance_ms": 1},
    "an epoch there is not": {"epoch": -3},
    "a static leave without an instance": {"epoch": -2},
}


@pytest.mark.parametrize("request_fields", INVALID.values(), ids=INVALID.keys())
def test_a_request_is_invalid(world: Any, request_fields: dict[str, Any]) -> None:
    fields = dict(request_fields)
    assert world.beat("m", fields.pop("epoch"), **fields).code_name == "INVALID_REQUEST"
    assert world.group() is None


def test_what_the_coordinator_has_not_is_refused(world: Any) -> None:
    assert world.enter_consumer("m", assignor="mine").code_name == "UNSUPPORTED_ASSIGNOR"
    assert world.enter_consumer("m", regex="(").code_name == "INVALID_REGULAR_EXPRESSION"
    assert world.beat("m", 4).code_name == "GROUP_ID_NOT_FOUND"
    assert world.beat("m", -1).code_name == "GROUP_ID_NOT_FOUND"
    world.enter_consumer("m")
    assert world.beat("n", 4).code_name == "UNKNOWN_MEMBER_ID"
    assert world.beat("n", -1).code_name == "UNKNOWN_MEMBER_ID"


def test_a_group_has_a_size(worlds: Any) -> None:
    world = worlds.World(consumer={"size_max": 1})
    world.enter_consumer("a")
    assert world.enter_consumer("b").code_name == "GROUP_MAX_SIZE_REACHED"
    assert world.beat("a", 1).code_name == "NONE"


def test_a_lost_answer_to_the_first_request_is_given_again(world: Any) -> None:
    world.enter_consumer("a")
    again = world.enter_consumer("a")
    assert (again.response.member_epoch, assigned(again)) == (1, [0, 1, 2, 3])
    assert world.group().epoch == 1


def test_a_static_member_that_comes_back_has_what_it_had(world: Any) -> None:
    world.enter_consumer("a", instance="i")
    assert world.enter_consumer("b", instance="i").code_name == "UNRELEASED_INSTANCE_ID"
    left = world.beat("a", -2, instance="i")
    assert left.response.member_epoch == -2
    assert world.group().epoch == 1
    back = world.enter_consumer("b", instance="i")
    assert (back.response.member_epoch, assigned(back)) == (1, [0, 1, 2, 3])
    assert list(world.group().members) == ["b"]
    assert world.beat("a", 1, instance="i").code_name == "FENCED_INSTANCE_ID"
    assert world.beat("b", 1, instance="other").code_name == "UNKNOWN_MEMBER_ID"
    assert world.beat("b", 1, instance="i").code_name == "NONE"


def test_a_static_member_that_stays_away_goes_with_its_session(world: Any) -> None:
    world.enter_consumer("a", instance="i")
    world.beat("a", -2, instance="i")
    world.advance(46_000)
    assert world.described().members == []
    assert world.described().group_state == "Empty"


def test_leaving_frees_what_was_held(world: Any) -> None:
    world.enter_consumer("a")
    world.advance(2000)
    world.enter_consumer("b")
    assert world.beat("a", -1).response.member_epoch == -1
    world.advance(2000)
    assert assigned(world.beat("b", 2)) == [0, 1, 2, 3]


CHANGES: dict[str, tuple[dict[str, Any], int]] = {
    "other topics": ({"topics": ["u"]}, 2),
    "the same topics": ({"topics": ["t"]}, 1),
    "another rack": ({"rack": "r"}, 2),
    "another assignor": ({"assignor": "range"}, 2),
    "another timeout": ({"rebalance_ms": 7}, 1),
}


@pytest.mark.parametrize(("change", "epoch"), CHANGES.values(), ids=CHANGES.keys())
def test_the_group_s_epoch_goes_up_for(world: Any, change: dict[str, Any], epoch: int) -> None:
    world.enter_consumer("a")
    world.advance(2000)
    world.beat("a", 1, **change)
    assert world.group().epoch == epoch
