"""OffsetFetch, rule by rule."""

from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.records import OffsetCommitKey, OffsetCommitValue
from millbeck.kernel.ids import ZERO_UUID

T0 = ("t", 0)


def test_an_unknown_group_has_committed_nothing_and_that_is_no_error(world: Any) -> None:
    response = world.fetch({"t": [0, 1]}).response
    assert (response.group_id, response.error_code) == ("g", 0)
    assert [
        (one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code)
        for one in response.topics[0].partitions
    ] == [(0, -1, -1, "", 0), (1, -1, -1, "", 0)]
    assert world.fetch(None).response.topics == []


def test_a_known_group_answers_for_every_partition_asked(world: Any) -> None:
    world.commit({T0: 5})
    assert world.fetched({"t": [0, 3], "u": [1]}) == {T0: 5, ("t", 3): -1, ("u", 1): -1}


def test_null_topics_mean_everything(world: Any) -> None:
    world.commit({T0: 5, ("u", 2): 6})
    world.commit({("x", 0): 9}, group="other")
    assert world.fetched(None) == {T0: 5, ("u", 2): 6}
    assert world.fetched({}) == {}


def test_offsets_of_another_incarnation_of_the_topic_are_not_there(world: Any) -> None:
    other = b"o" * 16
    world.commit({T0: 5})
    assert world.fetched({"t": [0]}, topic_id=other) == {T0: -1}
    assert world.fetched({"t": [0]}, topic_id=ZERO_UUID) == {T0: 5}
    world.commit({T0: 7}, topic_id=ZERO_UUID)
    assert world.fetched({"t": [0]}, topic_id=other) == {T0: 7}


def test_a_stable_fetch_waits_for_what_is_not_committed(world: Any) -> None:
    world.log.holds_commits = True
    world.commit({T0: 5})
    fetched = world.fetch({"t": [0]}, stable=True)
    assert not fetched.is_done
    world.commit_log()
    assert fetched.response.topics[0].partitions[0].committed_offset == 5


def test_a_stable_fetch_tells_of_open_transactions(world: Any) -> None:
    world.commit({T0: 5, ("t", 1): 6})
    world.shard._offsets.replay(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset=9), offset=50, producer_id=7)
    for places in ({"t": [0, 1]}, None):
        partitions = world.fetch(places, stable=True).response.topics[0].partitions
        assert [(one.committed_offset, one.error_code) for one in partitions] == [(-1, 88), (6, 0)]
    assert world.fetched({"t": [0]}) == {T0: 5}
