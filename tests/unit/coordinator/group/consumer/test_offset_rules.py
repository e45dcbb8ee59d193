from __future__ import annotations

from typing import Any


def test_only_a_member_at_its_epoch_commits(world: Any) -> None:
    assert world.commit({("t", 0): 1}).error is None
    world.enter_consumer("a")
    assert world.commit({("t", 0): 5}, member_id="a", generation=1).error is None
    assert world.commit({("t", 0): 6}, member_id="a", generation=0).code_name == "STALE_MEMBER_EPOCH"
    assert world.commit({("t", 0): 6}, member_id="a", generation=2).code_name == "STALE_MEMBER_EPOCH"
    assert world.commit({("t", 0): 6}, member_id="b", generation=1).code_name == "UNKNOWN_MEMBER_ID"
    assert world.commit({("t", 0): 6}).code_name == "UNKNOWN_MEMBER_ID"
    assert world.commit({("t", 0): 6}, member_id="a", generation=1, version=8).code_name == "UNSUPPORTED_VERSION"
    assert world.fetched({"t": [0]}) == {("t", 0): 5}


def test_an_administrator_commits_for_a_group_without_members(world: Any) -> None:
    world.enter_consumer("a")
    world.beat("a", -1)
    assert world.commit({("t", 0): 6}).error is None
    assert world.commit({("t", 0): 6}, member_id="a", generation=1).code_name == "UNKNOWN_MEMBER_ID"


def test_a_member_fetches_at_its_epoch_and_an_administrator_always(world: Any) -> None:
    world.enter_consumer("a")
    world.commit({("t", 0): 5}, member_id="a", generation=1)
    assert world.fetch({"t": [0]}).error is None
    assert world.fetch({"t": [0]}, member_id="a", epoch=1).error is None
    assert world.fetch({"t": [0]}, member_id="a", epoch=1, stable=True).error is None
    assert world.fetch({"t": [0]}, member_id="a", epoch=0).code_name == "STALE_MEMBER_EPOCH"
    assert world.fetch({"t": [0]}, member_id="b", epoch=1).code_name == "UNKNOWN_MEMBER_ID"


def test_offsets_of_subscribed_topics_stay_and_others_expire_by_their_commit(worlds: Any) -> None:
    world = worlds.World(retention_minutes=1)
    world.enter_consumer("a")
    world.commit({("t", 0): 5, ("u", 0): 6}, member_id="a", generation=1)
    for _ in range(32):
        world.advance(20_000)
        world.beat("a", 1)
    assert world.fetched(None) == {("t", 0): 5}
    world.beat("a", -1)
    world.advance(1_300_000)
    assert world.group() is None


def test_a_member_that_has_not_heard_of_a_rebalance_commits_what_it_has_kept(world: Any) -> None:
    world.set_topics(t=4)
    world.enter_consumer("a")
    held = world.beat("a", 1).response
    world.enter_consumer("b")
    # It is asked to give some up, at its old epoch, and then moves on with what it has kept.
    asked = world.beat("a", 1).response
    kept = asked.assignment.topic_partitions[0].partitions
    epoch = world.beat("a", 1, owned={"t": kept}).response.member_epoch
    gone = next(each for each in range(4) if each not in kept)
    assert (held.member_epoch, epoch > 1) == (1, True)
    late = {"member_id": "a", "generation": 1}
    assert world.commit({("t", kept[0]): 5}, **late).error is None
    assert world.commit({("t", kept[0]): 6, ("t", gone): 6}, **late).code_name == "STALE_MEMBER_EPOCH"
    assert world.commit({("t", kept[0]): 6}, member_id="a", generation=epoch + 1).code_name == "STALE_MEMBER_EPOCH"
    assert world.commit({("t", kept[0]): 6}, member_id="a", generation=0).code_name == "STALE_MEMBER_EPOCH"
    given = world.beat("b", epoch).response
    assert world.commit({("t", gone): 7}, member_id="b", generation=epoch - 1).code_name == "STALE_MEMBER_EPOCH"
    assert given is None or world.commit({("t", gone): 7}, member_id="b", generation=epoch).error is None
    assert world.fetched({"t": [kept[0]]}) == {("t", kept[0]): 5}
