"""Streams groups beside groups of other types: one id, one type; listing, describing, deleting and expiry."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millbeck.coordinator.group.records import GroupMetadataKey, decode
from millbeck.coordinator.group.streams.group import Holders
from millbeck.coordinator.group.streams.records import StreamsGroupMetadataKey, StreamsGroupTopologyKey
from millbeck.records import batch
from millbeck.wire.messages.classic_groups import HeartbeatRequest, LeaveGroupRequest, MemberIdentity, SyncGroupRequest
from millbeck.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millbeck.wire.messages.streams_groups import TaskIds, TopicInfo
from tests.unit.coordinator.group.streams.streams_world import (
    CHANGELOG,
    Player,
    beat_in_turn,
    endpoint,
    group_of,
    world_of,
)
from tests.unit.coordinator.group.streams.test_offset_rules import commit
from tests.unit.coordinator.world import World


def listed(world: World, states: list[str] | None = None, types: list[str] | None = None) -> list[tuple[str, str, str]]:
    found = world.shard.list_groups(states or [], types or [], world.host.committed_offset)
    return [(each.protocol_type, each.group_state, each.group_type) for each in found]


def described(world: World, group_id: str = "g") -> Any:
    return world.shard.streams.describe(group_id, world.host.committed_offset)


def deleted(world: World) -> int:
    outcome = world.write(lambda shard, _: shard.delete_groups(["g"]))
    return int(outcome.response[0].error_code)


def test_a_streams_group_is_listed_by_state_and_type() -> None:
    world = world_of({"u": 1})
    player = Player(world, "m")
    player.beat()
    for states in ([], ["NotReady"], ["not_ready"]):
        assert listed(world, states) == [("streams", "NotReady", "streams")]
    assert listed(world, types=["Streams"]) == [("streams", "NotReady", "streams")]
    assert listed(world, ["Stable"]) == listed(world, types=["consumer"]) == []
    player.leave()
    assert listed(world) == [("streams", "Empty", "streams")]


def test_a_group_is_described_with_topology_members_and_tasks() -> None:
    world = world_of(standbys=1)
    first = Player(world, "m1", user_endpoint=endpoint("h"), rack_id="r")
    beat_in_turn(first, Player(world, "m2"))
    found = described(world)
    assert (found.error_code, found.group_state) == (0, "Stable")
    assert (found.group_epoch, found.assignment_epoch) == (3, 3)
    (subtopology,) = found.topology.subtopologies
    assert (subtopology.source_topics, subtopology.state_changelog_topics) == (["t"], [TopicInfo(CHANGELOG, 4)])
    member = next(each for each in found.members if each.member_id == "m1")
    assert (member.rack_id, member.user_endpoint, member.process_id) == ("r", endpoint("h"), "process of m1")
    assert member.assignment.active_tasks == [TaskIds("0", list(first.active["0"]))]
    assert member.target_assignment == member.assignment
    assert (member.topology_epoch, member.is_classic) == (0, False)


def test_a_topology_that_cannot_run_is_described_as_it_was_sent() -> None:
    world = world_of({"u": 1})
    Player(world, "m").beat()
    (subtopology,) = described(world).topology.subtopologies
    assert subtopology.state_changelog_topics == [TopicInfo(CHANGELOG, 0)]


def test_groups_that_are_not_streams_groups_are_not_described() -> None:
    world = world_of()
    assert (described(world).error_code, described(world).error_message) == (69, "Group g not found.")
    world.beat("m", 0, topics=["t"], owned={}, rebalance_ms=1000)
    assert described(world).error_message == "Group g is not a streams group."
    other = Player(world, "n")
    assert other.try_beat() is None
    assert other.error == "GROUP_ID_NOT_FOUND"


def test_an_id_of_a_streams_group_is_not_one_of_another_type() -> None:
    world = world_of()
    Player(world, "m").beat()
    assert world.beat("n", 0, topics=["t"], owned={}, rebalance_ms=1000).code_name == "GROUP_ID_NOT_FOUND"
    assert world.join().code_name == "INCONSISTENT_GROUP_PROTOCOL"
    sync = SyncGroupRequest("g", 1, "n")
    assert world.write(lambda shard, outcome: shard.sync(sync, outcome.reply)).code_name == "UNKNOWN_MEMBER_ID"
    assert world.write(lambda shard, _: shard.heartbeat(HeartbeatRequest("g", 1, "n"))).code_name == "UNKNOWN_MEMBER_ID"
    leave = LeaveGroupRequest("g", members=[MemberIdentity("n")])
    assert world.write(lambda shard, _: shard.leave(leave, 5, world.now_ms)).code_name == "UNKNOWN_MEMBER_ID"
    (found,) = world.shard.describe_groups(["g"], 6, world.host.committed_offset)
    assert (found.group_state, found.error_code) == ("Dead", 69)


def test_an_empty_classic_group_becomes_a_streams_group_and_keeps_its_offsets() -> None:
    world = world_of()
    assert commit(world, "", -1, ("t", 0)) == "NONE"
    Player(world, "m").beat()
    assert listed(world) == [("streams", "Stable", "streams")]
    moved = world.reload()
    assert listed(moved) == [("streams", "Stable", "streams")]
    assert moved.shard._offsets.get("g", "t", 0) is not None
    assert GroupMetadataKey("g") in [record.key for record in records_of(world)]


def test_an_empty_streams_group_becomes_a_classic_group() -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    player.leave()
    world.join()
    assert listed(world)[0][2] == "classic"
    assert listed(world.reload())[0][2] == "classic"
    assert world.shard.streams.membership._soft == {}


def test_a_group_with_members_is_not_deleted_and_an_empty_one_without_a_trace() -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    commit(world, "m", player.epoch, ("t", 0))
    assert deleted(world) == 68
    player.leave()
    assert deleted(world) == 0
    assert listed(world) == []
    assert world.shard.streams.membership._soft == {}
    tombstones = [record.key for record in records_of(world) if record.value is None]
    assert StreamsGroupMetadataKey("g") in tombstones
    assert StreamsGroupTopologyKey("g") in tombstones
    assert deleted(world) == 69
    assert listed(world.reload()) == []


def test_an_empty_group_expires_with_its_offsets() -> None:
    world = World(topics={"t": 4, CHANGELOG: 4}, retention_minutes=1, streams={"initial_rebalance_delay_ms": 0})
    player = Player(world, "m")
    player.beat()
    commit(world, "m", player.epoch, ("t", 0))
    for _ in range(8):
        world.advance(30_000)
        player.beat()
    # The group reads the topic: its offset stays.
    assert world.shard._offsets.get("g", "t", 0) is not None
    player.leave()
    world.advance(1_300_000)
    assert listed(world) == []


@pytest.mark.parametrize(("is_empty", "code"), [(False, 86), (True, 0)])
def test_offsets_of_source_topics_are_kept_while_there_are_members(is_empty: bool, code: int) -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    commit(world, "m", player.epoch, ("t", 0))
    if is_empty:
        player.leave()
    topics = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
    outcome = world.write(lambda shard, _: shard.delete_offsets(OffsetDeleteRequest("g", topics)))
    assert outcome.response.topics[0].partitions[0].error_code == code


def test_statistics_count_groups_by_state() -> None:
    world = world_of()
    Player(world, "m").beat()
    found = world.shard.statistics()
    assert found.streams_group_counts["Stable"] == 1
    assert sum(found.group_counts.values()) == sum(found.consumer_group_counts.values()) == 0
    assert found.counters.streams_rebalances == 1


def test_records_in_any_order_that_compaction_leaves_make_the_same_group() -> None:
    world = world_of(standbys=1)
    beat_in_turn(Player(world, "m1"), Player(world, "m2"))
    found = group_of(world)
    last = {record.key.__class__.__name__ + str(record.key): record for record in records_of(world)}
    other = world_of(standbys=1)
    for record in reversed([each for each in last.values() if each.value is not None]):
        other.shard.replay(record, offset=0, producer_id=-1)
    rebuilt = group_of(other)
    assert (rebuilt.epoch, rebuilt.assignment_epoch, rebuilt.topology) == (
        found.epoch,
        found.assignment_epoch,
        found.topology,
    )
    assert (rebuilt.members, rebuilt.targets) == (dict(found.members), dict(found.targets))


def records_of(world: World) -> list[Any]:
    found = []
    for data in world.log.batches:
        for record in batch.records_of(data):
            decoded = decode(record.key or b"", record.value)
            if decoded is not None:
                found.append(decoded)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_who_holds_what_is_kept_as_if_it_were_counted_each_time(seed: int) -> None:
    dice = random.Random(seed)
    world = world_of({"t": 6, CHANGELOG: 6}, standbys=1)
    players = [Player(world, f"m{number}", f"p{number // 2}") for number in range(6)]
    for _ in range(60):
        player = dice.choice(players)
        if player.epoch > 0 and dice.random() < 0.1:
            player.leave()
            player.epoch = 0
        else:
            player.beat(owned=player.tasks if dice.random() < 0.5 else None)
        group = group_of(world)
        assert group.holders == Holders.of(group.members.values())
    assert group.holders.copies
