"""Who votes, and which set counts when the log grows, is cut, or begins with a snapshot."""

from __future__ import annotations

import pytest

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft.voters import (
    NOT_IN_LOG,
    Leader,
    ReplicaKey,
    VoterHistory,
    VoterSet,
    endpoint_for_listener,
    key_of,
    static_voters,
)
from millbeck.records.control import KRaftVersion, Voter, VoterEndpoint

HERE = b"h" * 16
THERE = b"t" * 16


def voter(node_id: int, directory_id: bytes = HERE, port: int = 9093) -> Voter:
    return Voter(
        node_id=node_id,
        directory_id=directory_id,
        endpoints=(VoterEndpoint(name="CONTROLLER", host=f"c{node_id}", port=port),),
        kraft_version_max=1,
    )


def voters(*node_ids: int) -> VoterSet:
    return VoterSet.of(tuple(voter(node_id) for node_id in node_ids))


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    assert voters(*range(count)).majority == majority


def test_a_voter_is_a_node_and_its_directory() -> None:
    members = voters(2, 1)
    assert members.ids == (1, 2)
    assert members.has(ReplicaKey(1, HERE))
    assert not members.has(ReplicaKey(1, THERE))
    assert not members.has(ReplicaKey(3, HERE))
    assert str(ReplicaKey(1, HERE)).startswith("1@")
    assert str(ReplicaKey(1)) == "1"


def test_a_static_voter_is_its_node_whatever_the_directory() -> None:
    members = static_voters({1: VoterEndpoint(name="CONTROLLER", host="a", port=1)})
    assert members.has(ReplicaKey(1, THERE))
    assert members.is_only(ReplicaKey(1))
    assert members.keys == (ReplicaKey(1, ZERO_UUID),)


def test_sets_change_by_one_voter() -> None:
    members = voters(1, 2)
    assert members.with_voter(voter(0)).ids == (0, 1, 2)
    with pytest.raises(AssertionError):
        members.with_voter(voter(1))
    assert members.without(ReplicaKey(2, HERE)).ids == (1,)
    assert members.without(ReplicaKey(2, THERE)) == members
    moved = members.with_changed(voter(2, port=1234))
    endpoint = moved.endpoint_of(2, "")
    assert endpoint is not None
    assert endpoint.port == 1234
    assert members.endpoint_of(7, "") is None
    assert [each.node_id for each in moved.voter_ids()] == [1, 2]
    assert key_of(voter(1)) == ReplicaKey(1, HERE)


def test_the_newest_set_counts_until_it_is_truncated_away() -> None:
    history = VoterHistory(voters(1))
    assert (history.latest_offset, history.kraft_version) == (NOT_IN_LOG, 0)
    history.appended(5, KRaftVersion(kraft_version=1))
    history.appended(6, voters(1, 2).record())
    history.appended(9, voters(1, 2, 3).record())
    assert (history.latest.ids, history.latest_offset, history.kraft_version) == ((1, 2, 3), 9, 1)
    assert history.at(9) == (1, voters(1, 2))
    assert history.at(5) == (0, voters(1))
    history.truncated(9)
    assert (history.latest.ids, history.kraft_version) == ((1, 2), 1)
    history.truncated(0)
    assert (history.latest.ids, history.kraft_version) == ((1,), 0)


def test_what_a_snapshot_stands_for_is_forgotten_but_its_voters_are_not() -> None:
    history = VoterHistory(voters(1))
    history.appended(6, voters(1, 2).record())
    history.appended(9, voters(1, 2, 3).record())
    history.truncate_old_entries(8)
    assert history.at(8) == (0, voters(1, 2))
    history.truncated(8)
    assert (history.latest.ids, history.latest_offset) == ((1, 2), 6)
    history.restart(40, voters(4, 5), 1)
    assert (history.latest.ids, history.latest_offset, history.kraft_version) == ((4, 5), 39, 1)


def test_a_leader_is_known_or_not() -> None:
    assert not Leader(epoch=3).is_known
    assert Leader(node_id=0, epoch=3).is_known


def test_a_voter_is_reached_by_the_listener_that_the_node_uses() -> None:
    plain, encrypted = (VoterEndpoint(name=name, host="h", port=port) for name, port in (("PLAIN", 1), ("SAFE", 2)))
    assert endpoint_for_listener((plain, encrypted), "SAFE") == encrypted
    assert endpoint_for_listener((plain, encrypted), "PLAIN") == plain
    assert endpoint_for_listener((plain, encrypted), "OTHER") == plain
    assert endpoint_for_listener((), "PLAIN") is None


def test_a_snapshot_older_than_the_one_the_log_begins_with_changes_nothing() -> None:
    history = VoterHistory(voters(1))
    history.restart(40, voters(4, 5), 1)
    history.truncate_old_entries(39)
    assert history.at(40) == (1, voters(4, 5))
    assert history.latest_offset == 39
