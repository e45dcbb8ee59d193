"""What the three converters of the schema registry share: their settings, and the meaning of the registry's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from millbeck.client.schemas.errors import BadRecord, SchemaError, SchemaInvalid, UnknownSchema
from millbeck.client.schemas.model import RegisteredSchema, Schema
from millbeck.client.schemas.serde import RegistrySerde
from millbeck.pipeline.connect.config.checks import at_least
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.converters.base import CONVERTER_CONFIG
from millbeck.pipeline.connect.errors import InvalidValue, RetriableError

T = TypeVar("T")

REGISTRY_CONFIG: Final = ConfigDef(
    *CONVERTER_CONFIG,
    ConfigKey(
        name="schema.registry.url",
        kind=LIST,
        importance=Importance.HIGH,
        doc="The URLs of the schema registry's instances, separated by commas.",
    ),
    ConfigKey(
        name="basic.auth.credentials.source",
        kind=STRING,
        default="URL",
        doc="USER_INFO where basic.auth.user.info is set; accepted for Confluent's sake.",
    ),
    ConfigKey(
        name="basic.auth.user.info",
        kind=PASSWORD,
        default=None,
        doc="User and password for the registry, as user:password.",
    ),
    ConfigKey(
        name="bearer.auth.token",
        kind=PASSWORD,
        default=None,
        doc="The bearer token for the registry.",
    ),
    ConfigKey(
        name="schema.registry.ssl.ca.location",
        kind=STRING,
        default=None,
        importance=Importance.LOW,
        doc="The trusted certificates for https, in a PEM file; default: the system's.",
    ),
    ConfigKey(
        name="auto.register.schemas",
        kind=BOOLEAN,
        default=True,
        doc="Whether a schema is registered with the first record written with it.",
    ),
    ConfigKey(
        name="use.latest.version",
        kind=BOOLEAN,
        default=False,
        importance=Importance.LOW,
        doc="Whether values are written with the latest schema of the subject.",
    ),
    ConfigKey(
        name="latest.compatibility.strict",
        kind=BOOLEAN,
        default=True,
        importance=Importance.LOW,
        doc="With use.latest.version: whether writing fails if the record's schema is not compatible with the latest.",
    ),
    ConfigKey(
        name="normalize.schemas",
        kind=BOOLEAN,
        default=False,
        importance=Importance.LOW,
        doc="Whether schemas are looked up and registered in their normalised form.",
    ),
    ConfigKey(
        name="key.subject.name.strategy",
        kind=STRING,
        default="TopicNameStrategy",
        importance=Importance.LOW,
        doc="The subject of a key's schema: TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy.",
    ),
    ConfigKey(
        name="value.subject.name.strategy",
        kind=STRING,
        default="TopicNameStrategy",
        importance=Importance.LOW,
        doc="The subject of a value's schema.",
    ),
    ConfigKey(
        name="schemas.cache.config",
        kind=INT,
        default=1000,
        check=at_least(1),
        importance=Importance.LOW,
        doc="How many schemas are kept.",
    ),
)
_PASSED_ON: Final = (
    "schema.registry.ssl.ca.location",
    "auto.register.schemas",
    "use.latest.version",
    "latest.compatibility.strict",
    "normalize.schemas",
)


class RegistryAccess:
    """The registry as a converter uses it: a schema is written with its registered id before the record."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.is_key: bool = values["converter.type"] == "key"
        part = "key" if self.is_key else "value"
        given: dict[str, Any] = {
            "schema.registry.url": ",".join(values["schema.registry.url"]),
            "subject.name.strategy": values[f"{part}.subject.name.strategy"],
            "cache.capacity": values["schemas.cache.config"],
        }
        given |= {name: values[name] for name in _PASSED_ON if values[name] is not None}
        for name in ("basic.auth.user.info", "bearer.auth.token"):
            if values[name] is not None:
                given[name] = values[name].reveal()
        self._serde = RegistrySerde(given, is_key=self.is_key)

    def framed(self, topic: str | None, name: str, schema: Schema, payload: bytes, indexes: bytes = b"") -> bytes:
        written = self.registered(topic, name, schema)
        return self._serde.marked(written, payload, [], indexes)

    def registered(self, topic: str | None, name: str, schema: Schema) -> RegisteredSchema:
        return asked(lambda: self._serde.writer(topic or "", name, schema))

    def unframed(self, stored: bytes) -> tuple[Schema, bytes]:
        schema, _, payload = asked(lambda: self._serde.unmarked(stored, []))
        return schema, payload


def asked(question: Callable[[], T]) -> T:
    """Call the registry: what it does not know makes the record wrong, anything else may pass."""
    try:
        return question()
    except (BadRecord, UnknownSchema, SchemaInvalid) as error:
        raise InvalidValue(str(error)) from error
    except SchemaError as error:
        if "not compatible" in str(error):
            raise InvalidValue(str(error)) from error
        raise RetriableError(str(error)) from error
