from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from millbeck.coordinator.group.consumer.cluster_view import ClusterView, GroupSettings

SETTINGS = GroupSettings(1, 2, 3)


def view(worlds: Any, **topics: int) -> ClusterView:
    found = ClusterView(SETTINGS)
    found.publish(worlds.image_of(topics))
    return found


def test_topics_have_a_shape_while_they_exist(worlds: Any) -> None:
    found = view(worlds, t=3)
    shape = found.shape("t")
    assert shape is not None
    assert (shape.partition_count, shape.racks, found.name_of(shape.topic_id)) == (3, (), "t")
    assert found.shape("nothing") is None
    assert found.topic_names() == ["t"]
    found.publish(worlds.image_of({}))
    assert found.shape("t") is None
    assert found.name_of(shape.topic_id) is None


def test_the_hash_changes_with_the_topics_and_nothing_else(worlds: Any) -> None:
    first = view(worlds, t=3, u=1)
    assert first.metadata_hash(["t"]) == view(worlds, t=3, v=9).metadata_hash(["t", "nothing"])
    assert first.metadata_hash(["t", "u"]) == first.metadata_hash(["u", "t"])
    others = [first.metadata_hash(["t", "u"]), view(worlds, t=4).metadata_hash(["t"]), first.metadata_hash([])]
    assert first.metadata_hash(["t"]) not in others
    assert first.metadata_hash(["nothing"]) == 0


def test_a_group_has_settings_of_its_own_or_everybody_s(worlds: Any) -> None:
    found = view(worlds)
    found.publish_settings({"g": GroupSettings(7, 8, 9)})
    assert found.settings_of("g").heartbeat_interval_ms == 8
    assert found.settings_of("h") is SETTINGS


def test_racks_come_from_the_brokers_of_the_replicas(worlds: Any) -> None:
    image = worlds.image_of({"t": 2})
    found = ClusterView(SETTINGS)
    cluster: Any = SimpleNamespace(brokers={1: SimpleNamespace(rack="a")})
    view_image: Any = SimpleNamespace(topics=image.topics, cluster=cluster)
    found.publish(view_image)
    shape = found.shape("t")
    assert shape is not None
    assert shape.racks == (("a",), ("a",))
    before = found.metadata_hash(["t"])
    cluster.brokers[1].rack = "b"
    found.publish(view_image)
    assert found.metadata_hash(["t"]) != before
