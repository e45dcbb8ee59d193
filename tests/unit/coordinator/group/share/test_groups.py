from __future__ import annotations

import pytest

from millbeck.coordinator.group.share.context import PartitionStart
from millbeck.coordinator.group.share.groups import StartOffset, without_coordinator
from millbeck.kernel import errors
from tests.unit.coordinator.group.share.share_world import ShareWorld, assigned, id_of


def _world() -> ShareWorld:
    world = ShareWorld()
    world.beat()
    world.advance(1000)
    world.beat(epoch=1)
    return world


def test_everything_is_there_after_a_reload() -> None:
    world = _world()
    before = world.share.group("g")
    world.load()
    assert world.share.group("g") == before
    assert assigned(world.beat(epoch=2, topics=["t"])) == {"t": [0, 1]}


def test_groups_are_listed_and_described_as_committed() -> None:
    world = _world()
    at = world.host.committed_offset
    listed = world.share.list_groups([], [], at)
    assert [(each.group_id, each.group_state, each.group_type) for each in listed] == [("g", "Stable", "share")]
    assert world.share.describe("g", at).members[0].member_id == "m"
    assert world.share.places("g", at) == {id_of("t"): (0, 1)}
    assert world.share.places("none", at) == {}
    assert world.share.counts() == {"Empty": 0, "Stable": 1, "Dead": 0}


def test_a_start_is_set_in_an_empty_group_with_a_new_epoch() -> None:
    world = _world()
    starts = [StartOffset(id_of("t"), "t", 1, 7)]
    with pytest.raises(errors.NonEmptyGroup):
        world.do(lambda share: share.set_starts("g", starts))
    world.beat("m", -1)
    epoch = world.share.group("g").epoch
    assert world.do(lambda share: share.set_starts("g", starts)) == (epoch + 1, [PartitionStart(id_of("t"), 1, 7)])
    assert world.share.group("g").epoch == epoch + 1


def test_a_start_that_is_set_makes_the_group() -> None:
    world = _world()
    starts = [StartOffset(id_of("t"), "t", 1, 7)]
    assert world.do(lambda share: share.set_starts("new", starts)) == (1, [PartitionStart(id_of("t"), 1, 7)])
    world.load()
    assert world.share.group("new").is_empty
    assert world.share.places("new", world.host.committed_offset) == {id_of("t"): (1,)}


def test_the_state_of_a_topic_is_deleted_in_two_steps() -> None:
    world = _world()
    world.beat("m", -1)
    names = {id_of("t"): "t"}
    places = world.do(lambda share: share.begin_deletion("g", names))
    assert places == [(id_of("t"), 0), (id_of("t"), 1)]
    assert world.share.group("g").topics.deleting == names
    assert world.share.group("g").topics.initialized == {}
    world.load()
    assert world.do(lambda share: share.end_deletion("g", names)) is True
    assert world.share.group("g").topics.deleting == {}
    assert world.do(lambda share: share.end_deletion("none", names)) is True


def test_only_an_empty_group_is_deleted() -> None:
    world = _world()
    assert world.share.places_to_forget(["g", "none"]) == {}
    with pytest.raises(errors.NonEmptyGroup):
        world.share.delete("g")
    with pytest.raises(errors.GroupIdNotFound):
        world.share.delete("none")
    world.beat("m", -1)
    assert world.share.places_to_forget(["g"]) == {"g": [(id_of("t"), 0), (id_of("t"), 1)]}
    for record in world.share.delete("g"):
        world.share.replay(record.key, record.value)
    assert "g" not in world.share


def test_a_deleted_topic_is_forgotten() -> None:
    world = _world()
    assert world.share.on_topics_deleted([id_of("other")]) == []
    found = world.share.on_topics_deleted([id_of("t")])
    assert len(found) == 1
    world.share.replay(found[0].key, found[0].value)
    assert world.share.group("g").topics.initialized == {}


def test_without_a_share_coordinator_nothing_begins() -> None:
    world = ShareWorld()
    made = without_coordinator(world.host._registry, world.host._timers, world.topics)
    assert "g" not in made
