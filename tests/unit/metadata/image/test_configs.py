from __future__ import annotations

from millbeck.metadata.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigsImage, ResourceType

IMAGE = ConfigsImage(
    by_resource={
        ConfigResource(ResourceType.TOPIC, "orders"): {"retention.ms": "1", "cleanup.policy": "delete"},
        ConfigResource(ResourceType.BROKER, "1"): {"log.retention.ms": "2"},
        CLUSTER_DEFAULT: {"log.retention.ms": "3"},
        ConfigResource(ResourceType.GROUP, "g"): {"consumer.session.timeout.ms": "4"},
    }
)


def test_options_are_found_by_resource() -> None:
    assert IMAGE.of_topic("orders")["retention.ms"] == "1"
    assert IMAGE.of_broker(1) == {"log.retention.ms": "2"}
    assert IMAGE.of_all_brokers() == {"log.retention.ms": "3"}
    assert IMAGE.of_group("g") == IMAGE.of(ConfigResource(32, "g"))
    assert IMAGE.of_topic("other") == IMAGE.of_broker(2) == IMAGE.of_group("h") == {}


def test_names_are_listed_by_type() -> None:
    assert IMAGE.names(ResourceType.BROKER) == ["", "1"]
    assert IMAGE.names(ResourceType.CLIENT_METRICS) == []


def test_records_are_in_a_fixed_order() -> None:
    written = [(record.resource_type, record.resource_name, record.name) for record in IMAGE.records()]
    assert written == sorted(written)
    assert len(written) == 5
