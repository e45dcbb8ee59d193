"""The interface of converters, and the settings that all converters of Kafka have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from millbeck.pipeline.connect.config.checks import one_of
from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.model.schema import Schema
from millbeck.pipeline.connect.model.value_parser import Parsed

TYPE_KEY = ConfigKey(
    name="converter.type",
    kind=STRING,
    check=one_of("key", "value", "header"),
    importance=Importance.LOW,
    doc="What this converter is used for; set by the worker.",
)
CONVERTER_CONFIG = ConfigDef(TYPE_KEY)


class Converter(Protocol):
    """Created from its settings. A converter of headers also gets the header's key, for error messages."""

    config_def: ClassVar[ConfigDef]

    def __init__(self, settings: Mapping[str, str]) -> None: ...

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a value for the log. Raises `InvalidValue`."""

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        """The value of bytes from the log, with its schema. Raises `InvalidValue`."""
