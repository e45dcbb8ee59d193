from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.coordinator.group.classic.group import ClassicGroup, complete_join, complete_sync
from millbeck.coordinator.group.classic.member import ClassicMember, Protocols
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.records import GroupMetadataValue
from millbeck.kernel import errors
from millbeck.wire.messages.classic_groups import JoinGroupResponse, SyncGroupResponse


def member(member_id: str, *names: str, instance_id: str | None = None, rebalance_ms: int = 60_000) -> ClassicMember:
    protocols: Protocols = tuple((name, name.encode()) for name in names or ("range",))
    return ClassicMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=rebalance_ms,
        session_timeout_ms=10_000,
        protocols=protocols,
    )


def group_of(*members: ClassicMember, protocol_type: str = "consumer") -> ClassicGroup:
    group = ClassicGroup("g")
    for one in members:
        group.add(one, protocol_type)
    return group


VOTES = {
    "the only one": ([("range",)], "range"),
    "most votes": ([("a", "b"), ("b", "a"), ("b", "a")], "b"),
    "only what all support": ([("a", "b"), ("a", "b"), ("b",)], "b"),
    "a tie goes to the first member's choice": ([("b", "a"), ("a", "b")], "b"),
}


@pytest.mark.parametrize(("supported", "expected"), VOTES.values(), ids=VOTES.keys())
def test_the_protocol_is_voted_for(supported: list[tuple[str, ...]], expected: str) -> None:
    group = group_of(*(member(f"m{index}", *names) for index, names in enumerate(supported)))
    assert group.select_protocol() == expected


def test_the_first_to_join_leads_and_the_next_follows() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert group.leader_id == "a"
    group.remove("b")
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id == "c"
    group.remove("c")
    assert group.leader_id is None


def test_a_leader_that_has_not_rejoined_is_replaced_by_one_that_has(worlds: ModuleType) -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert not group.elect_joined_leader()
    group.members["c"].join_reply = worlds.Outcome().reply
    assert group.elect_joined_leader()
    assert group.leader_id == "c"
    group.members["a"].join_reply = worlds.Outcome().reply
    assert group.elect_joined_leader()
    assert group.leader_id == "c"


def test_protocols_must_fit_all_members() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "sticky"))
    group.state = GroupState.STABLE
    assert group.supports_protocols("consumer", ["sticky", "other"])
    assert not group.supports_protocols("consumer", ["range"])
    assert not group.supports_protocols("consumer", [])
    assert not group.supports_protocols("connect", ["sticky"])
    group.remove("b")
    assert group.supports_protocols("consumer", ["range"])
    group.set_protocols(group.members["a"], (("other", b""),))
    assert not group.supports_protocols("consumer", ["range"])


def test_an_empty_group_takes_any_protocol_that_has_a_name() -> None:
    group = ClassicGroup("g")
    assert group.supports_protocols("anything", ["x"])
    assert not group.supports_protocols("", ["x"])
    assert not group.supports_protocols("anything", [])


def test_members_are_validated_by_id_and_by_instance() -> None:
    group = group_of(member("a"), member("s", instance_id="i"))
    assert group.validate_member("a", None).member_id == "a"
    assert group.validate_member("s", "i").member_id == "s"
    with pytest.raises(errors.UnknownMemberId):
        group.validate_member("x", None)
    with pytest.raises(errors.UnknownMemberId):
        group.validate_member("s", "other")
    with pytest.raises(errors.FencedInstanceId):
        group.validate_member("old", "i")


def test_a_replaced_static_member_keeps_its_place_and_fences_the_old_one(worlds: ModuleType) -> None:
    group = group_of(member("a", instance_id="i"), member("b"))
    group.pending_syncs = {"a": None, "b": None}
    group.members["a"].assignment = b"work"
    join, sync = worlds.Outcome(), worlds.Outcome()
    group.members["a"].join_reply, group.members["a"].sync_reply = join.reply, sync.reply
    replacement = group.replace_static_member("i", "a2")
    assert list(group.members) == ["a2", "b"]
    assert (group.leader_id, group.static_members, list(group.pending_syncs)) == ("a2", {"i": "a2"}, ["b", "a2"])
    assert (replacement.assignment, replacement.protocols) == (b"work", (("range", b"range"),))
    assert (join.code_name, join.response.member_id, sync.code_name) == (
        "FENCED_INSTANCE_ID",
        "a",
        "FENCED_INSTANCE_ID",
    )
    group.remove("a2")
    assert group.static_members == {}


def test_generations_count_up_and_end_empty() -> None:
    group = group_of(member("a", "range"))
    group.state = GroupState.PREPARING_REBALANCE
    group.pending_syncs["a"] = None
    group.start_generation(5)
    assert (group.generation_id, group.protocol_name, group.state.value) == (1, "range", "CompletingRebalance")
    assert not group.pending_syncs
    group.remove("a")
    group.state = GroupState.PREPARING_REBALANCE
    group.start_generation(6)
    assert (group.generation_id, group.protocol_name, group.state.value) == (2, None, "Empty")
    assert group.protocol_type == "consumer"


def test_a_stable_group_comes_back_from_its_record(worlds: ModuleType) -> None:
    first, second = member("a", instance_id="i"), member("b")
    for one in (first, second):
        one.protocols = (("range", worlds.subscription("t")),)
    group = group_of(first, second)
    group.generation_id, group.protocol_name, group.state_timestamp_ms = 7, "range", 99
    record = group.metadata_record({"a": b"1", "b": b"2"})
    assert isinstance(record.value, GroupMetadataValue)
    loaded = ClassicGroup.from_record("g", record.value)
    assert (loaded.state, loaded.generation_id, loaded.leader_id) == (GroupState.STABLE, 7, "a")
    assert loaded.static_members == {"i": "a"}
    assert loaded.subscribed_topics == frozenset({"t"})
    assert loaded.metadata_record({"a": b"1", "b": b"2"}) == record
    assert loaded.supports_protocols("consumer", ["range"])


def test_subscriptions_are_known_only_for_readable_consumers(worlds: ModuleType) -> None:
    good, bad = worlds.subscription("t", "u"), b"\x00"
    cases: list[tuple[str, dict[str, bytes], Any]] = [
        ("consumer", {"a": good}, frozenset({"t", "u"})),
        ("consumer", {"a": good, "b": bad}, None),
        ("connect", {"a": good}, None),
        ("consumer", {}, frozenset()),
    ]
    for protocol_type, metadata, expected in cases:
        group = ClassicGroup("g")
        group.protocol_type, group.protocol_name = protocol_type, "range"
        for member_id, subscription in metadata.items():
            one = member(member_id)
            one.protocols = (("range", subscription),)
            group.members[member_id] = one
        group.update_subscribed_topics()
        assert group.subscribed_topics == expected


def test_an_unknown_subscription_of_a_consumer_may_be_any_topic() -> None:
    group = ClassicGroup("g")
    assert not group.is_subscribed_to("t")
    group.protocol_type = "consumer"
    assert group.is_subscribed_to("t")
    group.subscribed_topics = frozenset({"u"})
    assert not group.is_subscribed_to("t")
    assert group.is_subscribed_to("u")


def test_the_most_patient_member_decides_the_rebalance_timeout() -> None:
    assert ClassicGroup("g").rebalance_timeout_ms == 0
    assert group_of(member("a", rebalance_ms=5), member("b", rebalance_ms=9)).rebalance_timeout_ms == 9


def test_a_waiting_request_is_answered_once(worlds: ModuleType) -> None:
    one, outcome = member("a"), worlds.Outcome()
    one.join_reply = outcome.reply
    assert complete_join(one, JoinGroupResponse(generation_id=7))
    assert outcome.response.generation_id == 7
    assert not complete_join(one, JoinGroupResponse())
    assert not complete_sync(one, SyncGroupResponse())
