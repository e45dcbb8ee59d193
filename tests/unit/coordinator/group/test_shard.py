from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.rebalance import Rebalancer
from millbeck.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    group_tombstone,
    offset_commit,
)
from millbeck.coordinator.group.share.groups import StartOffset
from millbeck.kernel import errors


def test_records_pass_through_the_log_s_bytes(world: Any) -> None:
    record = group_tombstone("g")
    assert world.shard.decode(*world.shard.encode(record)) == record
    assert world.shard.decode(b"\x00\x63", b"") is None


def test_a_group_s_record_replaces_what_was_there(world: Any) -> None:
    for generation in (1, 2):
        value = GroupMetadataValue("consumer", generation, None, None, 5, [])
        world.shard.replay(GroupRecord(GroupMetadataKey("g"), value), offset=generation, producer_id=-1)
    assert world.group().generation_id == 2
    world.shard.replay(group_tombstone("g"), offset=3, producer_id=-1)
    world.shard.replay(group_tombstone("g"), offset=4, producer_id=-1)
    assert world.group() is None


def test_an_offset_s_record_makes_a_group_only_where_there_is_none(world: Any) -> None:
    record = offset_commit(
        group_id="g", topic="t", partition=0, offset=1, leader_epoch=-1, metadata="", commit_timestamp=5
    )
    world.shard.replay(record, offset=0, producer_id=-1)
    simple = world.group()
    assert (simple.protocol_type, simple.state_timestamp_ms) == (None, -1)
    world.shard.replay(record, offset=1, producer_id=-1)
    assert world.group() is simple


def test_a_share_group_s_start_is_not_set_in_another_kind_of_group(world: Any) -> None:
    world.stable_group(1)
    starts = [StartOffset(b"t" * 16, "t", 0, 5)]
    with pytest.raises(errors.GroupIdNotFound):
        world.shard.set_share_starts("g", starts)
    assert world.shard.set_share_starts("another", starts).records


def test_nothing_is_left_to_do_for_an_unloaded_shard(world: Any) -> None:
    world.stable_group(2)
    world.commit({("t", 0): 1}, group="simple")
    world.host.close()
    assert {world.state("g"), world.state("simple")} == {"Dead"}
    assert len(world.host._timers) == 0


def test_one_bad_group_does_not_stop_the_others_from_being_resumed_and_unloaded(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(name: str) -> None:
        original = getattr(Rebalancer, name)

        def method(self: Rebalancer, group: ClassicGroup, *details: Any) -> None:
            if group.group_id == "bad":
                raise ValueError(group.group_id)
            original(self, group, *details)

        monkeypatch.setattr(Rebalancer, name, method)

    for group in ("a", "bad", "c"):
        world.stable_group(1, group=group)
    spoil("resume")
    spoil("fail_all")
    world = world.reload()
    world.advance(60_000)
    assert [world.state(group) for group in ("a", "bad", "c")] == ["Empty", "Stable", "Empty"]
    world.host.close()
    assert [world.state(group) for group in ("a", "bad", "c")] == ["Dead", "Stable", "Dead"]
    assert world.host.failure_count == 2
