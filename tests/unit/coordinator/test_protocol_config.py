from __future__ import annotations

import pytest

from millbeck.coordinator.group.assignors import ASSIGNORS
from millbeck.coordinator.protocol_config import (
    CONSUMER_ASSIGNORS,
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
)
from millbeck.kernel.errors import InvalidConfig
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


def test_every_assignor_that_can_be_named_is_there() -> None:
    assert CONSUMER_ASSIGNORS.keys() == ASSIGNORS.keys()


KAFKAS = "org.apache.kafka.coordinator.group.assignor"
NAMED = {
    "uniform,range": ("uniform", "range"),
    "range": ("range",),
    f"{KAFKAS}.RangeAssignor,{KAFKAS}.UniformAssignor": ("range", "uniform"),
    f"{KAFKAS}.UniformAssignor,range": ("uniform", "range"),
    "RangeAssignor,UniformAssignor": ("range", "uniform"),
}


@pytest.mark.parametrize(("text", "names"), NAMED.items())
def test_kafkas_classes_are_the_assignors_of_the_same_name(text: str, names: tuple[str, ...]) -> None:
    options = ConsumerProtocolOptions.of(assignors=text)
    assert options.assignor_names == names
    assert ",".join(options.assignors) == text, "what was written is what is described"
    for share in ("simple", f"{KAFKAS}.SimpleAssignor", "SimpleAssignor"):
        assert ShareProtocolOptions.of(assignors=share).assignor_name == "simple"


def test_an_assignor_named_twice_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"group\.consumer\.assignors.*without duplicates"):
        ConsumerProtocolOptions.of(assignors=f"range,{KAFKAS}.RangeAssignor")


@pytest.mark.parametrize("text", ["uniform,", ""])
def test_an_empty_name_of_an_assignor_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"group\.consumer\.assignors.*at least one of uniform, range"):
        ConsumerProtocolOptions.of(assignors=text)
    with pytest.raises(InvalidConfig, match=r"group\.share\.assignors.*at least one of simple"):
        ShareProtocolOptions.of(assignors=text)
