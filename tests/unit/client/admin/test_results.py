"""The values of administrative calls carry Kafka's numbers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from millbeck.client.admin.results import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    ResourceType,
    UpgradeType,
)
from millbeck.kernel.options import ConfigSource


def test_numbers() -> None:
    assert [entry.value for entry in ResourceType] == [2, 4, 8, 16, 32]
    assert [entry.value for entry in ConfigOperation] == [0, 1, 2, 3]
    assert [entry.value for entry in UpgradeType] == [1, 2, 3]
    assert ConfigChange(name="x").operation is ConfigOperation.SET


@pytest.mark.parametrize(("source", "is_default"), [(source, source == 5) for source in ConfigSource])
def test_a_default_is_known_by_its_source(source: int, is_default: bool) -> None:
    entry = ConfigEntry(name="x", value="1", source=source, is_read_only=False, is_sensitive=False)
    assert entry.is_default is is_default


def test_values_never_change_and_serve_as_keys() -> None:
    resource = ConfigResource(ResourceType.TOPIC, "a")
    assert {resource: 1}[ConfigResource(ResourceType.TOPIC, "a")] == 1
    assert (str(resource), str(ConfigResource(ResourceType.BROKER, ""))) == ("topic a", "broker <default>")
    topic = NewTopic(name="a")
    with pytest.raises(FrozenInstanceError):
        topic.name = "b"  # type: ignore[misc]
