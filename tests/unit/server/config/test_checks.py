"""Settings that are refused although each value alone is allowed."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import ApiError, InvalidConfig, InvalidRequest
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.server.config import GROUP_OPTIONS
from millbeck.server.config.checks import ConfigChecks

TOPIC = ConfigResource(ResourceType.TOPIC, "t")
OFFSETS = ConfigResource(ResourceType.TOPIC, "__consumer_offsets")
BROKER = ConfigResource(ResourceType.BROKER, "1")
GROUP = ConfigResource(ResourceType.GROUP, "g")

REFUSED: dict[str, tuple[ConfigResource, dict[str, str], type[ApiError], str]] = {
    "the remote tier": (TOPIC, {"remote.storage.enable": "true"}, InvalidConfig, "remote.storage.enable"),
    "no copies to it": (TOPIC, {"remote.log.copy.disable": " TRUE "}, InvalidConfig, "remote.log.copy.disable"),
    "deletion from it": (
        TOPIC,
        {"remote.log.delete.on.disable": "true"},
        InvalidConfig,
        "remote.log.delete.on.disable",
    ),
    "it, on an internal topic": (OFFSETS, {"remote.storage.enable": "true"}, InvalidConfig, "remote.storage.enable"),
    "lags upside down": (
        TOPIC,
        {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
        InvalidConfig,
        "min.compaction.lag.ms",
    ),
    "nobody to compact": (BROKER, {"log.cleaner.threads": "0"}, InvalidRequest, "log.cleaner.threads"),
    "other listeners": (BROKER, {"listeners": "PLAINTEXT://:1"}, InvalidRequest, "listeners"),
    "other protocols": (
        BROKER,
        {"listener.security.protocol.map": "A:SSL"},
        InvalidRequest,
        "listener.security.protocol.map",
    ),
    "a certificate for all": (
        BROKER,
        {"ssl.keystore.location": "/x.pem"},
        InvalidRequest,
        "listener.name.<listener>.ssl.keystore.location",
    ),
    "other clients to trust": (
        BROKER,
        {"listener.name.out.ssl.allow.dn.changes": "true"},
        InvalidRequest,
        "cannot be changed dynamically",
    ),
    "mapping rules that cannot be read": (
        BROKER,
        {"listener.name.out.ssl.principal.mapping.rules": "RULE:(/x/"},
        InvalidRequest,
        "ssl.principal.mapping.rules",
    ),
    "an unknown key store": (
        BROKER,
        {"listener.name.out.ssl.keystore.type": "BKS"},
        InvalidRequest,
        "ssl.keystore.type",
    ),
    "nobody may connect": (BROKER, {"max.connections.per.ip": "0"}, InvalidRequest, "max.connections.per.ip.overrides"),
    "no retention": (BROKER, {"log.retention.ms": "0"}, InvalidRequest, "log.retention.ms"),
    "a variable": (
        BROKER,
        {"listener.name.x.plain.sasl.jaas.config": "${file:/etc/passwd:root}"},
        InvalidRequest,
        "variables of config providers are replaced in properties files only",
    ),
    "providers": (BROKER, {"config.providers": "file"}, InvalidRequest, "config.providers"),
}
ACCEPTED: dict[str, tuple[ConfigResource, dict[str, str]]] = {
    "nothing": (TOPIC, {}),
    "deletion": (TOPIC, {"cleanup.policy": "delete"}),
    "neither": (TOPIC, {"cleanup.policy": ""}),
    "compaction": (TOPIC, {"cleanup.policy": "compact"}),
    "compaction and deletion": (TOPIC, {"cleanup.policy": "delete,compact"}),
    "compaction of internal topics": (OFFSETS, {"cleanup.policy": "compact"}),
    "compaction for all": (BROKER, {"log.cleanup.policy": "compact"}),
    "no remote tier": (TOPIC, {"remote.storage.enable": "false", "remote.log.copy.disable": "false"}),
    "local retention": (TOPIC, {"local.retention.ms": "5", "local.retention.bytes": "5"}),
    "more replicas than there are": (TOPIC, {"min.insync.replicas": "2"}),
    "a new certificate": (BROKER, {"listener.name.out.ssl.keystore.location": "/x.pem"}),
    "other trusted certificates": (BROKER, {"listener.name.out.ssl.truststore.location": "/x.pem"}),
    "other mapping rules": (
        BROKER,
        {"listener.name.out.ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT"},
    ),
    "threads": (BROKER, {"num.io.threads": "3", "log.cleaner.threads": "2"}),
    "a throttle": (BROKER, {"leader.replication.throttled.rate": "1000"}),
    "anything of a group": (GROUP, {"consumer.session.timeout.ms": "45000"}),
    "a plugin's own": (BROKER, {"my.plugin.setting": "1"}),
}


@pytest.mark.parametrize(("resource", "options", "error", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_name(resource: ConfigResource, options: dict[str, str], error: type[ApiError], named: str) -> None:
    with pytest.raises(error) as caught:
        ConfigChecks({}).check(resource, options, options)
    assert named in caught.value.message


@pytest.mark.parametrize(("resource", "options"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(resource: ConfigResource, options: dict[str, str]) -> None:
    assert ConfigChecks({}).check(resource, options, options) is None  # type: ignore[func-returns-value]


def test_what_is_stored_already_does_not_stand_in_the_way_of_others() -> None:
    """As in the metadata of a cluster that an older Kafka began."""
    stored = {"log.message.format.version": "2.8", "remote.log.copy.disable": "true", "num.io.threads": "3"}
    ConfigChecks({}).check(BROKER, stored, ["num.io.threads"])
    ConfigChecks({}).check(BROKER, {"num.io.threads": "3"}, ["log.message.format.version"])
    ConfigChecks({}).check(TOPIC, {"remote.log.copy.disable": "true", "retention.ms": "5"}, ["retention.ms"])


OUT_OF_BOUNDS = {
    "consumer.session.timeout.ms": ("44999", "60001"),
    "consumer.heartbeat.interval.ms": ("4999", "15001"),
    "consumer.assignment.interval.ms": (None, "15001"),
    "share.session.timeout.ms": ("44999", "60001"),
    "share.heartbeat.interval.ms": ("4999", "15001"),
    "share.assignment.interval.ms": (None, "15001"),
    "share.record.lock.duration.ms": ("14999", "60001"),
    "share.delivery.count.limit": (None, "11"),
    "share.partition.max.record.locks": (None, "4001"),
    "streams.session.timeout.ms": ("44999", "60001"),
    "streams.heartbeat.interval.ms": ("4999", "15001"),
    "streams.assignment.interval.ms": (None, "15001"),
    "streams.num.standby.replicas": (None, "3"),
}
"""As Kafka refuses them with its defaults; where the lower bound is the option's own, there is none here."""


@pytest.mark.parametrize(("name", "texts"), OUT_OF_BOUNDS.items(), ids=OUT_OF_BOUNDS.keys())
def test_a_group_stays_within_the_brokers_bounds(name: str, texts: tuple[str | None, str]) -> None:
    checks = ConfigChecks({})
    too_small, too_large = texts
    with pytest.raises(InvalidConfig, match=rf"^{name} must be less than or equal to group\.\w+\.max\."):
        checks.check(GROUP, {name: too_large}, ())
    if too_small is not None:
        with pytest.raises(InvalidConfig, match=rf"^{name} must be greater than or equal to group\.\w+\.min\."):
            checks.check(GROUP, {name: too_small}, ())


def test_every_default_of_a_group_is_within_the_brokers_bounds() -> None:
    checks = ConfigChecks({})
    for declared in GROUP_OPTIONS:
        assert declared.default_text is not None
        checks.check(GROUP, {declared.name: declared.default_text}, ())


def test_bounds_are_the_servers() -> None:
    checks = ConfigChecks({"group.consumer.min.session.timeout.ms": "1000"})
    checks.check(GROUP, {"consumer.session.timeout.ms": "1000"}, ())
    with pytest.raises(InvalidConfig):
        checks.check(GROUP, {"consumer.session.timeout.ms": "999"}, ())


def test_dynamic_settings_agree_with_the_servers_file() -> None:
    dynamic = {"max.connections.per.ip": "0"}
    ConfigChecks({"max.connections.per.ip.overrides": "127.0.0.1:5"}).check(BROKER, dynamic, dynamic)
    with pytest.raises(InvalidRequest):
        ConfigChecks({}).check(BROKER, dynamic, dynamic)


def test_only_groups_have_a_groups_bounds() -> None:
    ConfigChecks({}).check(TOPIC, {"consumer.session.timeout.ms": "1"}, ())
    with pytest.raises(InvalidConfig):
        ConfigChecks({}).check(GROUP, {"consumer.session.timeout.ms": "1"}, ())
