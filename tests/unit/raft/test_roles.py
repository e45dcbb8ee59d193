from __future__ import annotations

import pytest

from millbeck.raft.messages import VersionsRequest
from millbeck.raft.roles import NEVER_MS, Election, PendingRequest, Role
from millbeck.raft.voters import ReplicaKey, VoterSet
from millbeck.simulation.raft.bench import voter


@pytest.mark.parametrize(
    ("answers", "is_won", "is_lost"),
    [
        ([], False, False),
        ([True], False, False),
        ([True, True], True, False),
        ([True, False], False, False),
        ([False, False], False, True),
        ([True, False, False], False, True),
    ],
)
def test_of_three_two_decide(answers: list[bool], is_won: bool, is_lost: bool) -> None:
    election = Election(0, VoterSet.of((voter(1), voter(2), voter(3))), False)
    election.granted = dict(enumerate(answers, start=1))
    assert (election.is_won, election.is_lost) == (is_won, is_lost)


def test_a_pending_request_in_flight_is_not_due() -> None:
    pending = PendingRequest(5)
    assert pending.next_ms == 5
    pending.ask = VersionsRequest(replica=ReplicaKey(1))
    assert pending.next_ms == NEVER_MS
    assert Role("leader") is Role.LEADER
