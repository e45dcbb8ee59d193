"""The settings of a registry instance, under the keys of Confluent's schema-registry.properties.

``SCHEMA_REGISTRY_KAFKASTORE_TOPIC`` in the environment is ``kafkastore.topic``, as in Confluent's images. A key
``kafkastore.X`` that is not declared here is the client setting X: ``kafkastore.security.protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from millbeck.client.config import Value
from millbeck.client.tls_options import ClientTlsOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import ConfigLayers
from millbeck.kernel.options import BOOLEAN, INT, LIST, STRING, Scope, Section, at_least, each_of, one_of, option
from millbeck.registry.election import ElectionSettings
from millbeck.registry.instance import InstanceSettings
from millbeck.registry.settings import LEVELS

NONE: Final = "NONE"
BASIC: Final = "BASIC"
BEARER: Final = "BEARER"
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
        doc="The listener of the registry, as http://host:port or https://host:port; only one is supported. Without "
        "authentication, use addresses other than loopback only in a trusted network.",
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

    authentication_method = option(
        "authentication.method",
        LIST,
        (),
        valid=each_of(NONE, BASIC, BEARER),
        scope=CLIENT,
        doc="How clients authenticate, besides by certificate: BASIC, BEARER, both, or NONE. Users, passwords, tokens "
        "and roles are in millbeck.users.file.",
    )
    authentication_realm = option(
        "authentication.realm",
        STRING,
        "SchemaRegistry",
        scope=CLIENT,
        doc="The realm that clients without credentials are told.",
    )
    users_file = option(
        "millbeck.users.file",
        STRING,
        None,
        scope=CLIENT,
        doc="A TOML file with users and their roles; it is read again when it has changed. Without it, everybody may "
        "do everything.",
    )
    roles_from_acls = option(
        "millbeck.roles.from.acls",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Whether users have roles by the ACLs of the log, beside those in millbeck.users.file: READ on a topic is "
        "read for its subjects, WRITE is write, ALTER is admin. The registry needs DESCRIBE on the cluster.",
    )
    requests_per_second_max = option(
        "millbeck.requests.per.second.max",
        INT,
        0,
        valid=at_least(0),
        scope=CLIENT,
        doc="The number of requests per second that each user, or each address without a user, may send; more are "
        "answered with 429. 0 means no limit.",
    )
    ssl_client_authentication = option(
        "ssl.client.authentication",
        STRING,
        "NONE",
        valid=one_of("NONE", "REQUESTED", "REQUIRED"),
        scope=CLIENT,
        doc="Whether an https listener asks for certificates of clients: NONE, REQUESTED or REQUIRED.",
    )
    ssl_principal_mapping_rules = option(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        scope=CLIENT,
        doc="How the subject of a client's certificate becomes the name of a user, as on brokers.",
    )
    inter_instance_protocol = option(
        "inter.instance.protocol",
        STRING,
        None,
        valid=one_of("http", "https"),
        scope=CLIENT,
        doc="The protocol between instances, which is that of the listener; another one is refused.",
    )

    @property
    def scheme(self) -> str:
        return urlsplit(self.listeners[0]).scheme

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
        if found.scheme not in ("http", "https") or port is None:
            raise InvalidConfig(f"listeners: {self.listeners[0]} is not http://host:port or https://host:port")
        if self.inter_instance_protocol not in (None, found.scheme):
            raise InvalidConfig(
                f"inter.instance.protocol is {self.inter_instance_protocol}, and the listener is {self.listeners[0]}; "
                "instances reach each other by the listener"
            )
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


class Parsed(NamedTuple):
    """The configuration of an instance."""

    config: RegistryConfig
    client: dict[str, Value]
    """The settings of its Kafka clients."""
    tls: ClientTlsOptions
    """The keys and certificates of its listener, and of its connections to other instances."""
    unknown: list[str]
    """The keys that have no effect."""


def parse(settings: Mapping[str, str]) -> Parsed:
    """Parse settings; raises `InvalidConfig`."""
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
    of_tls = {each.name for each in ClientTlsOptions.options}
    tls = ClientTlsOptions.resolve(ConfigLayers(static={name: texts[name] for name in texts if name in of_tls}))
    known = declared | of_tls
    unknown = [name for name in texts if name not in known and not name.startswith(STORE_PREFIX)]
    return Parsed(config, client, tls, unknown)


def access_settings(config: RegistryConfig) -> tuple[str, ...]:
    """The methods of authentication; raises `InvalidConfig` if the settings do not fit together."""
    methods = tuple(each for each in config.authentication_method if each != NONE)
    has_certificates = config.ssl_client_authentication != "NONE"
    if methods and config.users_file is None:
        raise InvalidConfig(
            f"authentication.method is {', '.join(methods)}, but there are no users: set millbeck.users.file"
        )
    if config.roles_from_acls and not methods and not has_certificates:
        raise InvalidConfig(
            "millbeck.roles.from.acls is true, but clients cannot authenticate: set authentication.method=BASIC and "
            "millbeck.users.file, or ssl.client.authentication=REQUIRED"
        )
    if config.users_file is not None and not methods and not has_certificates:
        raise InvalidConfig(
            "millbeck.users.file is set, but clients cannot authenticate: set authentication.method=BASIC, or "
            "ssl.client.authentication=REQUIRED"
        )
    if has_certificates and config.scheme != "https":
        raise InvalidConfig("ssl.client.authentication needs a listener with https")
    return methods


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
