from __future__ import annotations

from millbeck.raft.messages import NOBODY, EpochEnd, FetchResponse, Response, SnapshotKey, VoteRequest, VoteResponse
from millbeck.raft.voters import ReplicaKey


def test_logs_compare_by_epoch_and_then_by_length() -> None:
    assert EpochEnd(3, 1) > EpochEnd(2, 99)
    assert EpochEnd(3, 2) > EpochEnd(3, 1)
    assert SnapshotKey(5, 1) != SnapshotKey(5, 2)


def test_questions_and_answers_are_values() -> None:
    ask = VoteRequest(epoch=1, candidate=ReplicaKey(1), log_end=EpochEnd(0, 0))
    assert ask == VoteRequest(epoch=1, candidate=ReplicaKey(1), log_end=EpochEnd(0, 0))
    assert ask.voter == NOBODY
    assert isinstance(VoteResponse(), Response)
    assert (FetchResponse().records, FetchResponse().leader.is_known) == (b"", False)
