"""Every option is what Kafka 4.3 says it is: its name, type, default, range, importance and update mode."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import REQUIRED, Option, Update
from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS
from millbeck.storage.config import TOPIC_OPTIONS


@dataclass(frozen=True, slots=True)
class Fact:
    scope: str
    name: str
    kind: str
    default: str
    range: str
    importance: str
    internal: str
    update: str


def read_facts() -> list[Fact]:
    lines = (Path(__file__).parent / "kafka_options.tsv").read_text(encoding="utf-8").splitlines()
    return [Fact(*line.split("\t")) for line in lines if not line.startswith("#")]


FACTS = read_facts()
SETS = {"broker": BROKER_OPTIONS, "topic": TOPIC_OPTIONS, "group": GROUP_OPTIONS}
IDS = [f"{fact.scope}-{fact.name}" for fact in FACTS]

OURS = {
    "log.open.files.max": "Kafka keeps every file open",
    "log.scrub.interval.ms": "Kafka does not scrub",
    "metrics.http.host": "Kafka has JMX",
    "allow.everyone.if.no.acl.found": "Kafka's authorizer reads it by itself",
    "millbeck.allowed.networks": "Kafka leaves it to a firewall",
    "millbeck.audit.events": "Kafka has a logger of its authorizer's decisions, and no audit",
    "millbeck.audit.file": "see above",
    "millbeck.audit.file.bytes": "see above",
    "millbeck.audit.file.count": "see above",
    "millbeck.audit.repeat.ms": "see above",
    "millbeck.audit.throttle.ms": "see above",
    "millbeck.audit.topic": "see above",
    "millbeck.authorizer.dry.run": "Kafka has no dry run",
    "super.users": "Kafka's authorizer reads it by itself",
    "internal.metadata.version.max": "Kafka's releases are tried with each other",
    "metrics.http.port": "Kafka has JMX",
    "millbeck.ssl.crl.location": "Java finds revocation lists by system properties",
    "millbeck.ssl.reload.interval.ms": "Kafka does not look at its files again",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "a system property in Kafka",
    "org.apache.kafka.sasl.oauthbearer.allowed.files": "a system property in Kafka",
    "millbeck.disconnect.on.revoke": "Kafka ends no session",
    "millbeck.hardened": "Kafka has no profile of settings",
    "millbeck.inter.broker.listeners": "Kafka takes requests of brokers on every listener",
    "millbeck.topic.policy.name.pattern": "Kafka comes without a policy",
    "millbeck.topic.policy.partitions.max": "see above",
    "millbeck.topic.policy.partitions.min": "see above",
    "millbeck.topic.policy.replication.factor.min": "see above",
    "confluent.key.schema.validation": "Kafka has no schemas; Confluent's server has this option",
    "confluent.key.subject.name.strategy": "see above",
    "confluent.value.schema.validation": "see above",
    "confluent.value.subject.name.strategy": "see above",
    "millbeck.schemas.topic": "see above",
    "millbeck.plain.verify": "Kafka has passwords of PLAIN in its JAAS configuration only",
}
DYNAMIC_ONLY = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""Kafka knows these too, but not from a file."""
LATER_THAN_4_3 = tuple(f"group.{kind}.assignor.offload.enable" for kind in ("consumer", "share", "streams"))
"""4.3.1 has their names and does not declare them yet."""
DEAD_LETTERS = (
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.name.prefix",
)
"""KIP-1191, which 4.3.1 has begun and not declared."""
OTHER_DEFAULTS = {
    "node.id": "Kafka wants it set; a node that is alone needs no number",
    "process.roles": "Kafka wants it set; a node that is alone has both",
    "controller.listener.names": "Kafka wants it set; a node that is alone has no use for it",
}
OTHER_UPDATES = {
    "ssl.principal.mapping.rules": "they are renewed as certificates are",
    "group.consumer.assignment.interval.ms": "takes effect with the consumer protocol",
    "group.share.assignment.interval.ms": "takes effect with share groups",
    "group.streams.assignment.interval.ms": "takes effect with streams groups",
    "group.coordinator.cached.buffer.max.bytes": "there is no such buffer",
}
OTHER_RANGES = {
    "offsets.topic.compression.codec": "Kafka finds out when it starts",
    "internal.segment.bytes": "Kafka's tests may have segments of nothing",
    "max.connections.per.ip.overrides": "Kafka finds out when it starts",
}


def declared_as(fact: Fact) -> Option[Any]:
    declared = SETS[fact.scope].by_name.get(fact.name)
    assert declared is not None, f"{fact.name} is not declared"
    return declared


@pytest.mark.parametrize("fact", FACTS, ids=IDS)
def test_an_option_is_what_kafka_says(fact: Fact) -> None:
    declared = declared_as(fact)
    assert declared.kind.name == fact.kind
    assert declared.internal == (fact.internal == "internal")
    if fact.name not in OTHER_DEFAULTS:
        default = declared.default
        text = "required" if default is REQUIRED else "null" if default is None else declared.kind.text(default)
        assert text == fact.default
    if fact.scope == "broker":
        assert declared.importance.value == fact.importance
        if fact.name not in OTHER_UPDATES:
            assert declared.update.value == fact.update


RANGE = re.compile(r"\[(?P<least>[-.0-9]+),\.\.\.(,(?P<most>[-.0-9]+))?\](?P<rest> or -1)?")
NUMBERS = [fact for fact in FACTS if fact.kind in ("int", "long", "short", "double")]


@pytest.mark.parametrize("fact", [fact for fact in NUMBERS if fact.range != "-"], ids=lambda fact: fact.name)
def test_a_number_has_kafkas_range(fact: Fact) -> None:
    declared = declared_as(fact)
    bounds = RANGE.fullmatch(fact.range)
    assert bounds is not None
    step = 0.001 if fact.kind == "double" else 1
    number = float if fact.kind == "double" else int
    least = number(bounds["least"])
    assert declared.parse(str(least)) == least
    with pytest.raises(InvalidConfig, match=re.escape(fact.name)):
        declared.parse(str(least - step))
    if bounds["most"] is not None:
        most = number(bounds["most"])
        assert declared.parse(str(most)) == most
        with pytest.raises(InvalidConfig):
            declared.parse(str(most + step))
    if bounds["rest"]:
        assert declared.parse("-1") == -1


def test_a_number_without_a_range_takes_any() -> None:
    for fact in NUMBERS:
        takes_any = fact.range == "-" and fact.name not in OTHER_RANGES
        assert (declared_as(fact).valid is None) == takes_any, fact.name


CHOICES = [fact for fact in FACTS if fact.range.startswith("[") and "..." not in fact.range and ":" not in fact.range]


@pytest.mark.parametrize("fact", CHOICES, ids=lambda fact: fact.name)
def test_a_choice_is_kafkas(fact: Fact) -> None:
    declared = declared_as(fact)
    choices = fact.range.strip("[]").split(", ")
    for choice in choices:
        assert declared.parse(choice) in (choice, (choice,))
    with pytest.raises(InvalidConfig):
        declared.parse("something else")


def test_nothing_is_declared_that_kafka_does_not_know() -> None:
    known = {(fact.scope, fact.name) for fact in FACTS}
    more = [
        declared.name for scope, options in SETS.items() for declared in options if (scope, declared.name) not in known
    ]
    assert sorted(more) == sorted([*OURS, *DYNAMIC_ONLY, *LATER_THAN_4_3, *DEAD_LETTERS])


def test_exceptions_are_exceptions() -> None:
    by_name = {fact.name: fact for fact in FACTS if fact.scope == "broker"}
    for name in OTHER_DEFAULTS:
        assert by_name[name].default == "REQUIRED"
    for name in OTHER_UPDATES:
        assert BROKER_OPTIONS[name].update.value != by_name[name].update
    for name in OTHER_RANGES:
        assert (BROKER_OPTIONS if name in BROKER_OPTIONS else TOPIC_OPTIONS)[name].valid is not None


def test_docs_are_sentences_that_say_which_options_wait_for_a_release() -> None:
    for options in SETS.values():
        for declared in options:
            assert declared.doc[0].isupper() or declared.doc.startswith("SO_"), declared.name
            assert declared.doc.endswith("."), declared.name
    idle = [declared.name for declared in GROUP_OPTIONS if "Takes effect with" in declared.doc]
    assert not [name for name in idle if name.startswith("share.")], "share groups are here"


def test_dynamic_only_rates_are_for_the_whole_cluster() -> None:
    assert {BROKER_OPTIONS[name].update for name in DYNAMIC_ONLY} == {Update.CLUSTER_WIDE}
