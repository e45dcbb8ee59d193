"""Predicates: which records a transform is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.checks import all_of, non_empty_text, regular_expression
from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey
from millbeck.pipeline.connect.model.java_patterns import compiled
from millbeck.pipeline.connect.model.record import ConnectRecord


class HasHeaderKey:
    """Records with at least one header of this name."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(name="name", kind=STRING, check=non_empty_text(), doc="The header's name.")
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._name: str = values["name"]

    def test(self, record: ConnectRecord) -> bool:
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone:
    """Records without a value."""

    config_def: ClassVar = ConfigDef()

    def __init__(self, values: Mapping[str, Any]) -> None:
        pass

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None


class TopicNameMatches:
    """Records of topics that match as a whole."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="pattern",
            kind=STRING,
            check=all_of(non_empty_text(), regular_expression()),
            doc="The regular expression, in Java's syntax.",
        )
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._pattern = compiled(values["pattern"])

    def test(self, record: ConnectRecord) -> bool:
        return record.topic is not None and self._pattern.fullmatch(record.topic) is not None
