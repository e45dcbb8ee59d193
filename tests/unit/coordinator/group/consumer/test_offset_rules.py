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
