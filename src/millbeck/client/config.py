"""Client settings under Kafka's names: those common to all clients, and how they are parsed.

Each type of client has a section that extends `ClientConfig`. A key that the section does not declare is an error that
suggests the nearest one. A setting of another kind of client is only a warning, because producers and consumers share
configurations. A setting that only other libraries support is an error (`foreign_keys`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, Self

from millbeck.client.addresses import parse_addresses
from millbeck.client.oauth.options import ClientOauthOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import ConfigLayers
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    REQUIRED,
    STRING,
    Importance,
    Scope,
    at_least,
    one_of,
    option,
)

log = logging.getLogger(__name__)

Value = str | int | float | bool | Iterable[str] | None

CLIENT: Final = Scope.CLIENT
MINUTE_MS: Final = 60_000


class ClientConfig(ClientOauthOptions):
    """Settings common to all clients."""

    bootstrap_servers = option(
        "bootstrap.servers",
        LIST,
        REQUIRED,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The brokers for the first connection, as host:port separated by commas; any of them "
        "returns the list of all brokers.",
    )
    client_id = option(
        "client.id", STRING, "millbeck", scope=CLIENT, doc="The name of this client in a broker's logs and quotas."
    )
    client_rack = option(
        "client.rack", STRING, "", scope=CLIENT, doc="The rack of this client, for fetching from a nearby replica."
    )
    metadata_max_age_ms = option(
        "metadata.max.age.ms",
        LONG,
        5 * MINUTE_MS,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum age of metadata; it is refreshed after this time even without known changes.",
    )
    request_timeout_ms = option(
        "request.timeout.ms",
        INT,
        30_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The maximum time for a response; after it the request fails and its connection is closed.",
    )
    default_api_timeout_ms = option(
        "default.api.timeout.ms",
        INT,
        MINUTE_MS,
        valid=at_least(1),
        scope=CLIENT,
        doc="The timeout, including retries, of calls without an explicit timeout.",
    )
    retries = option(
        "retries",
        INT,
        2_147_483_647,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum number of retries of a failed request. With the default, a timeout "
        "(default.api.timeout.ms, or delivery.timeout.ms for records) ends the retries first.",
    )
    retry_backoff_ms = option(
        "retry.backoff.ms",
        LONG,
        100,
        valid=at_least(0),
        scope=CLIENT,
        doc="The backoff before the first retry; it doubles with each further retry.",
    )
    retry_backoff_max_ms = option(
        "retry.backoff.max.ms",
        LONG,
        1000,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum backoff between two retries.",
    )
    reconnect_backoff_ms = option(
        "reconnect.backoff.ms",
        LONG,
        50,
        valid=at_least(0),
        scope=CLIENT,
        doc="The backoff before reconnecting to a broker that was unreachable.",
    )
    reconnect_backoff_max_ms = option(
        "reconnect.backoff.max.ms",
        LONG,
        1000,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum backoff between two attempts to connect to a broker.",
    )
    connect_timeout_ms = option(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The timeout of connecting to a broker, including the TLS handshake and ApiVersions.",
    )
    connect_timeout_max_ms = option(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The maximum timeout of connecting, which doubles with each consecutive failure.",
    )
    metadata_recovery_strategy = option(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        valid=one_of("none", "rebootstrap"),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="rebootstrap: when none of the known brokers answers, or a broker requires it, the "
        "client starts again from bootstrap.servers; none: it keeps the known brokers.",
    )
    metadata_recovery_trigger_ms = option(
        "metadata.recovery.rebootstrap.trigger.ms",
        LONG,
        5 * MINUTE_MS,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The time without metadata from any known broker after which the client starts again "
        "from bootstrap.servers.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms",
        LONG,
        9 * MINUTE_MS,
        valid=at_least(-1),
        scope=CLIENT,
        doc="Idle connections are closed after this time; -1: never.",
    )
    metrics_num_samples = option(
        "metrics.num.samples",
        INT,
        2,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The number of samples that rates, averages and maxima of metrics are computed from.",
    )
    metrics_sample_window_ms = option(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The length of a sample of metrics.",
    )
    metric_reporters = option(
        "metric.reporters",
        LIST,
        (),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Metrics reporters: entry points in the group millbeck.metric_reporters, or module:class. "
        "The name of Kafka's JmxReporter has no effect.",
    )
    enable_metrics_push = option(
        "enable.metrics.push",
        BOOLEAN,
        True,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether metrics are pushed to brokers that ask for them (KIP-714).",
    )
    security_protocol = option(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        scope=CLIENT,
        doc="The protocol of connections. SSL and SASL_SSL encrypt and verify the broker's "
        "certificate; SASL_PLAINTEXT and SASL_SSL authenticate with sasl.mechanism.",
    )
    sasl_mechanism = option(
        "sasl.mechanism",
        STRING,
        None,
        scope=CLIENT,
        doc="The SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI. GSSAPI, Kafka's default, "
        "is the default only with sasl.kerberos.service.name or Krb5LoginModule in sasl.jaas.config.",
    )
    sasl_mechanisms = option("sasl.mechanisms", STRING, None, scope=CLIENT, doc="librdkafka's name for sasl.mechanism.")
    sasl_username = option("sasl.username", STRING, None, scope=CLIENT, doc="The user name for PLAIN and SCRAM.")
    sasl_password = option("sasl.password", PASSWORD, None, scope=CLIENT, doc="The password of sasl.username.")
    sasl_jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        scope=CLIENT,
        doc="A login module with its options, as in Kafka's clients, instead of sasl.username and sasl.password. It is "
        'only parsed; no class is loaded. tokenauth="true" of ScramLoginModule logs in with a delegation token.',
    )
    sasl_kerberos_service_name = option(
        "sasl.kerberos.service.name",
        STRING,
        None,
        scope=CLIENT,
        doc="The first part of the brokers' Kerberos principals; default: kafka.",
    )
    sasl_kerberos_principal = option(
        "sasl.kerberos.principal",
        STRING,
        None,
        scope=CLIENT,
        doc="librdkafka's name for the principal in sasl.jaas.config: this client's Kerberos principal.",
    )
    sasl_kerberos_keytab = option(
        "sasl.kerberos.keytab",
        STRING,
        None,
        scope=CLIENT,
        doc="librdkafka's name for the keytab in sasl.jaas.config; without one the ticket cache is used.",
    )

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        """Parse settings into typed values; raises `InvalidConfig` naming the setting."""
        texts = {name: text for name, value in settings.items() if (text := text_of(name, value)) is not None}
        declared = {known.name for known in cls.options}
        for name in [name for name in texts if name not in declared]:
            text = texts.pop(name)
            meant = _meaning_of(cls, name, text, sorted(declared))
            if meant is not None and texts.setdefault(meant, text) != text:
                raise InvalidConfig(f"{name} and {meant} are names of the same setting, but have different values")
        section = cls.resolve(ConfigLayers(static=texts))
        parse_addresses(section.bootstrap_servers)
        section.check()
        return section

    def check(self) -> None:
        """Raise `InvalidConfig` for settings that are inconsistent with each other."""


def text_of(name: str, value: Value) -> str | None:
    """Convert a Python value (number, boolean, list) to text; None means not set."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    entries = list(value)
    if not all(isinstance(entry, str) for entry in entries):
        raise InvalidConfig(f"Invalid value for configuration {name}: a list must hold strings")
    return ",".join(entries)


def _meaning_of(section: type[ClientConfig], name: str, text: str, declared: list[str]) -> str | None:
    """The setting for an undeclared name, such as an alias; None if it has no effect here. Raises `InvalidConfig`."""
    from difflib import get_close_matches

    from millbeck.client.foreign_keys import ASKS_FOR_NOTHING, LIBRDKAFKA_SYNONYMS, is_known_elsewhere, reason_of

    synonym = LIBRDKAFKA_SYNONYMS.get(name)
    if synonym in declared:
        return synonym
    if text in ASKS_FOR_NOTHING.get(name, ()):
        return None
    if (synonym or name) in _all_names():
        # Programs often use the same dictionary of settings for producers and consumers.
        log.warning("configuration %s has no effect on this client, a %s", name, _kind_of(section))
        return None
    if is_known_elsewhere(name):
        raise InvalidConfig(f"{name}={text[:100]} is not available here: {reason_of(name)}")
    nearest = get_close_matches(name, declared, n=1, cutoff=0.5)
    hint = f", did you mean {nearest[0]}?" if nearest else ""
    raise InvalidConfig(f"Unknown configuration {name[:100]}{hint}")


def _all_names() -> set[str]:
    """The settings of all kinds of clients."""
    from millbeck.client.consumer.config import ConsumerConfig
    from millbeck.client.producer.config import ProducerConfig
    from millbeck.client.share.config import ShareConsumerConfig

    sections: tuple[type[ClientConfig], ...] = (ProducerConfig, ConsumerConfig, ShareConsumerConfig)
    return {known.name for section in sections for known in section.options}


def _kind_of(section: type[ClientConfig]) -> str:
    words = section.__name__.removesuffix("Config") or "client"
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in words).strip()
