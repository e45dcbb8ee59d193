from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from millbeck.controller import OptionRules
from millbeck.kernel.errors import InvalidConfig, InvalidRequest, PolicyViolation
from millbeck.kernel.options import INT, LIST, PASSWORD, OptionSet, Scope, Secret, Section, Synonym, Update, option
from millbeck.metadata.image import CLUSTER_DEFAULT, ConfigResource, ConfigsImage


class Topic(Section):
    policy = option("policy", LIST, ("a",), scope=Scope.TOPIC, synonyms=[Synonym("log.policy")], doc="A list.")
    size = option("size", INT, 5, scope=Scope.TOPIC, synonyms=[Synonym("log.size")], doc="A number.")
    key = option("key", PASSWORD, Secret("k"), scope=Scope.TOPIC, doc="A secret.")
    hidden = option("hidden", INT, 1, scope=Scope.TOPIC, internal=True, doc="Internal.")


class Broker(Section):
    log_size = option("log.size", INT, 5, update=Update.CLUSTER_WIDE, doc="The topics' default.")
    log_policy = option("log.policy", LIST, ("a",), update=Update.CLUSTER_WIDE, doc="The topics' default.")


ORDERS = ConfigResource(2, "orders")


def _no_size_seven(resource: ConfigResource, options: Mapping[str, str], changed: Collection[str]) -> None:
    if options.get("size") == "7":
        raise PolicyViolation("seven")


RULES = OptionRules(
    topic=OptionSet(Topic),
    broker=OptionSet(Broker),
    group=OptionSet(),
    static={"log.size": "9"},
    node_id=1,
    checks=[_no_size_seven],
)


def test_a_value_in_force_comes_from_the_strongest_place() -> None:
    assert RULES.value_in_force(ConfigsImage(), ORDERS, "size") == "9"
    everywhere = ConfigsImage(
        by_resource={CLUSTER_DEFAULT: {"log.size": "3"}, ConfigResource(4, "1"): {"log.size": "4"}}
    )
    assert RULES.value_in_force(everywhere, ORDERS, "size") == "4"
    assert RULES.value_in_force(ConfigsImage(by_resource={CLUSTER_DEFAULT: {"log.size": "3"}}), ORDERS, "size") == "3"
    assert RULES.value_in_force(ConfigsImage(), ORDERS, "key") is None
    assert RULES.value_in_force(ConfigsImage(), ORDERS, "unknown") is None


def test_lists_are_told_from_other_options() -> None:
    assert RULES.is_list(ORDERS, "policy")
    assert RULES.is_list(ConfigResource(4, ""), "log.policy")
    assert not RULES.is_list(ORDERS, "size")
    assert not RULES.is_list(ORDERS, "unknown")
    assert not RULES.is_list(ConfigResource(32, "g"), "policy")


def test_topics_report_every_option_but_internal_ones_and_no_secret() -> None:
    reported = {config.name: config for config in RULES.topic_configs(ConfigsImage(), {"policy": "a,b", "key": "s"})}
    assert sorted(reported) == ["key", "policy", "size"]
    assert (reported["policy"].value, reported["policy"].config_source) == ("a,b", 1)
    assert (reported["size"].value, reported["size"].config_source) == ("9", 4)
    assert (reported["key"].value, reported["key"].is_sensitive) == (None, True)


def test_a_topics_value_is_what_it_sets_or_inherits() -> None:
    everywhere = ConfigsImage(by_resource={CLUSTER_DEFAULT: {"log.size": "3"}})
    assert RULES.topic_value(everywhere, {"size": "5"}, "size") == 5
    assert RULES.topic_value(everywhere, {}, "size") == 3
    assert RULES.topic_value(ConfigsImage(), {}, "size") == 9


def test_checks_from_outside_are_asked_last() -> None:
    RULES.check(ORDERS, {"size": "6"}, ["size"])
    with pytest.raises(PolicyViolation, match="seven"):
        RULES.check(ORDERS, {"size": "7"}, ["size"])
    with pytest.raises(InvalidConfig):
        RULES.check(ORDERS, {"size": "seven"}, ["size"])
    with pytest.raises(InvalidRequest):
        RULES.check(ConfigResource(99, "x"), {}, [])
