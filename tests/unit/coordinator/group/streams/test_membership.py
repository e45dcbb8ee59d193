"""StreamsGroupHeartbeat from join to leave: topology, epochs, tasks, statuses and timeouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.records import GroupRecord, decode
from millbeck.coordinator.group.streams import membership
from millbeck.coordinator.group.streams.internal_topics import StatusCode
from millbeck.coordinator.group.streams.records import StreamsGroupTargetAssignmentMemberKey
from millbeck.kernel.errors import NotCoordinator
from millbeck.records import batch
from millbeck.wire.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from tests.unit.coordinator.group.streams.streams_world import (
    CHANGELOG,
    Player,
    beat,
    beat_in_turn,
    endpoint,
    group_of,
    statuses,
    topology,
    world_of,
)
from tests.unit.coordinator.world import World

ALL = {"0": (0, 1, 2, 3)}


def test_the_first_member_brings_the_topology_and_gets_all_tasks() -> None:
    world = world_of()
    first = Player(world, "m")
    response = first.beat()
    assert (response.member_epoch, first.active, first.standby) == (2, ALL, {})
    assert statuses(response) == []
    group = group_of(world)
    assert (group.epoch, group.assignment_epoch, group.state.value) == (2, 2, "Stable")
    assert group.topology is not None
    assert group.topology.epoch == 0


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_repeats_no_tasks() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    end = world.log.end_offset
    response = first.beat()
    assert world.log.end_offset == end
    assert response.active_tasks is response.standby_tasks is response.warmup_tasks is None
    assert (response.heartbeat_interval_ms, response.status) == (5000, [])


def test_tasks_are_given_up_before_another_member_gets_them() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    assert second.beat().heartbeat_interval_ms == membership.HASTY_INTERVAL_MS
    assert second.active == {}
    before = first.tasks
    told = first.beat()
    assert (told.member_epoch, first.active) == (2, {"0": (0, 1)})
    # It still has the others, and says so.
    assert first.beat(owned=before).member_epoch == 2
    assert (second.beat().member_epoch, second.active) == (3, {})
    assert first.beat().member_epoch == 3
    second.beat()
    assert second.active == {"0": (2, 3)}
    assert group_of(world).state.value == "Stable"


def test_a_member_that_leaves_frees_its_tasks() -> None:
    world = world_of()
    players = [Player(world, f"m{number}") for number in range(3)]
    beat_in_turn(*players)
    assert players[0].leave().member_epoch == -1
    beat_in_turn(*players[1:])
    assert sorted(index for player in players[1:] for index in player.active["0"]) == [0, 1, 2, 3]
    assert sorted(group_of(world).members) == ["m1", "m2"]


def test_a_silent_member_is_removed_after_its_session() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    beat_in_turn(first, second)
    world.advance(44_000)
    second.beat()
    world.advance(2_000)
    beat_in_turn(second)
    assert second.active == ALL
    assert first.try_beat() is None
    assert first.error == "UNKNOWN_MEMBER_ID"


def test_a_member_that_does_not_give_up_its_tasks_in_time_is_removed() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    before = first.tasks
    second.beat()
    first.beat()
    for _ in range(4):
        world.advance(1_000)
        first.beat(owned=before)
    world.advance(1_500)
    assert first.try_beat(owned=before) is None
    assert first.error == "UNKNOWN_MEMBER_ID"
    beat_in_turn(second)
    assert second.active == ALL


def test_the_timeouts_go_on_after_the_coordinator_moved() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    second.beat()
    first.beat()
    moved = world.reload()
    moved.advance(5_500)
    assert sorted(group_of(moved).members) == ["m2"]
    moved.advance(45_500)
    assert group_of(moved).members == {}


def test_a_state_that_was_reloaded_is_the_same() -> None:
    world = world_of(standbys=1)
    players = [Player(world, f"m{number}", user_endpoint=endpoint(f"h{number}")) for number in range(3)]
    beat_in_turn(*players)
    assert group_of(world.reload()) == group_of(world)


def test_a_lost_response_is_repeated_for_the_previous_epoch() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    second.beat()
    first.beat()
    first.beat()
    assert first.epoch == 3
    first.epoch = 2
    assert first.beat().member_epoch == 3
    first.epoch = 2
    foreign = second.tasks
    second.beat()
    assert first.try_beat(owned=second.tasks) is None
    assert first.error == "FENCED_MEMBER_EPOCH"
    assert foreign != second.tasks


@pytest.mark.parametrize("epoch", [1, 7])
def test_a_member_with_another_epoch_is_fenced(epoch: int) -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    Player(world, "n").beat()
    beat_in_turn(first)
    first.epoch = epoch
    assert first.try_beat() is None
    assert first.error == "FENCED_MEMBER_EPOCH"


def test_a_member_that_joins_again_is_told_its_tasks() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    first.epoch = 0
    response = first.beat()
    assert (response.member_epoch, response.active_tasks) == (2, [TaskIds("0", [0, 1, 2, 3])])


# The topology


def test_missing_source_topics_are_told_until_they_are_there() -> None:
    world = world_of({"u": 1})
    first = Player(world, "m")
    response = first.beat()
    assert [(each.status_code, each.status_detail) for each in response.status or ()] == [
        (StatusCode.MISSING_SOURCE_TOPICS, "Source topics t are missing.")
    ]
    assert (first.active, group_of(world).state.value) == ({}, "NotReady")
    assert first.last.response.missing == {}
    world.set_topics(t=4, **{CHANGELOG: 4})
    assert statuses(first.beat()) == []
    assert (first.active, group_of(world).state.value) == (ALL, "Stable")


def test_missing_internal_topics_are_returned_to_be_created() -> None:
    world = world_of({"t": 4})
    first = Player(world, "m")
    assert statuses(first.beat()) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(name, topic.partition_count) for name, topic in first.last.response.missing.items()] == [(CHANGELOG, 4)]
    assert first.active == {}
    world.set_topics(t=4, **{CHANGELOG: 4})
    first.beat()
    assert (first.active, first.last.response.missing) == (ALL, {})


def test_a_topic_that_is_deleted_takes_the_tasks_away() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    world.set_topics(**{CHANGELOG: 4})
    assert statuses(first.beat()) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert first.active == {}
    assert group_of(world).state.value == "NotReady"


def test_a_topic_that_grows_does_not_fit_its_changelog() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    world.set_topics(t=5, **{CHANGELOG: 4})
    assert statuses(first.beat()) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]


def test_a_member_with_an_older_topology_is_told_so() -> None:
    world = world_of()
    Player(world, "m", topology=topology(epoch=3)).beat()
    response = Player(world, "n", topology=topology(epoch=2)).beat()
    assert statuses(response) == [StatusCode.STALE_TOPOLOGY]
    assert "2 is behind the group's topology epoch 3" in (response.status or [])[0].status_detail


@pytest.mark.parametrize("epoch", [0, 1])
def test_another_topology_is_refused(epoch: int) -> None:
    world = world_of()
    Player(world, "m").beat()
    other = Player(world, "n", topology=topology(Subtopology("0", ["u"]), epoch=epoch))
    assert other.try_beat() is None
    assert other.error == "INVALID_REQUEST"


def test_tasks_that_do_not_exist_are_refused() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    for owned, text in (({"7": (0,)}, "7 does not exist"), ({"0": (4,)}, "Number of tasks for this subtopology: 4")):
        tasks = first.tasks.__class__(owned)
        assert first.try_beat(owned=tasks) is None
        assert first.error == "INVALID_REQUEST"
        assert text in str(first.last.error)


# What waits


def test_the_first_assignment_waits_for_more_members() -> None:
    world = world_of(initial_rebalance_delay_ms=3000)
    first, second = Player(world, "m1"), Player(world, "m2")
    assert statuses(first.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    assert (first.epoch, first.active) == (1, {})
    world.advance(2_000)
    assert statuses(second.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    world.advance(1_100)
    first.beat()
    second.beat()
    assert (first.active, second.active) == ({"0": (0, 2)}, {"0": (1, 3)})
    assert first.epoch == second.epoch == group_of(world).assignment_epoch


def test_assignments_keep_their_interval() -> None:
    world = world_of(assignment_interval_ms=1000)
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    assert statuses(second.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    assert group_of(world).state.value == "Assigning"
    world.advance(1_000)
    assert statuses(second.beat()) == []
    assert group_of(world).assignment_epoch == group_of(world).epoch


def test_a_large_target_is_computed_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "OFFLOAD_SIZE_MIN", 5)
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    assert statuses(first.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    assert first.active == {}
    # A member that joins meanwhile is part of the next target.
    second.beat()
    assert len(world.jobs.waiting) == 1
    assert world.run_jobs() == 1
    first.beat()
    assert world.run_jobs() == 1
    beat_in_turn(first, second)
    assert sorted([*first.active["0"], *second.active["0"]]) == [0, 1, 2, 3]


def test_a_target_for_an_epoch_that_was_never_written_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "OFFLOAD_SIZE_MIN", 5)
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    first.beat()
    world.run_jobs()
    world.log.refusal = NotCoordinator()
    second.try_beat()
    world.log.refusal = None
    world.run_jobs()
    assert group_of(world).assignment_epoch == group_of(world).epoch == 2


def test_a_failed_write_leaves_nothing_behind() -> None:
    world = world_of()
    first = Player(world, "m")
    world.log.refusal = NotCoordinator()
    assert first.try_beat() is None
    world.log.refusal = None
    assert world.group() is None
    assert world.shard.streams.membership._soft == {}
    first.beat()
    assert first.active == ALL


def test_a_refused_member_leaves_nothing_behind() -> None:
    world = world_of()
    other = Player(
        world,
        "m",
        topology=topology(
            Subtopology("0", ["t"], repartition_sink_topics=["r"]),
            Subtopology("1", [], repartition_source_topics=[TopicInfo("s")]),
        ),
    )
    assert other.try_beat() is None
    assert other.error == "STREAMS_INVALID_TOPOLOGY"
    assert world.shard.streams.membership._soft == {}


# Settings, processes and endpoints


def test_the_number_of_standbys_may_change_at_any_time() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    beat_in_turn(first, second)
    assert first.standby == second.standby == {}
    settings = world.cluster.streams_settings_of("g")._replace(standby_count=1)
    world.cluster.publish_settings({}, {"g": settings})
    beat_in_turn(first, second)
    assert first.standby == second.active
    assert second.standby == first.active
    assert group_of(world).assignment_configs == (("num.standby.replicas", "1"),)


def test_a_standby_takes_the_tasks_of_a_member_that_is_gone() -> None:
    world = world_of(standbys=1)
    first, second, third = (Player(world, f"m{number}") for number in range(3))
    beat_in_turn(first, second, third)
    had = {index: player.member_id for player in (second, third) for index in player.standby.get("0", ())}
    lost = first.active["0"]
    first.leave()
    beat_in_turn(second, third)
    now = {index: player.member_id for player in (second, third) for index in player.active["0"]}
    assert all(now[index] == had[index] for index in lost if index in had)
    assert any(index in had for index in lost)


def test_threads_of_a_process_never_have_a_task_twice() -> None:
    world = world_of(standbys=2)
    players = [Player(world, f"m{number}", f"p{number // 2}") for number in range(4)]
    beat_in_turn(*players, rounds=8)
    for process in ("p0", "p1"):
        own = [player for player in players if player.process_id == process]
        tasks = [index for player in own for index in (*player.active["0"], *player.standby.get("0", ()))]
        assert sorted(tasks) == [0, 1, 2, 3]


def test_everybody_hears_where_the_partitions_are() -> None:
    world = world_of(standbys=1)
    first = Player(world, "m1", user_endpoint=endpoint("h1"))
    second = Player(world, "m2", user_endpoint=endpoint("h2"))
    beat_in_turn(first, second)
    first.endpoint_epoch = -1
    response = first.beat()
    assert {
        each.user_endpoint.host: (
            {p.topic: p.partitions for p in each.active_partitions},
            each.standby_partitions[0].partitions,
        )
        for each in response.partitions_by_user_endpoint or ()
    } == {
        "h1": ({"t": list(first.active["0"])}, list(first.standby["0"])),
        "h2": ({"t": list(second.active["0"])}, list(second.standby["0"])),
    }
    assert first.beat().partitions_by_user_endpoint is None


def test_the_shutdown_of_an_application_is_told_to_everybody_until_all_are_gone() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    beat_in_turn(first, second)
    first.leave(shutdown_application=True)
    assert statuses(second.beat()) == [StatusCode.SHUTDOWN_APPLICATION]
    second.leave()
    assert statuses(Player(world, "m3").beat()) == []


def test_a_topic_with_fewer_partitions_than_tasks_has_no_more_at_an_endpoint() -> None:
    world = world_of({"t": 4, "u": 2})
    both = topology(Subtopology("0", ["t", "u"]))
    response = Player(world, "m", topology=both, user_endpoint=endpoint("h")).beat()
    assert [
        (each.topic, each.partitions)
        for found in response.partitions_by_user_endpoint or ()
        for each in found.active_partitions
    ] == [("t", [0, 1, 2, 3]), ("u", [0, 1])]


def test_targets_that_stay_are_not_written_again() -> None:
    world = world_of()
    first, second = Player(world, "m1"), Player(world, "m2")
    beat_in_turn(first, second)
    before = len(target_records(world))
    first.beat(rack_id="r")
    assert group_of(world).assignment_epoch == group_of(world).epoch
    assert len(target_records(world)) == before


def target_records(world: World) -> list[GroupRecord]:
    return [
        record
        for data in world.log.batches
        for each in batch.records_of(data)
        if (record := decode(each.key or b"", each.value)) is not None
        and isinstance(record.key, StreamsGroupTargetAssignmentMemberKey)
    ]


def test_a_change_of_the_member_raises_the_epoch() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    first.beat(rack_id="r")
    assert group_of(world).members["m"].rack_id == "r"
    assert group_of(world).epoch == 3


# Who is refused


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no member id": ({"member_id": ""}, "INVALID_REQUEST"),
    "no group id": ({"group_id": " "}, "INVALID_REQUEST"),
    "an empty rack": ({"rack_id": ""}, "INVALID_REQUEST"),
    "no rebalance timeout": ({"rebalance_timeout_ms": -1}, "INVALID_REQUEST"),
    "no topology": ({"topology": None}, "INVALID_REQUEST"),
    "a static member": ({"instance_id": "i"}, "INVALID_REQUEST"),
    "a static member that leaves": ({"member_epoch": -2, "topology": None}, "INVALID_REQUEST"),
    "an epoch below all": ({"member_epoch": -3, "topology": None}, "INVALID_REQUEST"),
    "a topology after joining": ({"member_epoch": 4}, "INVALID_REQUEST"),
    "task offsets": ({"task_offsets": [TaskOffset("0", 0, 1)]}, "INVALID_REQUEST"),
    "task end offsets": ({"task_end_offsets": []}, "INVALID_REQUEST"),
    "some roles only": ({"active_tasks": None}, "INVALID_REQUEST"),
    "a topology by pattern": (
        {"topology": topology(Subtopology("0", ["t"], source_topic_regex=["t.*"]))},
        "INVALID_REQUEST",
    ),
    "a negative topology epoch": ({"topology": topology(epoch=-1)}, "STREAMS_INVALID_TOPOLOGY"),
    "no source": ({"topology": topology(Subtopology("0"))}, "STREAMS_INVALID_TOPOLOGY"),
    "a member of nothing": ({"member_epoch": 4, "topology": None}, "GROUP_ID_NOT_FOUND"),
}


@pytest.mark.parametrize(("fields", "error"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_is_wrong_is_refused(fields: dict[str, Any], error: str) -> None:
    world = world_of()
    player = Player(world, "m")
    assert player.try_beat(**fields) is None
    assert player.error == error
    assert world.group() is None


def test_tasks_are_refused_when_joining() -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    for role in ("active_tasks", "standby_tasks", "warmup_tasks"):
        player.epoch = 0
        fields: dict[str, Any] = {role: [TaskIds("0", [0])]}
        assert player.try_beat(**fields) is None
        assert player.error == "INVALID_REQUEST"


def test_a_full_group_takes_nobody_else() -> None:
    world = world_of(size_max=1)
    Player(world, "m").beat()
    other = Player(world, "n")
    assert other.try_beat() is None
    assert other.error == "GROUP_MAX_SIZE_REACHED"


def test_a_leaving_member_must_be_known() -> None:
    world = world_of()
    request = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    assert beat(world, request).code_name == "GROUP_ID_NOT_FOUND"
    Player(world, "n").beat()
    assert beat(world, request).code_name == "UNKNOWN_MEMBER_ID"


def test_a_group_without_topology_asks_its_members_to_rejoin() -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    world.shard._groups["g"] = replace(group_of(world), topology=None)
    assert player.try_beat() is None
    assert player.error == "FENCED_MEMBER_EPOCH"


def test_client_id_and_host_are_kept() -> None:
    world = world_of()
    player = Player(world, "m")
    player.beat()
    member = group_of(world).members["m"]
    assert Client(client_id=member.client_id, host=member.client_host) == Client(client_id="c", host="/127.0.0.1")


def test_a_topology_that_was_not_validated_is_validated_with_a_new_epoch() -> None:
    world = world_of()
    first = Player(world, "m")
    first.beat()
    world.shard._groups["g"] = replace(group_of(world), validated_topology_epoch=-1)
    assert first.beat().member_epoch == 3
    assert group_of(world).is_validated
