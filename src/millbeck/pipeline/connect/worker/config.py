"""The settings of a worker, under the keys of Kafka Connect's worker properties.

``CONNECT_GROUP_ID`` in the environment is ``group.id``, as in the common images. A key that is no setting of the worker
but one of a client is the setting of all its clients; ``producer.X`` and ``consumer.X`` are those of connectors' tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from millbeck.client.config import ClientConfig
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.producer.config import ProducerConfig
from millbeck.kernel.config_providers import CONFIG_PROVIDERS
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import ConfigLayers
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Scope,
    Section,
    at_least,
    one_of,
    option,
)
from millbeck.pipeline.connect.config.validation import CONVERTERS, DEFAULT_CONVERTERS

ENVIRONMENT_PREFIX: Final = "CONNECT_"
CLIENT: Final = Scope.CLIENT
_CLIENT_PREFIXES: Final = ("producer.", "consumer.", "admin.")


class WorkerConfig(Section):
    """Settings of a Connect worker."""

    bootstrap_servers = option(
        "bootstrap.servers", LIST, ("127.0.0.1:9092",), scope=CLIENT, doc="The brokers that the worker works for."
    )
    group_id = option(
        "group.id",
        STRING,
        "connect-cluster",
        scope=CLIENT,
        doc="The group of the workers; transactional ids of tasks begin with it.",
    )
    config_topic = option(
        "config.storage.topic", STRING, "connect-configs", scope=CLIENT, doc="The topic of connectors' configurations."
    )
    config_replication = option(
        "config.storage.replication.factor",
        INT,
        3,
        valid=at_least(-1),
        scope=CLIENT,
        doc="The replicas of that topic when it is made; one when there are fewer brokers.",
    )
    offset_topic = option(
        "offset.storage.topic", STRING, "connect-offsets", scope=CLIENT, doc="The topic of sources' offsets."
    )
    offset_replication = option(
        "offset.storage.replication.factor",
        INT,
        3,
        valid=at_least(-1),
        scope=CLIENT,
        doc="The replicas of that topic when it is made; one when there are fewer brokers.",
    )
    offset_partitions = option(
        "offset.storage.partitions",
        INT,
        25,
        valid=at_least(-1),
        scope=CLIENT,
        doc="The partitions of that topic when it is made.",
    )
    status_topic = option(
        "status.storage.topic", STRING, "connect-status", scope=CLIENT, doc="The topic of connectors' status."
    )
    status_replication = option(
        "status.storage.replication.factor",
        INT,
        3,
        valid=at_least(-1),
        scope=CLIENT,
        doc="The replicas of that topic when it is made; one when there are fewer brokers.",
    )
    status_partitions = option(
        "status.storage.partitions",
        INT,
        5,
        valid=at_least(-1),
        scope=CLIENT,
        doc="The partitions of that topic when it is made.",
    )
    listeners = option(
        "listeners",
        LIST,
        ("http://127.0.0.1:8083",),
        scope=CLIENT,
        doc="The address of the REST interface, as http://host:port; only one is supported. It has no authentication:"
        " use addresses other than loopback only in a trusted network.",
    )
    advertised_host = option(
        "rest.advertised.host.name",
        STRING,
        "",
        scope=CLIENT,
        doc="The host by which other workers and users reach this one; that of the listener by default.",
    )
    advertised_port = option(
        "rest.advertised.port", INT, 0, valid=at_least(0), scope=CLIENT, doc="The port to go with it."
    )
    exactly_once_sources = option(
        "exactly.once.source.support",
        STRING,
        "enabled",
        valid=one_of("disabled", "preparing", "enabled"),
        scope=CLIENT,
        doc="Whether a source's records and offsets are one transaction. Unlike in Kafka Connect, enabled is the"
        " default; with disabled and preparing, sources are at least once.",
    )
    creates_topics = option(
        "topic.creation.enable",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Whether topics of sources are made with the settings topic.creation.* of connectors.",
    )
    shutdown_timeout_ms = option(
        "task.shutdown.graceful.timeout.ms",
        LONG,
        5_000,
        valid=at_least(0),
        scope=CLIENT,
        doc="For how long shares under way are waited for when a connector stops; then they are given up.",
    )
    scheduled_rebalance_max_delay_ms = option(
        "scheduled.rebalance.max.delay.ms",
        INT,
        300_000,
        valid=at_least(0),
        scope=CLIENT,
        doc="For how long the connectors of a worker that is gone wait for it to come back.",
    )
    session_timeout_ms = option(
        "session.timeout.ms",
        INT,
        10_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="A worker without heartbeats for this long is gone.",
    )
    heartbeat_interval_ms = option(
        "heartbeat.interval.ms", INT, 3_000, valid=at_least(1), scope=CLIENT, doc="The interval of heartbeats."
    )
    rebalance_timeout_ms = option(
        "rebalance.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The time for workers to rejoin when the group rebalances.",
    )
    turn_interval_ms = option(
        "millbeck.turn.interval.ms",
        INT,
        500,
        valid=at_least(10),
        scope=CLIENT,
        doc="How often the ends of sinks' partitions are looked at, and for how long small shares of different"
        " connectors are gathered into one Spark job.",
    )
    workers_max = option(
        "millbeck.workers.max",
        INT,
        0,
        valid=at_least(0),
        scope=CLIENT,
        doc="How many Python processes Spark may run for tasks at the same time; 0 is two for each core. It is the"
        " number in local[N], so it has no effect with another millbeck.spark.master.",
    )
    spark_master = option(
        "millbeck.spark.master",
        STRING,
        "",
        scope=CLIENT,
        doc="The Spark master that runs tasks; by default local, with millbeck.workers.max processes.",
    )
    spark_memory = option(
        "millbeck.spark.driver.memory", STRING, "1g", scope=CLIENT, doc="The heap of the worker's Java process."
    )
    restart_policy = option(
        "millbeck.restart.policy",
        STRING,
        "backoff",
        valid=one_of("backoff", "none"),
        scope=CLIENT,
        doc="backoff: what fails for a reason that may go away is tried again with growing waits. none: a failed task"
        " waits for a restart by hand, as in Kafka Connect.",
    )
    restart_delay_max_ms = option(
        "millbeck.restart.delay.max.ms",
        LONG,
        60_000,
        valid=at_least(100),
        scope=CLIENT,
        doc="The longest wait between two attempts.",
    )
    topic_refresh_ms = option(
        "millbeck.topics.refresh.interval.ms",
        LONG,
        30_000,
        valid=at_least(100),
        scope=CLIENT,
        doc="How often topics and partitions of sinks are looked for.",
    )

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to listen on. Raises `InvalidConfig`."""
        if len(self.listeners) != 1:
            raise InvalidConfig("listeners must name one address, such as http://127.0.0.1:8083")
        text = self.listeners[0]
        found = urlsplit(text if "//" in text else f"http://{text}")
        try:
            port = found.port
        except ValueError:
            port = None
        if found.scheme.lower() != "http" or port is None:
            raise InvalidConfig(f"listeners: {text} is not http://host:port")
        return found.hostname or "", port


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A worker's configuration."""

    config: WorkerConfig
    client: Mapping[str, str]
    """Settings of all clients of the log."""
    producer: Mapping[str, str]
    consumer: Mapping[str, str]
    converters: Mapping[str, str]
    """``key.converter``, ``key.converter.schemas.enable`` and so on."""
    providers: Mapping[str, str]
    """``config.providers`` and what belongs to them, for variables in connectors."""
    spark: Mapping[str, str]
    """Settings of the Spark session: ``spark.*``."""
    unknown: tuple[str, ...] = ()
    """Keys that have no effect."""

    @property
    def default_converters(self) -> dict[str, str]:
        """The classes of the worker's converters."""
        return {name: self.converters.get(name, default) for name, default in DEFAULT_CONVERTERS.items()}


_WITHOUT_EFFECT: Final = (
    "plugin.path",
    "plugin.discovery",
    "offset.storage.file.filename",
    "offset.flush.interval.ms",
    "offset.flush.timeout.ms",
    "connector.client.config.override.policy",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
    "internal.key.converter",
    "internal.value.converter",
    "access.control.allow.origin",
    "access.control.allow.methods",
    "admin.listeners",
    "connect.protocol",
)
"""Keys of Kafka Connect's samples that need no warning: there is nothing that they could change here."""


def parse(settings: Mapping[str, str]) -> Parsed:
    """Parse a worker's settings. Raises `InvalidConfig`."""
    declared = {each.name for each in WorkerConfig.options}
    config = WorkerConfig.resolve(
        ConfigLayers(static={name: text for name, text in settings.items() if name in declared})
    )
    of_clients = {each.name for section in (ClientConfig, ConsumerConfig, ProducerConfig) for each in section.options}
    client = {name: text for name, text in settings.items() if name in {each.name for each in ClientConfig.options}}
    client["bootstrap.servers"] = ",".join(server.rpartition("://")[2] for server in config.bootstrap_servers)
    converters = {name: text for name, text in settings.items() if name.startswith(tuple(CONVERTERS))}
    providers = {name: text for name, text in settings.items() if name.startswith(CONFIG_PROVIDERS)}
    parts = {
        prefix: {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
        for prefix in _CLIENT_PREFIXES
    }
    spark = {name: text for name, text in settings.items() if name.startswith("spark.")}
    known = {*declared, *of_clients, *converters, *providers, *spark, *_WITHOUT_EFFECT}
    unknown = tuple(name for name in settings if name not in known and not name.startswith(_CLIENT_PREFIXES))
    ProducerConfig.parse({**client, **parts["producer."]})
    ConsumerConfig.parse({**client, **parts["consumer."]})
    return Parsed(
        config=config,
        client=client,
        producer=parts["producer."],
        consumer=parts["consumer."],
        converters=converters,
        providers=providers,
        spark=spark,
        unknown=unknown,
    )


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in variables CONNECT_…: _ is a dot, __ an underscore, ___ a dash. CONNECT_URL and CONNECT_USER are
    those of commands."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name.startswith(ENVIRONMENT_PREFIX) and name not in ("CONNECT_URL", "CONNECT_USER"):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
            found[
                key.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            ] = value
    return found
