"""Which place wins, and the chain that shows why."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_declarations import REQUIRED, Scope, Synonym, option
from millbeck.kernel.option_kinds import INT, LONG, PASSWORD, STRING, Secret
from millbeck.kernel.option_layers import ConfigLayers, ConfigSource, SynonymValue, resolve_option, resolve_value
from millbeck.kernel.validators import at_least

TOPIC, BROKER, CLUSTER, STATIC, DEFAULT, GROUP = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
    ConfigSource.GROUP_CONFIG,
)

RETENTION = option(
    "retention.ms",
    LONG,
    7,
    valid=at_least(-1),
    scope=Scope.TOPIC,
    synonyms=[
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", 60_000),
        Synonym("log.retention.hours", 3_600_000),
    ],
    doc="How long records are kept.",
)
BROKER_DEFAULTS = {"log.retention.hours": "168"}


def test_sources_have_the_numbers_of_describe_configs() -> None:
    assert [TOPIC, BROKER, CLUSTER, STATIC, DEFAULT, GROUP] == [1, 2, 3, 4, 5, 8]
    assert list(ConfigSource) == list(range(9))
    assert (ConfigSource(6).name, ConfigSource(7).name) == ("DYNAMIC_BROKER_LOGGER_CONFIG", "CLIENT_METRICS_CONFIG")


def test_every_place_in_its_order() -> None:
    layers = ConfigLayers(
        overrides={"retention.ms": "1"},
        dynamic_broker={"log.retention.ms": "2"},
        dynamic_default={"log.retention.ms": "3"},
        static={"log.retention.hours": "1", "log.retention.minutes": "1", "log.retention.ms": "4"},
        defaults=BROKER_DEFAULTS,
    )
    resolved = resolve_option(RETENTION, layers)
    assert (resolved.value, resolved.source) == (1, TOPIC)
    assert resolved.synonyms == (
        SynonymValue("retention.ms", "1", TOPIC),
        SynonymValue("log.retention.ms", "2", BROKER),
        SynonymValue("log.retention.ms", "3", CLUSTER),
        SynonymValue("log.retention.ms", "4", STATIC),
        SynonymValue("log.retention.minutes", "1", STATIC),
        SynonymValue("log.retention.hours", "1", STATIC),
        SynonymValue("log.retention.hours", "168", DEFAULT),
    )


PLACES: dict[str, tuple[ConfigLayers, int, ConfigSource]] = {
    "own value": (ConfigLayers(overrides={"retention.ms": "9"}, static={"log.retention.ms": "1"}), 9, TOPIC),
    "this broker": (
        ConfigLayers(dynamic_broker={"log.retention.ms": "9"}, dynamic_default={"log.retention.ms": "1"}),
        9,
        BROKER,
    ),
    "the cluster": (
        ConfigLayers(dynamic_default={"log.retention.ms": "9"}, static={"log.retention.ms": "1"}),
        9,
        CLUSTER,
    ),
    "ms over minutes": (ConfigLayers(static={"log.retention.ms": "9", "log.retention.minutes": "1"}), 9, STATIC),
    "minutes over hours": (
        ConfigLayers(static={"log.retention.hours": "1", "log.retention.minutes": "2"}),
        120_000,
        STATIC,
    ),
    "hours": (ConfigLayers(static={"log.retention.hours": "2"}), 7_200_000, STATIC),
    "minus one hour is no limit": (ConfigLayers(static={"log.retention.hours": "-1"}), -1, STATIC),
    "no hours at all": (ConfigLayers(static={"log.retention.hours": "0"}), 0, STATIC),
    "the synonym's default": (ConfigLayers(defaults=BROKER_DEFAULTS), 604_800_000, DEFAULT),
    "the default": (ConfigLayers(), 7, DEFAULT),
    "a topic's name means nothing in the server's file": (ConfigLayers(static={"retention.ms": "1"}), 7, DEFAULT),
}


@pytest.mark.parametrize(("layers", "value", "source"), PLACES.values(), ids=PLACES.keys())
def test_strongest_place_wins(layers: ConfigLayers, value: int, source: ConfigSource) -> None:
    resolved = resolve_option(RETENTION, layers)
    assert (resolved.value, resolved.source) == (value, source)
    assert resolve_value(RETENTION, layers) == value


def test_a_broker_option_looks_under_its_own_name_and_then_under_its_synonyms() -> None:
    declared = option("log.dirs", STRING, None, synonyms=[Synonym("log.dir")], doc="Where.")
    assert resolve_value(declared, ConfigLayers(static={"log.dir": "a", "log.dirs": "b"})) == "b"
    assert resolve_value(declared, ConfigLayers(static={"log.dir": "a"})) == "a"
    assert resolve_value(declared, ConfigLayers(static={"log.dirs": "b"}, dynamic_broker={"log.dirs": "c"})) == "c"
    assert resolve_value(declared, ConfigLayers(overrides={"log.dirs": "b"})) is None


def test_a_group_option_names_the_group_as_its_source() -> None:
    declared = option("share.lock", INT, 1, scope=Scope.GROUP, doc="A lock.")
    assert resolve_option(declared, ConfigLayers(overrides={"share.lock": "3"})).source == GROUP


def test_own_values_are_validated_and_synonyms_only_typed() -> None:
    with pytest.raises(InvalidConfig, match=r"retention\.ms"):
        resolve_value(RETENTION, ConfigLayers(overrides={"retention.ms": "-2"}))
    assert resolve_value(RETENTION, ConfigLayers(static={"log.retention.ms": "-2"})) == -2
    with pytest.raises(InvalidConfig):
        resolve_value(RETENTION, ConfigLayers(static={"log.retention.ms": "soon"}))


def test_a_required_option_must_be_set() -> None:
    declared = option("node.id", INT, REQUIRED, doc="Who.")
    assert resolve_value(declared, ConfigLayers(static={"node.id": "4"})) == 4
    for resolve in (resolve_value, resolve_option):
        with pytest.raises(InvalidConfig, match=r"node\.id"):
            resolve(declared, ConfigLayers())


def test_secrets_are_left_out_of_the_chain() -> None:
    declared = option("secret", PASSWORD, None, doc="A secret.")
    resolved = resolve_option(declared, ConfigLayers(static={"secret": "hush"}))
    assert resolved.value == Secret("hush")
    assert resolved.synonyms == (SynonymValue("secret", None, STATIC),)
    assert "hush" not in repr(resolved)
