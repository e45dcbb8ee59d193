from millbeck.coordinator.group.share.surroundings import Begin, MembershipSettings


def test_the_defaults_are_those_of_kafka() -> None:
    settings = MembershipSettings()
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 5000)
    assert Begin(b"", 0, -1).start_offset == -1
