"""OffsetCommit, rule by rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.coordinator.group.offsets.commit import utf16_length
from millbeck.kernel import errors

T0 = ("t", 0)


def test_what_is_committed_is_fetched(world: Any) -> None:
    outcome = world.commit({T0: 5, ("t", 1): 6, ("u", 0): 7}, metadata="note")
    assert [
        (topic.name, [(partition.partition_index, partition.error_code) for partition in topic.partitions])
        for topic in outcome.response.topics
    ] == [("t", [(0, 0), (1, 0)]), ("u", [(0, 0)])]
    partition = world.fetch({"t": [0]}).response.topics[0].partitions[0]
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (5, 3, "note")
    assert world.fetched(None) == {T0: 5, ("t", 1): 6, ("u", 0): 7}


def test_it_survives_a_restart_with_its_topic_id(world: Any, worlds: ModuleType) -> None:
    world.commit({T0: 5}, metadata=None)
    committed = world.reload().shard._offsets.get("g", "t", 0)
    assert (committed.offset, committed.metadata, committed.topic_id) == (5, "", worlds.TOPIC_ID)
    assert (committed.commit_timestamp_ms, committed.expire_timestamp_ms) == (worlds.START_MS, -1)


def test_a_commit_without_a_group_makes_a_simple_one(world: Any) -> None:
    world.commit({T0: 5})
    assert (world.state(), world.group().protocol_type, world.group().generation_id) == ("Empty", None, 0)
    assert world.commit({T0: 6}).response.topics[0].partitions[0].error_code == 0


def test_nothing_is_acknowledged_before_it_is_durable(world: Any) -> None:
    world.log.holds_commits = True
    outcome = world.commit({T0: 5})
    assert not outcome.is_done
    assert world.fetched({"t": [0]}) == {T0: -1}
    world.commit_log()
    assert outcome.is_done
    assert world.fetched({"t": [0]}) == {T0: 5}


def test_a_commit_that_cannot_be_written_changes_nothing(world: Any) -> None:
    world.commit({T0: 5})
    world.log.refusal = errors.NotLeaderOrFollower()
    assert world.commit({T0: 9}).code_name == "NOT_COORDINATOR"
    assert world.commit({T0: 9}, group="h").code_name == "NOT_COORDINATOR"
    world.log.refusal = None
    assert world.fetched({"t": [0]}) == {T0: 5}
    assert world.group("h") is None


UNKNOWN_GROUP = {8: "ILLEGAL_GENERATION", 9: "GROUP_ID_NOT_FOUND", 10: "GROUP_ID_NOT_FOUND"}


@pytest.mark.parametrize(("version", "expected"), UNKNOWN_GROUP.items())
def test_a_generation_of_a_group_that_is_not_there(world: Any, version: int, expected: str) -> None:
    assert world.commit({T0: 5}, member_id="m", generation=1, version=version).code_name == expected
    assert world.group() is None


STABLE: dict[str, tuple[dict[str, Any], str]] = {
    "no member": ({}, "UNKNOWN_MEMBER_ID"),
    "unknown member": ({"member_id": "x", "generation": 1}, "UNKNOWN_MEMBER_ID"),
    "older generation": ({"generation": 0, "is_member": True}, "ILLEGAL_GENERATION"),
    "no generation": ({"generation": -1, "is_member": True}, "ILLEGAL_GENERATION"),
    "newer generation": ({"generation": 2, "is_member": True}, "ILLEGAL_GENERATION"),
    "unknown instance": ({"generation": 1, "is_member": True, "instance": "i"}, "UNKNOWN_MEMBER_ID"),
}


@pytest.mark.parametrize(("details", "expected"), STABLE.values(), ids=STABLE.keys())
def test_only_members_of_the_generation_may_commit(world: Any, details: dict[str, Any], expected: str) -> None:
    member = world.stable_group(1)[0]
    details = dict(details)
    if details.pop("is_member", False):
        details["member_id"] = member
    assert world.commit({T0: 5}, **details).code_name == expected
    assert world.commit({T0: 5}, member_id=member, generation=1).response.topics[0].partitions[0].error_code == 0


def test_a_fenced_static_member_may_not_commit(world: Any) -> None:
    old = world.join(instance="i")
    world.advance(3000)
    member = old.response.member_id
    world.sync(member, 1, {})
    world.join(instance="i")
    assert world.commit({T0: 5}, member_id=member, generation=1, instance="i").code_name == "FENCED_INSTANCE_ID"


def test_members_may_commit_while_the_group_prepares_but_not_while_it_completes(world: Any) -> None:
    first, second = world.stable_group(2)
    world.join(first)
    assert world.commit({T0: 5}, member_id=second, generation=1).response.topics[0].partitions[0].error_code == 0
    world.join(second)
    assert world.state() == "CompletingRebalance"
    assert world.commit({T0: 6}, member_id=second, generation=2).code_name == "REBALANCE_IN_PROGRESS"
    assert world.commit({T0: 6}, member_id=second, generation=1).code_name == "ILLEGAL_GENERATION"


def test_anybody_may_commit_for_an_empty_group_without_a_generation(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.leave((member, None))
    assert world.commit({T0: 5}).response.topics[0].partitions[0].error_code == 0
    assert world.commit({T0: 5}, member_id=member, generation=2).code_name == "UNKNOWN_MEMBER_ID"


def test_a_commit_keeps_the_session_alive(world: Any) -> None:
    member = world.stable_group(1)[0]
    for offset in range(5):
        world.advance(9000)
        world.commit({T0: offset}, member_id=member, generation=1)
    assert world.state() == "Stable"


def test_metadata_may_not_be_too_long(worlds: ModuleType) -> None:
    world = worlds.World(metadata_bytes_max=4)
    for metadata, code in (("abcd", 0), ("abcde", 12), ("éééé", 0), ("😀😀", 0), ("😀😀a", 12)):
        assert world.commit({T0: 5}, metadata=metadata).response.topics[0].partitions[0].error_code == code
    assert world.log.end_offset == 3


def test_length_is_java_s() -> None:
    assert [utf16_length(text) for text in ("", "abc", "é", "😀")] == [0, 3, 1, 2]


def test_a_retention_of_its_own_is_stored(world: Any, worlds: ModuleType) -> None:
    world.commit({T0: 5}, retention_ms=1000)
    assert world.shard._offsets.get("g", "t", 0).expire_timestamp_ms == worlds.START_MS + 1000
    assert world.reload().shard._offsets.get("g", "t", 0).expire_timestamp_ms == worlds.START_MS + 1000
