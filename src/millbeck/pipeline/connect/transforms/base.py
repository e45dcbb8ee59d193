"""What transforms and predicates are, and what most of Kafka's share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from millbeck.pipeline.connect.config.definitions import BOOLEAN, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.record import ConnectRecord, Side
from millbeck.pipeline.connect.model.schema import Schema
from millbeck.pipeline.connect.model.struct import Struct, java_class

_SCHEMAS_MAX = 1000

REPLACE_NULL_WITH_DEFAULT = ConfigKey(
    name="replace.null.with.default",
    kind=BOOLEAN,
    default=True,
    importance=Importance.MEDIUM,
    doc="Whether a null in a field with a default becomes the default.",
)


class Transformation(Protocol):
    """Made from the parsed values of its settings."""

    config_def: ClassVar[ConfigDef]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The changed record; None drops it. Raises `InvalidValue`."""


class Predicate(Protocol):
    """Made from the parsed values of its settings."""

    config_def: ClassVar[ConfigDef]

    def test(self, record: ConnectRecord) -> bool: ...


class SidedTransformation:
    """A transform of the key or of the value. Its class has a variant for each, as ``Cast$Key`` and ``Cast$Value``."""

    config_def: ClassVar[ConfigDef]
    purpose: ClassVar[str]
    skips_null: ClassVar[bool] = True
    """Whether a record whose value (or key) is null is left as it is."""

    def __init__(self, side: Side, values: Mapping[str, Any]) -> None:
        self.side = side
        self.fills_defaults: bool = values.get(REPLACE_NULL_WITH_DEFAULT.name, True)
        self._schemas: dict[Schema, Schema] = {}
        self.configure(values)

    def configure(self, values: Mapping[str, Any]) -> None:
        """Take over the parsed settings. Raises `ConfigError`."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.side.schema(record), self.side.value_of(record)
        if value is None and self.skips_null:
            return record
        if schema is None:
            return self.without_schema(record, value)
        return self.with_schema(record, schema, value)

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        raise NotImplementedError

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        raise NotImplementedError

    def changed_schema(self, schema: Schema, make: Callable[[Schema], Schema]) -> Schema:
        """What ``make`` makes of a schema; made once for each."""
        found = self._schemas.get(schema)
        if found is None:
            found = make(schema)
            if len(self._schemas) >= _SCHEMAS_MAX:
                self._schemas.clear()
            self._schemas[schema] = found
        return found

    def required_dict(self, value: Any) -> dict[str, Any]:
        return required_dict(value, self.purpose)

    def required_struct(self, value: Any) -> Struct:
        return required_struct(value, self.purpose)

    def read(self, struct: Struct, name: str) -> Any:
        return struct.read(name, with_default=self.fills_defaults)


def required_dict(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(
            f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}"
        )
    return value


def required_struct(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        raise InvalidValue(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")
    return value
