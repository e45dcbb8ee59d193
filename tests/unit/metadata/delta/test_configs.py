from __future__ import annotations

from millbeck.metadata.delta.configs import ConfigsDelta
from millbeck.metadata.image.configs import ConfigResource, ConfigsImage, ResourceType
from millbeck.metadata.records import ConfigRecord

ORDERS = ConfigResource(ResourceType.TOPIC, "orders")
BEFORE = ConfigsImage(by_resource={ORDERS: {"retention.ms": "1", "segment.ms": "2"}})


def _set(name: str, value: str | None, resource: ConfigResource = ORDERS) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def test_options_are_set_and_deleted() -> None:
    delta = ConfigsDelta(BEFORE)
    delta.set_option(_set("retention.ms", "9"))
    delta.set_option(_set("segment.ms", None))
    delta.set_option(_set("flush.ms", "3"))
    assert delta.changed[ORDERS].changed == {"retention.ms": "9", "segment.ms": None, "flush.ms": "3"}
    assert delta.apply().of(ORDERS) == {"retention.ms": "9", "flush.ms": "3"}
    assert BEFORE.of(ORDERS)["retention.ms"] == "1"


def test_a_resource_without_options_is_forgotten() -> None:
    delta = ConfigsDelta(BEFORE)
    delta.set_option(_set("retention.ms", None))
    delta.set_option(_set("segment.ms", None))
    assert delta.apply() == ConfigsImage()


def test_setting_the_same_value_counts_as_a_change() -> None:
    delta = ConfigsDelta(BEFORE)
    delta.set_option(_set("retention.ms", "1"))
    assert ORDERS in delta.changed
    assert delta.apply() == BEFORE


def test_a_deleted_topic_takes_its_options_along() -> None:
    delta = ConfigsDelta(BEFORE)
    delta.set_option(_set("flush.ms", "3"))
    delta.remove_topic("orders")
    delta.remove_topic("unknown")
    assert list(delta.changed) == [ORDERS]
    assert delta.apply() == ConfigsImage()


def test_options_set_after_the_deletion_stay() -> None:
    delta = ConfigsDelta(BEFORE)
    delta.remove_topic("orders")
    delta.set_option(_set("retention.ms", "7"))
    assert delta.apply().of(ORDERS) == {"retention.ms": "7"}
