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

    url = option(
        "schema.registry.url", LIST, (), scope=CLIENT, doc="The URLs of the registry's instances, separated by commas."
    )
    user_info = option(
        "basic.auth.user.info",
        PASSWORD,
        None,
        scope=CLIENT,
        doc="User and password for the registry, as user:password.",
    )
    bearer_token = option("bearer.auth.token", PASSWORD, None, scope=CLIENT, doc="The bearer token for the registry.")
    ca_location = option(
        "schema.registry.ssl.ca.location",
        STRING,
        None,
        scope=CLIENT,
        doc="The trusted certificates for https, in a PEM file; default: the system's.",
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
        doc="The timeout of a request to an instance of the registry; then the next instance is tried.",
    )
    cache_capacity = option(
        "cache.capacity",
        INT,
        1000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The maximum number of cached schemas of each kind.",
    )
    latest_ttl_sec = option(
        "cache.latest.ttl.sec", INT, 60, valid=at_least(0), scope=CLIENT, doc="How long the latest version is cached."
    )
    missing_ttl_sec = option(
        "missing.cache.ttl.sec",
        INT,
        5,
        valid=at_least(0),
        scope=CLIENT,
        doc="How long failed lookups (no such id, subject or schema) are cached.",
    )

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        """Parse settings; raises `InvalidConfig` naming the setting."""
        declared = [known.name for known in cls.options]
        for name in settings:
            if name not in declared:
                raise InvalidConfig(
                    f"Unknown configuration {name[:100]}; the known ones are {', '.join(sorted(declared))}"
                )
        texts = {name: text for name, value in settings.items() if (text := text_of(name, value)) is not None}
        found = cls.resolve(ConfigLayers(static=texts))
        if not found.url:
            raise InvalidConfig(
                "schema.registry.url is not set: set the address of the registry, such as http://127.0.0.1:8081"
            )
        return found


class SerdeConfig(RegistryClientConfig):
    """Settings of serializers and deserializers that use a schema registry."""

    auto_register = option(
        "auto.register.schemas",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Whether a schema is registered with the first record written with it. The default is false, because "
        "a program that can register schemas can break all readers: register schemas at deployment.",
    )
    normalize = option(
        "normalize.schemas",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Whether schemas are looked up and registered in their normalised form.",
    )
    use_latest = option(
        "use.latest.version",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Whether values are written with the latest schema of the subject.",
    )
    use_latest_with = option(
        "use.latest.with.metadata",
        LIST,
        (),
        scope=CLIENT,
        doc="Values are written with the latest schema whose metadata has these properties, as key=value.",
    )
    latest_strict = option(
        "latest.compatibility.strict",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="With use.latest.version: whether writing fails if the program's own schema is not compatible with "
        "the latest.",
    )
    strategy = option(
        "subject.name.strategy",
        STRING,
        "TopicNameStrategy",
        scope=CLIENT,
        doc="The subject name strategy: TopicNameStrategy (orders-value), RecordNameStrategy (shop.Order) or "
        "TopicRecordNameStrategy (orders-shop.Order).",
    )
    id_location = option(
        "schema.id.serializer",
        STRING,
        "PrefixSchemaIdSerializer",
        scope=CLIENT,
        doc="The position of the schema id. PrefixSchemaIdSerializer: five bytes before the record; "
        "HeaderSchemaIdSerializer: the schema's guid in a header. Deserializers accept both.",
    )
    validates = option(
        "json.fail.invalid.schema",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="For JSON Schema: whether writing or reading a value fails if its schema does not accept it.",
    )
