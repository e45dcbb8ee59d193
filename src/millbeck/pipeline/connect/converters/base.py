"""What a converter is, and the settings that all of Kafka's have."""

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
    """Made from its settings; a header's converter is given the header's key too, which only messages need."""

    config_def: ClassVar[ConfigDef]

    def __init__(self, settings: Mapping[str, str]) -> None: ...

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        """What is written to the log. Raises `InvalidValue`."""

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        """The value of what is in the log, with its schema. Raises `InvalidValue`."""
