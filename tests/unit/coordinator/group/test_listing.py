"""ListGroups, DescribeGroups and DeleteGroups, rule by rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.kernel import errors


def listed(world: Any, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    outcome = world_read(world, lambda shard, at: shard.list_groups(states, types, at))
    return sorted((one.group_id, one.protocol_type, one.group_state, one.group_type) for one in outcome)


def world_read(world: Any, operation: Any) -> Any:
    from_host: list[Any] = []
    reply = type(world.fetch(None).reply)(from_host.append, from_host.append)
    world.host.read(operation, reply)
    return from_host[0]


FILTERS: dict[str, tuple[tuple[str, ...], tuple[str, ...], list[str]]] = {
    "everything": ((), (), ["g", "simple"]),
    "by state": (("Stable",), (), ["g"]),
    "in any case": (("sTABLE", "empty"), (), ["g", "simple"]),
    "unknown state": (("Assigning",), (), []),
    "by type": ((), ("Classic",), ["g", "simple"]),
    "other types": ((), ("consumer", "share"), []),
    "both": (("Empty",), ("classic", "consumer"), ["simple"]),
}


@pytest.mark.parametrize(("states", "types", "expected"), FILTERS.values(), ids=FILTERS.keys())
def test_groups_are_listed_by_state_and_type(
    world: Any, states: tuple[str, ...], types: tuple[str, ...], expected: list[str]
) -> None:
    world.stable_group(1)
    world.commit({("t", 0): 1}, group="simple")
    assert [row[0] for row in listed(world, states, types)] == expected


def test_what_is_listed_of_a_group(world: Any) -> None:
    world.stable_group(1)
    world.commit({("t", 0): 1}, group="simple")
    assert listed(world) == [("g", "consumer", "Stable", "classic"), ("simple", "", "Empty", "classic")]


def test_groups_that_are_not_committed_are_not_listed(world: Any) -> None:
    world.log.holds_commits = True
    world.join()
    assert listed(world) == []
    world.commit_log()
    assert listed(world) == [("g", "", "Empty", "classic")]


def describe(world: Any, group: str = "g", version: int = 6) -> Any:
    return world_read(world, lambda shard, at: shard.describe_groups([group], version, at))[0]


def test_a_stable_group_is_described_with_everything(world: Any, worlds: ModuleType) -> None:
    member = world.stable_group(1)[0]
    described = describe(world)
    assert (described.error_code, described.error_message) == (0, None)
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    one = described.members[0]
    assert (one.member_id, one.group_instance_id, one.client_id, one.client_host) == (member, None, "c0", "/10.0.0.1")
    assert (one.member_metadata, one.member_assignment) == (worlds.subscription("t"), member.encode())


def test_a_group_that_rebalances_is_described_without_metadata(world: Any) -> None:
    world.enter()
    described = describe(world)
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "PreparingRebalance",
        "consumer",
        "",
    )
    assert described.members[0].member_metadata == b""


@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, errors.GroupIdNotFound.code)])
def test_an_unknown_group_is_dead_and_an_error_from_version_6(world: Any, version: int, code: int) -> None:
    described = describe(world, "x", version)
    assert (described.group_id, described.group_state, described.error_code) == ("x", "Dead", code)
    assert (described.error_message is None) == (code == 0)


def delete(world: Any, *groups: str) -> list[tuple[str, int]]:
    outcome = world.write(lambda shard, _: shard.delete_groups(groups))
    return [(one.group_id, one.error_code) for one in outcome.response]


def test_a_group_with_more_offsets_than_fit_one_batch_can_be_deleted(world: Any) -> None:
    world.commit({("t", partition): 1 for partition in range(100)}, group="large")
    world.log.batch_size_bytes_max, world.log.max_message_bytes = 500, 561
    outcome = world.write(lambda shard, _: shard.delete_groups(["large"]))
    assert outcome.error is None
    assert [each.error_code for each in outcome.response] == [0]
    assert world.group("large") is None
    assert world.reload().shard.statistics().offset_count == 0


def test_empty_groups_are_deleted_with_their_offsets(world: Any) -> None:
    world.commit({("t", 0): 1, ("u", 1): 2}, group="simple")
    member = world.stable_group(1)[0]
    assert delete(world, "simple", "g", "x", "simple") == [
        ("simple", 0),
        ("g", errors.NonEmptyGroup.code),
        ("x", errors.GroupIdNotFound.code),
    ]
    assert world.fetched(None, group="simple") == {}
    assert world.group("simple") is None
    world.leave((member, None))
    assert delete(world, "g") == [("g", 0)]
    reloaded = world.reload()
    assert (reloaded.group(), reloaded.group("simple")) == (None, None)


def test_a_deletion_that_cannot_be_written_deletes_nothing(world: Any) -> None:
    world.commit({("t", 0): 1})
    world.log.refusal = errors.NotEnoughReplicas()
    assert world.write(lambda shard, _: shard.delete_groups(["g"])).code_name == "COORDINATOR_NOT_AVAILABLE"
    assert world.fetched(None) == {("t", 0): 1}
    assert world.state() == "Empty"
