"""Settings of the registry's client and of serializers, under the names of Confluent's clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from millbeck.client.config import Value, text_of
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_layers import ConfigLayers
from millbeck.kernel.options import BOOLEAN, INT, LIST, PASSWORD, STRING, Scope, Section, at_least, option

CLIENT: Final = Scope.CLIENT


class RegistryClientConfig(Section):
    """Settings of the schema registry's client."""

    url = option("schema.registry.url", LIST, (), scope=CLIENT, doc="Where instances of the registry are.")
    user_info = option("basic.auth.user.info", PASSWORD, None, scope=CLIENT, doc="user:password for the registry.")
    bearer_token = option("bearer.auth.token", PASSWORD, None, scope=CLIENT, doc="A token for the registry.")
    ca_location = option(
        "schema.registry.ssl.ca.location",
        STRING,
        None,
        scope=CLIENT,
        doc="A file of the certificates that are trusted for https; default: those of this machine.",
    )
    certificate_location = option(
        "schema.registry.ssl.certificate.location",
        STRING,
        None,
        scope=CLIENT,
        doc="This client's certificate and its chain, in a PEM file.",
    )
    key_location = option(
        "schema.registry.ssl.key.location", STRING, None, scope=CLIENT, doc="The key of the certificate, in a PEM file."
    )
    request_timeout_ms = option(
        "schema.registry.request.timeout.ms",
        INT,
        10_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="Fail a request to the registry, or ask the next instance, if no answer arrives in this time.",
    )
    cache_capacity = option(
        "cache.capacity", INT, 1000, valid=at_least(1), scope=CLIENT, doc="How many schemas are kept of each kind."
    )
    latest_ttl_sec = option(
        "cache.latest.ttl.sec", INT, 60, valid=at_least(0), scope=CLIENT, doc="How long the latest version is kept."
    )
    missing_ttl_sec = option(
        "missing.cache.ttl.sec",
        INT,
        5,
        valid=at_least(0),
        scope=CLIENT,
        doc="How long it is remembered that an id, subject or schema is not there.",
    )

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        """Raises `InvalidConfig` naming the setting."""
        declared = [known.name for known in cls.options]
        for name in settings:
            if name not in declared:
                raise InvalidConfig(f"Unknown configuration {name[:100]}; there are {', '.join(sorted(declared))}")
        texts = {name: text for name, value in settings.items() if (text := text_of(name, value)) is not None}
        found = cls.resolve(ConfigLayers(static=texts))
        if not found.url:
            raise InvalidConfig("schema.registry.url is not set: where is the registry, such as http://127.0.0.1:8081?")
        return found


class SerdeConfig(RegistryClientConfig):
    """Settings of serializers and deserializers that use a schema registry."""

    auto_register = option(
        "auto.register.schemas",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Register a schema with the first record that is written with it. Off, since a program that can register "
        "can break all readers: register schemas when they are deployed.",
    )
    normalize = option(
        "normalize.schemas", BOOLEAN, False, scope=CLIENT, doc="Find or register a schema in its normal form."
    )
    use_latest = option(
        "use.latest.version", BOOLEAN, False, scope=CLIENT, doc="Write with the latest schema of the subject."
    )
    use_latest_with = option(
        "use.latest.with.metadata",
        LIST,
        (),
        scope=CLIENT,
        doc="Write with the latest schema whose metadata has these properties, as key=value.",
    )
    latest_strict = option(
        "latest.compatibility.strict",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="With use.latest.version: refuse to write if the program's own schema is not compatible with the latest.",
    )
    strategy = option(
        "subject.name.strategy",
        STRING,
        "TopicNameStrategy",
        scope=CLIENT,
        doc="TopicNameStrategy (orders-value), RecordNameStrategy (shop.Order) or TopicRecordNameStrategy "
        "(orders-shop.Order).",
    )
    id_location = option(
        "schema.id.serializer",
        STRING,
        "PrefixSchemaIdSerializer",
        scope=CLIENT,
        doc="PrefixSchemaIdSerializer: five bytes before the record; HeaderSchemaIdSerializer: the schema's guid in a "
        "header. Both are read.",
    )
    validates = option(
        "json.fail.invalid.schema",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="JSON Schema: refuse to write or read a value that its schema does not accept.",
    )
