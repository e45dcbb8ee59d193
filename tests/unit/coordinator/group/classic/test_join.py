"""JoinGroup, rule by rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.kernel import errors


def test_a_dynamic_member_is_first_given_its_id(world: Any) -> None:
    first = world.join(client="app")
    assert (first.code_name, first.response.member_id) == ("MEMBER_ID_REQUIRED", "app-uuid1")
    assert world.state() == "Empty"
    assert list(world.group().pending_joins) == ["app-uuid1"]
    second = world.join("app-uuid1", client="app")
    assert not second.is_done
    world.advance(3000)
    response = second.response
    assert (second.code_name, response.generation_id, response.leader) == ("NONE", 1, "app-uuid1")
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert [member.member_id for member in response.members] == ["app-uuid1"]


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_it_is_admitted_at_once(world: Any, version: int) -> None:
    join = world.join(version=version)
    assert not join.is_done
    world.advance(3000)
    assert join.code_name == "NONE"


def test_version_0_has_no_rebalance_timeout_of_its_own(world: Any) -> None:
    world.join(version=0, session_ms=12_000, rebalance_ms=-1)
    assert world.group().rebalance_timeout_ms == 12_000


def test_a_static_member_is_admitted_at_once_with_an_id_that_names_it(world: Any) -> None:
    join = world.join(instance="left")
    world.advance(3000)
    assert join.response.member_id == "left-uuid1"


def test_only_the_leader_learns_of_the_members(world: Any) -> None:
    joins = [world.enter(client=name) for name in ("a", "b")]
    world.advance(6000)
    assert [len(join.response.members) for join in joins] == [2, 0]
    assert {join.response.leader for join in joins} == {joins[0].response.member_id}


def test_a_pending_member_that_does_not_come_back_is_forgotten(world: Any) -> None:
    member_id = world.join(session_ms=6000).response.member_id
    world.advance(5999)
    assert list(world.group().pending_joins) == [member_id]
    world.advance(1)
    assert not world.group().pending_joins
    assert world.join(member_id).code_name == "UNKNOWN_MEMBER_ID"


def test_a_pending_member_holds_the_join_phase_up(world: Any) -> None:
    members = world.stable_group(1)
    pending = world.join(client="late", session_ms=6000)
    rejoin = world.join(members[0])
    assert not rejoin.is_done
    world.advance(6000)
    assert rejoin.code_name == "NONE"
    assert pending.code_name == "MEMBER_ID_REQUIRED"


def test_names_of_protocols_that_no_member_has_any_more_are_forgotten(world: Any) -> None:
    world.join(version=3, protocols={"range": b"", "other": b""})
    group = world.group()
    assert set(group.protocol_support_counts) == {"range", "other"}
    (member_id,) = group.members
    size = group.size_bytes
    world.join(member_id, version=3, protocols={"range": b"more"})
    assert set(group.protocol_support_counts) == {"range"}
    assert group.size_bytes == size - 200 - len("other") + len("more")
    group.remove(member_id)
    assert (group.protocol_support_counts, group.size_bytes) == ({}, 0)


def test_what_a_group_takes_in_memory_is_bounded(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from millbeck.coordinator.group.classic import join

    assert world.join(version=3, protocols={"range": bytes(4 << 20)}).code_name == "GROUP_MAX_SIZE_REACHED"
    monkeypatch.setattr(join, "GROUP_BYTES_MAX", 10_000)
    assert not world.join(version=3, protocols={"range": bytes(4000)}).is_done
    assert not world.join(version=3, protocols={"range": bytes(4000)}).is_done
    assert world.join(version=3, protocols={"range": bytes(4000)}).code_name == "GROUP_MAX_SIZE_REACHED"
    assert world.join(version=3, client="c" * 2000).code_name == "GROUP_MAX_SIZE_REACHED"
    first, second = world.group().members
    # A member takes the place of what it had before.
    assert not world.join(first, version=3, protocols={"range": bytes(4100)}).is_done
    assert world.join(second, version=3, protocols={"range": bytes(9000)}).code_name == "GROUP_MAX_SIZE_REACHED"


def test_members_that_have_an_id_and_do_not_join_are_bounded(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from millbeck.coordinator.group.classic import join

    monkeypatch.setattr(join, "PENDING_JOINS_MAX", 2)
    long = world.join(client="c" * 300).response.member_id
    assert long.startswith("c" * 255 + "-")
    assert [world.join().code_name for _ in range(2)] == ["MEMBER_ID_REQUIRED", "GROUP_MAX_SIZE_REACHED"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no group": ({"group": ""}, "INVALID_GROUP_ID"),
    "session too short": ({"session_ms": 5999}, "INVALID_SESSION_TIMEOUT"),
    "session too long": ({"session_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
    "an id nobody gave": ({"member_id": "made-up"}, "UNKNOWN_MEMBER_ID"),
    "no protocol": ({"protocols": {}}, "INCONSISTENT_GROUP_PROTOCOL"),
    "no protocol type": ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
}


@pytest.mark.parametrize(("details", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_leave_no_group_behind(world: Any, details: dict[str, Any], expected: str) -> None:
    join = world.join(**details)
    assert (join.code_name, join.response.member_id) == (expected, details.get("member_id", ""))
    assert world.group() is None
    assert world.log.end_offset == 0


IN_GROUP: dict[str, tuple[dict[str, Any], str]] = {
    "another type": ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "nothing in common": ({"protocols": {"sticky": b""}}, "INCONSISTENT_GROUP_PROTOCOL"),
    "unknown id": ({"member_id": "x"}, "UNKNOWN_MEMBER_ID"),
    "unknown instance": ({"member_id": "x", "instance": "i"}, "UNKNOWN_MEMBER_ID"),
}


@pytest.mark.parametrize(("details", "expected"), IN_GROUP.values(), ids=IN_GROUP.keys())
def test_refusals_leave_the_group_alone(world: Any, details: dict[str, Any], expected: str) -> None:
    world.stable_group(1)
    assert world.join(**details).code_name == expected
    assert world.state() == "Stable"


def test_a_known_id_in_an_unknown_group_is_unknown(world: Any) -> None:
    assert world.join("m", group="other").code_name == "UNKNOWN_MEMBER_ID"


def test_a_pending_id_cannot_be_used_by_a_static_member(world: Any) -> None:
    member_id = world.join().response.member_id
    assert world.join(member_id, instance="i").code_name == "UNKNOWN_MEMBER_ID"


def test_a_new_group_is_made_durable_at_once(world: Any) -> None:
    world.join()
    reloaded = world.reload()
    assert reloaded.state() == "Empty"
    assert reloaded.group().generation_id == 0


def test_a_group_that_cannot_be_written_is_not_there(worlds: ModuleType) -> None:
    world = worlds.World()
    world.log.refusal = errors.NotEnoughReplicas()
    join = world.join(version=3)
    assert join.code_name == "COORDINATOR_NOT_AVAILABLE"
    assert world.group() is None
    world.log.refusal = None
    again = world.join(version=3)
    world.advance(3000)
    assert again.code_name == "NONE"


def test_a_stable_follower_that_rejoins_unchanged_gets_the_current_generation(world: Any) -> None:
    _, follower = world.stable_group(2)
    join = world.join(follower)
    assert (join.code_name, join.response.generation_id, join.response.members) == ("NONE", 1, [])
    assert world.state() == "Stable"


def test_a_stable_follower_that_has_changed_starts_a_rebalance(world: Any, worlds: ModuleType) -> None:
    _, follower = world.stable_group(2)
    assert not world.join(follower, protocols={"range": worlds.subscription("t", "u")}).is_done
    assert world.state() == "PreparingRebalance"


def test_a_leader_that_rejoins_starts_a_rebalance(world: Any) -> None:
    leader, _ = world.stable_group(2)
    assert not world.join(leader).is_done
    assert world.state() == "PreparingRebalance"


def test_a_member_that_repeats_its_join_in_the_sync_phase_gets_the_same_answer(world: Any) -> None:
    first, second = world.enter(client="a"), world.enter(client="b")
    world.advance(6000)
    assert world.state() == "CompletingRebalance"
    for join in (first, second):
        again = world.join(join.response.member_id)
        assert again.response == join.response
    assert world.state() == "CompletingRebalance"


def test_a_member_that_changes_in_the_sync_phase_restarts_the_rebalance(world: Any) -> None:
    join = world.enter()
    world.advance(3000)
    again = world.join(join.response.member_id, protocols={"range": b"other"})
    assert (again.code_name, again.response.generation_id) == ("NONE", 2)


def test_a_request_that_is_repeated_elsewhere_ends_the_first(world: Any) -> None:
    world.stable_group(2)
    first = world.enter(client="new")
    again = world.join(list(world.group().members)[-1])
    assert (first.code_name, again.is_done) == ("REBALANCE_IN_PROGRESS", False)


def test_the_group_takes_no_more_than_its_size(worlds: ModuleType) -> None:
    world = worlds.World(size_max=2)
    _, second = world.stable_group(2)
    refused = world.join(client="third")
    assert (refused.code_name, refused.response.member_id) == ("GROUP_MAX_SIZE_REACHED", "")
    assert world.join(second).code_name == "NONE"
    assert world.state() == "Stable"


def test_while_it_rebalances_the_first_to_rejoin_have_the_places(worlds: ModuleType) -> None:
    world = worlds.World(size_max=3)
    members = world.stable_group(3)
    world.shard._rebalancer.options = world.shard._rebalancer.options.replace(size_max=2)
    joins = [world.join(member) for member in members]
    assert [join.code_name for join in joins] == ["NONE", "NONE", "GROUP_MAX_SIZE_REACHED"]
    assert list(world.group().members) == members[:2]


def test_a_loaded_group_over_its_size_rebalances(worlds: ModuleType) -> None:
    world = worlds.World(size_max=2)
    members = world.stable_group(2)
    world.host.close()
    smaller = worlds.World(log=world.log, now_ms=world.now_ms, size_max=1)
    assert smaller.state() == "PreparingRebalance"
    assert smaller.heartbeat(members[0], 1).code_name == "REBALANCE_IN_PROGRESS"


# Static members


def static_pair(world: Any, **options: Any) -> tuple[str, str]:
    """A stable group of two static members, "one" leading."""
    joins = [world.join(instance=instance, **options) for instance in ("one", "two")]
    world.advance(6000)
    leader, follower = (join.response.member_id for join in joins)
    syncs = [world.sync(leader, 1, {leader: b"1", follower: b"2"}), world.sync(follower, 1)]
    assert [sync.response.assignment for sync in syncs] == [b"1", b"2"]
    return leader, follower


def test_a_static_follower_comes_back_without_a_rebalance(world: Any) -> None:
    leader, follower = static_pair(world)
    join = world.join(instance="two")
    response = join.response
    assert (join.code_name, response.generation_id, response.leader) == ("NONE", 1, leader)
    assert (response.members, response.skip_assignment) == ([], False)
    assert response.member_id != follower
    assert world.state() == "Stable"
    assert world.sync(response.member_id, 1, instance="two").response.assignment == b"2"
    for refused in (world.heartbeat(follower, 1, instance="two"), world.join(follower, instance="two")):
        assert refused.code_name == "FENCED_INSTANCE_ID"
    assert world.heartbeat(follower, 1).code_name == "UNKNOWN_MEMBER_ID"
    assert world.reload().group().static_members == {"one": leader, "two": response.member_id}


def test_a_static_leader_comes_back_and_skips_the_assignment(world: Any) -> None:
    static_pair(world)
    response = world.join(instance="one").response
    assert (response.leader, response.skip_assignment, len(response.members)) == (response.member_id, True, 2)
    assert world.state() == "Stable"


def test_an_old_static_leader_is_not_told_that_it_leads(world: Any) -> None:
    leader, _ = static_pair(world)
    response = world.join(instance="one", version=8).response
    assert (response.leader, response.skip_assignment, response.members) == (leader, False, [])


def test_a_static_member_that_changes_the_protocol_starts_a_rebalance(world: Any) -> None:
    both = {"range": b"r", "sticky": b"s"}
    static_pair(world, protocols=both)
    join = world.join(instance="two", protocols={"sticky": b"s"})
    assert not join.is_done
    assert world.state() == "PreparingRebalance"


def test_a_static_member_that_changes_only_its_metadata_does_not(world: Any, worlds: ModuleType) -> None:
    static_pair(world)
    join = world.join(instance="two", protocols={"range": worlds.subscription("other")})
    assert join.code_name == "NONE"
    assert world.group().subscribed_topics == frozenset({"t", "other"})
    assert world.reload().group().subscribed_topics == frozenset({"t", "other"})


def test_a_static_member_that_comes_back_in_the_sync_phase_restarts_the_rebalance(world: Any) -> None:
    joins = [world.join(instance=instance) for instance in ("one", "two")]
    world.advance(6000)
    waiting = world.sync(joins[1].response.member_id, 1)
    again = world.join(instance="one")
    assert world.state() == "PreparingRebalance"
    assert (waiting.code_name, again.is_done) == ("REBALANCE_IN_PROGRESS", False)


def test_a_static_member_that_comes_back_in_the_join_phase_fences_its_old_request(world: Any) -> None:
    first = world.join(instance="one")
    again = world.join(instance="one")
    assert (first.code_name, first.response.member_id) == ("FENCED_INSTANCE_ID", "one-uuid1")
    world.advance(6000)
    assert again.code_name == "NONE"
    assert len(again.response.members) == 1


def test_a_replacement_that_cannot_be_written_is_taken_back(world: Any) -> None:
    leader, follower = static_pair(world)
    world.log.refusal = errors.KafkaStorageError()
    join = world.join(instance="two", session_ms=20_000)
    assert (join.code_name, join.response.member_id) == ("NOT_COORDINATOR", "")
    world.log.refusal = None
    assert world.group().static_members == {"one": leader, "two": follower}
    assert world.group().members[follower].session_timeout_ms == 10_000
    assert world.heartbeat(follower, 1, instance="two").code_name == "NONE"
    assert world.group().metadata_record({leader: b"1", follower: b"2"}) is not None


def test_replacements_that_are_taken_back_leave_the_one_that_is_committed(world: Any) -> None:
    _, follower = static_pair(world)
    world.log.holds_commits = True
    offset = world.log.end_offset
    joins = [world.join(instance="two") for _ in range(3)]
    world.take_back(offset, errors.KafkaStorageError())
    assert {join.code_name for join in joins[:2]} == {"FENCED_INSTANCE_ID"}
    assert joins[2].code_name == "NOT_COORDINATOR"
    assert world.group().static_members["two"] == follower
    assert world.heartbeat(follower, 1, instance="two").is_done


def test_a_replacement_that_is_committed_late_still_counts(world: Any) -> None:
    static_pair(world)
    world.log.holds_commits = True
    join = world.join(instance="two")
    world.advance(5000)
    assert join.code_name == "COORDINATOR_NOT_AVAILABLE"
    world.commit_log()
    live = world.group().static_members
    assert world.reload().group().static_members == live
