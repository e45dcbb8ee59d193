from __future__ import annotations

import pytest

from millbeck.coordinator.protocol_config import ConsumerProtocolOptions, ShareProtocolOptions, StreamsProtocolOptions
from millbeck.kernel.options import Section

PREFIXES: dict[type[Section], str] = {
    ConsumerProtocolOptions: "group.consumer.",
    ShareProtocolOptions: "group.share.",
    StreamsProtocolOptions: "group.streams.",
}


@pytest.mark.parametrize(("section", "prefix"), PREFIXES.items())
def test_each_protocol_has_its_own_prefix(section: type[Section], prefix: str) -> None:
    assert all(declared.name.startswith(prefix) for declared in section.options)


@pytest.mark.parametrize("section", PREFIXES)
def test_the_defaults_lie_within_the_limits_they_are_given(section: type[Section]) -> None:
    values = section.of()
    for name in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms"):
        lowest, highest = getattr(values, f"{name}_min"), getattr(values, f"{name}_max")
        assert lowest <= getattr(values, name) <= highest
