from __future__ import annotations

from millbeck.raft.options import QuorumTimeouts


def test_the_defaults_are_kafkas_and_the_rest_follows_from_them() -> None:
    timeouts = QuorumTimeouts()
    assert (timeouts.election_ms, timeouts.fetch_ms, timeouts.election_backoff_ms_max) == (1000, 2000, 1000)
    assert (timeouts.request_ms, timeouts.retry_backoff_ms, timeouts.fetch_wait_ms_max) == (2000, 20, 500)
    assert (timeouts.check_quorum_ms, timeouts.begin_epoch_ms, timeouts.update_voter_ms) == (3000, 1000, 2000)
    assert QuorumTimeouts(fetch_ms=1).begin_epoch_ms == 1
