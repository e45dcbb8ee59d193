from millbeck.coordinator.group.share.context import MembershipSettings, PartitionStart


def test_the_defaults_are_those_of_kafka() -> None:
    settings = MembershipSettings()
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 5000)
    assert PartitionStart(b"", 0, -1).start_offset == -1
