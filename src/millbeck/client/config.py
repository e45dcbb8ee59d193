"""Settings of clients under Kafka's names: what every client has, and how texts become settings.

Each kind of client has a section of its own that extends `ClientConfig`. A key that its section does not declare is an
error that names the nearest one, unless another Kafka client knows it (`foreign_keys`): then it is a warning, because
configurations are carried from one client to another.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, Self

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import Layers
from millbeck.kernel.options import (
    INT,
    LIST,
    LONG,
    PASSWORD,
    REQUIRED,
    STRING,
    Importance,
    Scope,
    Section,
    at_least,
    one_of,
    option,
)

log = logging.getLogger(__name__)

Value = str | int | float | bool | Iterable[str] | None

CLIENT: Final = Scope.CLIENT
MINUTE_MS: Final = 60_000


class ClientConfig(Section):
    """What every kind of client understands."""

    bootstrap_servers = option(
        "bootstrap.servers",
        LIST,
        REQUIRED,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Brokers to begin with, as host:port separated by commas; one that answers names all others.",
    )
    client_id = option(
        "client.id", STRING, "millbeck", scope=CLIENT, doc="How this client is called in a broker's logs and quotas."
    )
    client_rack = option(
        "client.rack", STRING, "", scope=CLIENT, doc="Where this client is, to be served by a replica nearby."
    )
    metadata_max_age_ms = option(
        "metadata.max.age.ms",
        LONG,
        5 * MINUTE_MS,
        valid=at_least(0),
        scope=CLIENT,
        doc="Ask for metadata again after this time, even if nothing seems to have changed.",
    )
    request_timeout_ms = option(
        "request.timeout.ms",
        INT,
        30_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="Give up on a request, and on its connection, when no answer has come in this time.",
    )
    default_api_timeout_ms = option(
        "default.api.timeout.ms",
        INT,
        MINUTE_MS,
        valid=at_least(1),
        scope=CLIENT,
        doc="How long a call that names no timeout of its own may take, retries included.",
    )
    retries = option(
        "retries",
        INT,
        2_147_483_647,
        valid=at_least(0),
        scope=CLIENT,
        doc="How often a failed request is tried again; the timeouts usually end it first.",
    )
    retry_backoff_ms = option(
        "retry.backoff.ms",
        LONG,
        100,
        valid=at_least(0),
        scope=CLIENT,
        doc="Wait this long before the first retry; the time doubles with each further one.",
    )
    retry_backoff_max_ms = option(
        "retry.backoff.max.ms", LONG, 1000, valid=at_least(0), scope=CLIENT, doc="The longest wait between two retries."
    )
    reconnect_backoff_ms = option(
        "reconnect.backoff.ms",
        LONG,
        50,
        valid=at_least(0),
        scope=CLIENT,
        doc="Wait this long before connecting again to a broker that could not be reached.",
    )
    reconnect_backoff_max_ms = option(
        "reconnect.backoff.max.ms",
        LONG,
        1000,
        valid=at_least(0),
        scope=CLIENT,
        doc="The longest wait between two attempts to connect to one broker.",
    )
    connect_timeout_ms = option(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="How long connecting, the TLS handshake and the exchange of versions may take together.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms",
        LONG,
        9 * MINUTE_MS,
        valid=at_least(-1),
        scope=CLIENT,
        doc="Close a connection that has not been used for this time; -1 never does.",
    )
    security_protocol = option(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        valid=one_of("PLAINTEXT", "SSL"),
        scope=CLIENT,
        doc="PLAINTEXT, or SSL to encrypt and to check the broker's certificate.",
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        scope=CLIENT,
        doc="PEM file with the certificates to trust; the system's own when not set.",
    )
    ssl_ca_location = option(
        "ssl.ca.location",
        STRING,
        None,
        scope=CLIENT,
        doc="librdkafka's name for ssl.truststore.location.",
    )
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        scope=CLIENT,
        doc="PEM file with this client's certificate chain and private key, for brokers that ask for one.",
    )
    ssl_certificate_location = option(
        "ssl.certificate.location",
        STRING,
        None,
        scope=CLIENT,
        doc="PEM file with this client's certificate chain; librdkafka's way beside ssl.key.location.",
    )
    ssl_key_location = option(
        "ssl.key.location",
        STRING,
        None,
        scope=CLIENT,
        doc="PEM file with the private key to ssl.certificate.location, when it is not in the same file.",
    )
    ssl_key_password = option(
        "ssl.key.password", PASSWORD, None, scope=CLIENT, doc="The password of an encrypted private key."
    )
    ssl_endpoint_identification = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        valid=one_of("https", ""),
        scope=CLIENT,
        doc="https compares the broker's name with its certificate; empty trusts any name.",
    )

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        """The settings as typed values; raises `InvalidConfig` that names the setting."""
        texts = {name: text for name, value in settings.items() if (text := _text_of(name, value)) is not None}
        declared = {known.name for known in cls.options}
        for name in texts:
            if name not in declared:
                _report_unknown(name, sorted(declared))
        section = cls.resolve(Layers(static=texts))
        section.check()
        return section

    def check(self) -> None:
        """Raise `InvalidConfig` for settings that do not go together."""


def _text_of(name: str, value: Value) -> str | None:
    """Accepts what people write in Python: numbers, booleans and lists beside texts; None means not set."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    entries = list(value)
    if not all(isinstance(entry, str) for entry in entries):
        raise InvalidConfig(f"Invalid value for configuration {name}: a list must hold texts")
    return ",".join(entries)


def _report_unknown(name: str, declared: list[str]) -> None:
    from difflib import get_close_matches

    from millbeck.client.foreign_keys import LIBRDKAFKA_SYNONYMS, is_known_elsewhere

    if is_known_elsewhere(name):
        synonym = LIBRDKAFKA_SYNONYMS.get(name)
        log.warning("configuration %s has no effect here%s", name, f"; use {synonym}" if synonym else "")
        return
    nearest = get_close_matches(name, declared, n=1, cutoff=0.5)
    hint = f", did you mean {nearest[0]}?" if nearest else ""
    raise InvalidConfig(f"Unknown configuration {name[:100]}{hint}")
