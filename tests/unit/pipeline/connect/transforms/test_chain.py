"""Chains of transforms with predicates, and the names of classes."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.connect import plugins
from millbeck.pipeline.connect.config.definitions import ConfigDef
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord, Side, SinkRecord
from millbeck.pipeline.connect.plugins import PluginKind, plugin_of
from millbeck.pipeline.connect.transforms.base import SidedTransformation
from millbeck.pipeline.connect.transforms.chain import stages_of, transformed

SETTINGS = {
    "transforms": "tag, drop,route",
    "transforms.tag.type": "InsertField$Value",
    "transforms.tag.static.field": "source",
    "transforms.tag.static.value": "shop",
    "transforms.tag.predicate": "isOrder",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "isOrder",
    "transforms.drop.negate": "true",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)-raw",
    "transforms.route.replacement": "$1",
    "predicates": "isOrder",
    "predicates.isOrder.type": "HasHeaderKey",
    "predicates.isOrder.name": "order",
}


def test_stages_run_in_order_on_the_records_that_they_are_for() -> None:
    stages = stages_of(SETTINGS)
    order = SinkRecord(topic="shop-raw", value={"id": 1}, headers=(ConnectHeader("order", None, None),))
    found = transformed(stages, order)
    assert found is not None
    assert (found.topic, found.value) == ("shop", {"id": 1, "source": "shop"})
    assert isinstance(found, SinkRecord)
    assert transformed(stages, SinkRecord(topic="shop-raw", value={"id": 1})) is None


WRONG = {
    "no type": ({"transforms": "a"}, 'Missing required configuration "transforms.a.type" which has no default value.'),
    "twice": ({"transforms": "a,a"}, "Duplicate alias provided"),
    "unknown class": ({"transforms": "a", "transforms.a.type": "InsertFeild$Value"}, "Did you mean InsertField.Value"),
    "a predicate as a transform": ({"transforms": "a", "transforms.a.type": "HasHeaderKey"}, "could not be found"),
    "negated nothing": (
        {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "true"},
        "there is no config 'transforms.a.predicate'",
    ),
    "unknown predicate": (
        {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
        "transforms.a.predicate: no such predicate: set predicates=p and predicates.p.type",
    ),
    "wrong setting": (
        {"transforms": "a", "transforms.a.type": "TimestampRouter", "transforms.a.timestamp.format": "bad"},
        "transforms.a.: Invalid value bad for configuration timestamp.format: Illegal pattern character 'b'",
    ),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_chain_is_refused_by_name(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stages_of(settings)
    assert message.replace(".Value", "$Value") in str(caught.value)


def test_all_names_of_a_class_mean_the_same() -> None:
    for name in ("org.apache.kafka.connect.json.JsonConverter", "JsonConverter", "Json"):
        assert plugin_of("value.converter", name, PluginKind.CONVERTER).name.endswith(".JsonConverter")


class Upper(SidedTransformation):
    """Texts in capitals."""

    config_def = ConfigDef()

    def with_schema(self, record: ConnectRecord, schema: Any, value: Any) -> ConnectRecord:
        return self.side.changed(record, schema, value.upper())

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        return self.with_schema(record, None, value)


class _Entry:
    def __init__(self, name: str, made: Any) -> None:
        self.name = name
        self._made = made

    def load(self) -> Any:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made


def test_a_class_of_another_package_is_known_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_Entry("Upper", Upper), _Entry("Broken", ImportError("no module named x"))]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    stages = stages_of({"transforms": "a", "transforms.a.type": "Upper$Key"})
    found = transformed(stages, ConnectRecord(topic="t", key="abc", value="abc"))
    assert found == ConnectRecord(topic="t", key="ABC", value="abc")
    with pytest.raises(ConfigError, match="Broken cannot be loaded: no module named x"):
        plugin_of("transforms.a.type", "Broken", PluginKind.TRANSFORMATION)
    with pytest.raises(ConfigError, match="could not be found"):
        plugin_of("transforms.a.type", "Upper$Header", PluginKind.TRANSFORMATION)


def test_a_configuration_cannot_import_modules() -> None:
    with pytest.raises(ConfigError, match="could not be found"):
        plugin_of("transforms.a.type", "os:system", PluginKind.TRANSFORMATION)


def test_every_built_in_class_says_what_it_does() -> None:
    assert all(plugin.doc for plugin in plugins.BUILT_IN)
    assert Side.KEY.value == "Key"
