from __future__ import annotations

from millbeck.server.metadata.quorum_settings import QuorumSettings


def test_a_node_that_is_alone_needs_no_settings() -> None:
    settings = QuorumSettings()
    assert settings.can_vote
    assert not settings.static_voters
    assert settings.bootstrap_servers == ()
