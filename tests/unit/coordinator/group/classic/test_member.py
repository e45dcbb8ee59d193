from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.classic.member import ClassicMember, protocols_of
from millbeck.coordinator.group.records import GroupMember
from millbeck.wire.messages.classic_groups import JoinGroupRequestProtocol


def member(**details: Any) -> ClassicMember:
    defaults: dict[str, Any] = {
        "member_id": "m",
        "instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": 10_000,
        "protocols": (("range", b"r"), ("sticky", b"s")),
    }
    return ClassicMember(**(defaults | details))


def test_a_member_comes_back_from_its_record() -> None:
    stored = member(instance_id="i").to_record("sticky", b"work")
    assert stored == GroupMember("m", "i", "c", "/h", 60_000, 10_000, b"s", b"work")
    loaded = ClassicMember.from_record(stored, "sticky")
    assert loaded.to_record("sticky", loaded.assignment) == stored


def test_a_record_without_rebalance_timeout_uses_the_session_s() -> None:
    stored = GroupMember("m", None, "c", "/h", -1, 10_000, b"", b"")
    assert ClassicMember.from_record(stored, "range").rebalance_timeout_ms == 10_000


def test_metadata_belongs_to_a_protocol() -> None:
    assert member().metadata("sticky") == b"s"
    with pytest.raises(AssertionError):
        member().metadata("other")


def test_of_a_protocol_named_twice_the_first_counts() -> None:
    named = [
        JoinGroupRequestProtocol("a", b"1"),
        JoinGroupRequestProtocol("b", b"2"),
        JoinGroupRequestProtocol("a", b"3"),
    ]
    assert protocols_of(named) == (("a", b"1"), ("b", b"2"))


def test_waiting_members_need_no_heartbeat_unless_they_are_new(worlds: Any) -> None:
    idle, joining, syncing, new = member(), member(), member(), member(is_new=True)
    joining.join_reply = worlds.Outcome().reply
    syncing.sync_reply = worlds.Outcome().reply
    new.join_reply = worlds.Outcome().reply
    excused = [one.has_satisfied_heartbeat for one in (idle, joining, syncing, new)]
    assert excused == [False, True, True, False]
