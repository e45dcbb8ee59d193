from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound
from millbeck.kernel.units import INT_MAX
from millbeck.server.share.sessions import FINAL_EPOCH, ShareSessions, next_epoch

A, B = (b"a" * 16, 0), (b"b" * 16, 1)


def test_epochs_go_on_one_by_one() -> None:
    sessions = ShareSessions()
    session, before = sessions.open("g", "m", None, 10)
    assert before is None
    assert sessions.find("g", "m", 1) is session
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.find("g", "m", 1)
    assert sessions.find("g", "m", 2) is session
    assert sessions.find("g", "m", FINAL_EPOCH) is session
    with pytest.raises(ShareSessionNotFound):
        sessions.find("g", "other", 1)
    assert next_epoch(INT_MAX) == 1


def test_a_member_has_one_session() -> None:
    sessions = ShareSessions()
    first, _ = sessions.open("g", "m", None, 1)
    second, before = sessions.open("g", "m", None, 1)
    assert before is first
    assert (len(sessions), sessions.count_of("g")) == (1, 1)
    assert not sessions.close(first), "another has taken its place"
    assert sessions.close(second)
    assert (len(sessions), sessions.count_of("g")) == (0, 0)


def test_there_is_a_limit() -> None:
    sessions = ShareSessions()
    sessions.open("g", "m", None, 1)
    with pytest.raises(ShareSessionLimitReached):
        sessions.open("g", "n", None, 1)


def test_who_was_served_goes_to_the_end() -> None:
    sessions = ShareSessions()
    session, _ = sessions.open("g", "m", None, 1)
    session.add([A, B, A])
    session.served(A)
    assert list(session.places) == [B, A]
    session.forget([B])
    session.served(B)
    assert list(session.places) == [A]
    assert sessions.partition_count() == 1
    assert [each.member_id for each in sessions] == ["m"]
