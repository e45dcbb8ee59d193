from __future__ import annotations

import pytest

from millbeck.coordinator.group.share.context import MembershipSettings, PartitionStart
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from tests.unit.coordinator.group.share.share_world import ShareWorld, assigned, id_of


def test_a_member_gets_what_the_share_coordinator_has_let_begin() -> None:
    world = ShareWorld(answers=False)
    first = world.beat()
    assert (first.member_epoch, assigned(first)) == (1, {})
    assert first.heartbeat_interval_ms == 500, "it waits for partitions"
    assert world.asked == [("g", 1, [PartitionStart(id_of("t"), 0, -1), PartitionStart(id_of("t"), 1, -1)])]
    world.answer("g", world.asked[0][2])
    world.advance(1000)
    second = world.beat(epoch=1)
    assert (second.member_epoch, assigned(second)) == (2, {"t": [0, 1]})
    assert second.heartbeat_interval_ms == 5000
    third = world.beat(epoch=2)
    assert (third.member_epoch, assigned(third)) == (2, None)


def test_what_has_not_begun_is_asked_for_again_after_a_while() -> None:
    world = ShareWorld(answers=False)
    world.beat()
    world.advance(10_000)
    world.beat(epoch=1)
    assert len(world.asked) == 1
    world.advance(20_000)
    world.beat(epoch=1)
    assert len(world.asked) == 2


def test_a_lost_answer_is_given_again() -> None:
    world = ShareWorld()
    world.beat()
    world.advance(1000)
    assert assigned(world.beat(epoch=1)) == {"t": [0, 1]}
    again = world.beat(epoch=1, topics=["t"])
    assert (again.member_epoch, assigned(again)) == (2, {"t": [0, 1]})


@pytest.mark.parametrize("epoch", [-1, 3])
def test_a_group_that_does_not_exist_is_not_found(epoch: int) -> None:
    with pytest.raises(errors.GroupIdNotFound):
        ShareWorld().beat(epoch=epoch, group="none")


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [("m", 9, errors.FencedMemberEpoch), ("m", 0, None), ("n", 3, errors.UnknownMemberId)],
)
def test_epochs_are_checked(member: str, epoch: int, error: type[ApiError] | None) -> None:
    world = ShareWorld()
    world.beat()
    world.advance(1000)
    world.beat(epoch=1)
    if error is None:
        assert world.beat(member, epoch).member_epoch == 2
    else:
        with pytest.raises(error):
            world.beat(member, epoch)


def test_an_epoch_that_is_over_is_fenced() -> None:
    world = ShareWorld()
    world.beat()
    for count in (2, 3):
        world.advance(1000)
        world.topics.change(t=count + 1)
        world.beat(epoch=count - 1)
        world.advance(1000)
        world.beat(epoch=world.share.group("g").members["m"].epoch)
    with pytest.raises(errors.FencedMemberEpoch):
        world.beat(epoch=1)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"group": " "}, "GroupId"),
        ({"member": ""}, "MemberId"),
        ({"epoch": -2, "topics": []}, "MemberEpoch"),
        ({"rack": " "}, "RackId"),
        ({"topics": []}, "SubscribedTopicNames"),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(fields: dict[str, object], text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=text):
        ShareWorld().beat(**fields)  # type: ignore[arg-type]


def test_a_group_has_a_size() -> None:
    world = ShareWorld(size_max=2)
    world.beat("a")
    world.beat("b")
    with pytest.raises(errors.GroupMaxSizeReached):
        world.beat("c")
    world.beat("a")


def test_a_member_that_leaves_is_gone_at_once() -> None:
    world = ShareWorld()
    world.beat("a")
    assert world.beat("a", -1).member_epoch == -1
    assert world.share.group("g").is_empty
    with pytest.raises(errors.UnknownMemberId):
        world.beat("a", -1)


def test_silence_ends_a_membership_also_after_a_reload() -> None:
    world = ShareWorld()
    world.beat("a")
    world.load()
    world.advance(44_000)
    assert not world.share.group("g").is_empty
    world.advance(2000)
    assert world.share.group("g").is_empty


def test_members_that_come_later_share_the_partitions_after_the_interval() -> None:
    world = ShareWorld()
    world.beat("a")
    world.advance(1500)
    world.beat("a", 1)
    late = world.beat("b")
    assert late.heartbeat_interval_ms == 500
    world.advance(1500)
    a = world.beat("a", 2)
    b = world.beat("b", late.member_epoch)
    assert sorted((assigned(a) or {})["t"] + (assigned(b) or {})["t"]) == [0, 1]


def test_new_partitions_begin_too() -> None:
    world = ShareWorld()
    world.beat()
    world.advance(1000)
    world.beat(epoch=1)
    world.topics.change(t=3)
    world.advance(2000)
    world.beat(epoch=2)
    assert world.asked[-1][2] == [PartitionStart(id_of("t"), 2, -1)]
    world.advance(2000)
    assert assigned(world.beat(epoch=world.share.group("g").members["m"].epoch, topics=["t"])) == {"t": [0, 1, 2]}


def test_a_groups_own_settings_count() -> None:
    world = ShareWorld()
    world.settings["g"] = MembershipSettings(session_timeout_ms=50_000, heartbeat_interval_ms=9000)
    world.beat("a")
    world.advance(1000)
    assert world.beat("a", 1).heartbeat_interval_ms == 9000
    world.advance(49_000)
    assert not world.share.group("g").is_empty
    assert world.share.rebalance_count >= 1
