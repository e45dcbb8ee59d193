"""The settings of a registry instance, under the keys of Confluent's schema-registry.properties.

``SCHEMA_REGISTRY_KAFKASTORE_TOPIC`` in the environment is ``kafkastore.topic``, as in Confluent's images. A key
``kafkastore.X`` that is not declared here is the client setting X: ``kafkastore.security.protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from millbeck.client.config import Value
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import ConfigLayers
from millbeck.kernel.options import BOOLEAN, INT, LIST, STRING, Scope, Section, at_least, one_of, option
from millbeck.registry.election import ElectionSettings
from millbeck.registry.instance import InstanceSettings
from millbeck.registry.settings import LEVELS

ENVIRONMENT_PREFIX: Final = "SCHEMA_REGISTRY_"
STORE_PREFIX: Final = "kafkastore."
CLIENT: Final = Scope.CLIENT


class RegistryConfig(Section):
    """Settings of a registry instance."""

    listeners = option(
        "listeners",
        LIST,
        ("http://127.0.0.1:8081",),
        scope=CLIENT,
        doc="The listener of the registry, as http://host:port; only one is supported. There is no "
        "authentication: use addresses other than loopback only in a trusted network.",
    )
    host_name = option(
        "host.name",
        STRING,
        "",
        scope=CLIENT,
        doc="The host name by which other instances reach this one; default: the "
        "host of the listener, or this host's name if that is every interface.",
    )
    bootstrap_servers = option(
        "kafkastore.bootstrap.servers",
        LIST,
        ("127.0.0.1:9092",),
        scope=CLIENT,
        doc="The brokers that have the topic, as host:port or PLAINTEXT://host:port.",
    )
    topic = option("kafkastore.topic", STRING, "_schemas", scope=CLIENT, doc="The topic that stores the schemas.")
    replication_factor = option(
        "kafkastore.topic.replication.factor",
        INT,
        3,
        valid=at_least(1),
        scope=CLIENT,
        doc="The replication factor of the topic when it is created; 1 if there are fewer brokers.",
    )
    timeout_ms = option(
        "kafkastore.timeout.ms", INT, 10_000, valid=at_least(100), scope=CLIENT, doc="The timeout of a write."
    )
    init_timeout_ms = option(
        "kafkastore.init.timeout.ms",
        INT,
        60_000,
        valid=at_least(1000),
        scope=CLIENT,
        doc="The timeout at start for reaching the brokers and for reading the topic.",
    )
    group_id = option(
        "schema.registry.group.id",
        STRING,
        "schema-registry",
        scope=CLIENT,
        doc="The group in which instances elect their leader; the same for all instances on a topic.",
    )
    session_timeout_ms = option(
        "schema.registry.group.session.timeout.ms",
        INT,
        10_000,
        valid=at_least(1000),
        scope=CLIENT,
        doc="The session timeout of instances: a leader without heartbeats for this long is replaced.",
    )
    leader_eligibility = option(
        "leader.eligibility",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Whether this instance may become the leader; if false, it forwards writes.",
    )
    compatibility_level = option(
        "schema.compatibility.level",
        STRING,
        "backward",
        valid=one_of(*LEVELS, *(level.lower() for level in LEVELS)),
        scope=CLIENT,
        doc="The default compatibility level.",
    )
    mode_mutability = option("mode.mutability", BOOLEAN, True, scope=CLIENT, doc="Whether modes can be changed.")

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to listen on."""
        if len(self.listeners) != 1:
            raise InvalidConfig("listeners must name one address, such as http://127.0.0.1:8081")
        found = urlsplit(self.listeners[0])
        try:
            port = found.port
        except ValueError:
            port = None
        if found.scheme != "http" or port is None:
            raise InvalidConfig(f"listeners: {self.listeners[0]} is not http://host:port; https is not supported")
        return found.hostname or "", port


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in the variables of Confluent's images: _ is a dot, __ an underscore, ___ a dash."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
            found[
                key.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            ] = value
    return found


def parse(settings: Mapping[str, str]) -> tuple[RegistryConfig, dict[str, Value], list[str]]:
    """The configuration, the settings of its clients, and the keys that have no effect. Raises `InvalidConfig`."""
    texts = dict(settings)
    if "master.eligibility" in texts:
        texts.setdefault("leader.eligibility", texts.pop("master.eligibility"))
    declared = {each.name for each in RegistryConfig.options}
    client: dict[str, Value] = {
        name.removeprefix(STORE_PREFIX): value
        for name, value in texts.items()
        if name.startswith(STORE_PREFIX) and name not in declared
    }
    config = RegistryConfig.resolve(ConfigLayers(static={name: texts[name] for name in texts if name in declared}))
    client["bootstrap.servers"] = [server.rpartition("://")[2] for server in config.bootstrap_servers]
    unknown = [name for name in texts if name not in declared and not name.startswith(STORE_PREFIX)]
    return config, client, unknown


def instance_settings(config: RegistryConfig, client: Mapping[str, Value]) -> InstanceSettings:
    return InstanceSettings(
        client={"client.id": "schema-registry", **client},
        topic=config.topic,
        replication_factor=config.replication_factor,
        timeout_s=config.timeout_ms / 1000,
        init_timeout_s=config.init_timeout_ms / 1000,
        compatibility=config.compatibility_level.upper(),
        has_mutable_mode=config.mode_mutability,
        election=ElectionSettings(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=max(100, config.session_timeout_ms // 3),
        ),
    )
