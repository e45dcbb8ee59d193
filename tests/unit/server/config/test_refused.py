"""Settings that this release would have to ignore are refused by name; what is merely idle is not."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.server.config import NodeConfig
from millbeck.server.config.broker_options import BROKER_OPTIONS
from millbeck.server.config.checks import ConfigChecks
from millbeck.server.config.refused import REFUSED, REFUSED_WITH_TLS, check_available, check_tls_available
from millbeck.storage.config import TOPIC_OPTIONS

NOT_AVAILABLE = {
    "config.providers": "file",
    "cordoned.log.dirs": "/data",
    "remote.log.storage.system.enable": "true",
    "remote.storage.enable": "true",
    "remote.log.copy.disable": " TRUE ",
    "remote.log.delete.on.disable": "true",
}
NOT_AVAILABLE_WITH_TLS = {
    "ssl.keystore.type": "JCEKS",
    "ssl.truststore.type": "BKS",
    "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
    "ssl.engine.factory.class": "com.example.Factory",
    "ssl.enabled.protocols": "TLSv1.1,TLSv1.2",
}
IDLE = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": "some.Module required;",
    "num.network.threads": "64",
    "num.io.threads": "64",
    "queued.max.requests": "1",
    "min.insync.replicas": "2",
    "num.replica.fetchers": "4",
    "log.cleaner.enable": "false",
    "log.cleanup.policy": "compact,delete",
    "metric.reporters": "com.example.Reporter",
    "transaction.two.phase.commit.enable": "true",
    "remote.log.storage.manager.class.name": "com.example.Tier",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "a.plugins.own": "value",
}


def test_the_tables_are_complete() -> None:
    assert list(NOT_AVAILABLE) == list(REFUSED)
    assert list(NOT_AVAILABLE_WITH_TLS) == list(REFUSED_WITH_TLS)


@pytest.mark.parametrize(("name", "text"), NOT_AVAILABLE.items(), ids=NOT_AVAILABLE.keys())
def test_what_is_not_available_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"^{name}: .*(remove it|use |write )"):
        check_available({"log.dirs": "/data", name: text})


@pytest.mark.parametrize(("name", "text"), NOT_AVAILABLE_WITH_TLS.items(), ids=NOT_AVAILABLE_WITH_TLS.keys())
def test_what_a_tls_listener_cannot_have_is_refused_by_name(name: str, text: str) -> None:
    check_available({name: text})  # idle without a TLS listener
    for key in (name, f"listener.name.outside.{name}"):
        with pytest.raises(InvalidConfig, match=f"^{key}: "):
            check_tls_available({key: text})


@pytest.mark.parametrize("name", REFUSED)
def test_the_default_written_down_is_fine(name: str) -> None:
    default = (BROKER_OPTIONS if name in BROKER_OPTIONS else TOPIC_OPTIONS)[name].default_text
    if default is not None:
        assert check_available({name: default}) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(("name", "text"), IDLE.items(), ids=IDLE.keys())
def test_what_is_idle_is_accepted(name: str, text: str) -> None:
    assert check_available({name: text}) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("kind", ["pem", "JKS", "PKCS12"])
def test_store_types_are_fine_in_any_case(kind: str) -> None:
    suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    check_tls_available({"ssl.keystore.type": kind, "ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": suites})
    with pytest.raises(InvalidConfig, match=r"ssl\.enabled\.protocols"):
        check_tls_available({"ssl.enabled.protocols": ""})


# The same for a file, for what is set while the node runs, and for topics.

BROKERS = (ConfigResource(ResourceType.BROKER, "1"), ConfigResource(ResourceType.BROKER, ""))
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.mark.parametrize(("name", "text"), NOT_AVAILABLE.items(), ids=NOT_AVAILABLE.keys())
def test_what_a_file_may_not_have_is_not_stored_either(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name}: "):
        NodeConfig({name: text})
    for resource in BROKERS:
        with pytest.raises(InvalidRequest, match=f"^{name}: "):
            ConfigChecks({}).check(resource, {name: text}, [name])
    if name in TOPIC_OPTIONS:
        with pytest.raises(InvalidConfig, match=f"^{name}: "):
            ConfigChecks({}).check(TOPIC, {name: text}, [name])


@pytest.mark.parametrize(("name", "text"), NOT_AVAILABLE_WITH_TLS.items(), ids=NOT_AVAILABLE_WITH_TLS.keys())
def test_what_a_tls_listener_cannot_have_is_not_stored_either(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name):
        NodeConfig({"listeners": "SSL://:9092", name: text})
    for key in (name, f"listener.name.ssl.{name}"):
        with pytest.raises(InvalidRequest, match=name):
            ConfigChecks({}).check(BROKERS[0], {key: text}, [key])
