"""Errors of connectors, converters and transforms, with the names of Kafka Connect's exceptions."""

from __future__ import annotations

from typing import ClassVar

from millbeck.kernel.errors import InvalidConfig


class ConnectError(Exception):
    """A connector must stop. ``java_class`` is shown in the headers of dead letters and in the status."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class InvalidValue(ConnectError):
    """A record does not fit its schema, its converter or a transform; the next record may."""

    java_class = "org.apache.kafka.connect.errors.DataException"


class SchemaError(InvalidValue):
    """A schema is contradictory in itself."""

    java_class = "org.apache.kafka.connect.errors.SchemaBuilderException"


class RetriableError(ConnectError):
    """A retry may succeed: the target is down, full or busy."""

    java_class = "org.apache.kafka.connect.errors.RetriableException"


class ConfigError(InvalidConfig, ConnectError):
    """A setting of a connector, converter or transform is missing or wrong."""

    java_class = "org.apache.kafka.common.config.ConfigException"

    @classmethod
    def of(cls, name: str, value: object, problem: str) -> ConfigError:
        """The error in Kafka's words: the value, the setting's name and what is wrong."""
        return cls(f"Invalid value {value} for configuration {name}: {problem}")
