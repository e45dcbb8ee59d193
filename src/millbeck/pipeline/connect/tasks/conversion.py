"""A connector's converters and transforms: from a source's record to the bytes for the log, and back for a sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.validation import CONVERTERS, DEFAULT_CONVERTERS
from millbeck.pipeline.connect.converters.base import Converter
from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord, SinkRecord, SourceRecord
from millbeck.pipeline.connect.plugins import plugin_of
from millbeck.pipeline.connect.tasks.tolerance import RecordFailed, Stage
from millbeck.pipeline.connect.transforms.chain import stages_of

Headers = tuple[tuple[str, bytes | None], ...]


class StoredRecord(NamedTuple):
    """A record as the log has it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class EncodedRecord(NamedTuple):
    """A record for the log."""

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


class Conversion:
    """Made once for each configuration. Raises `ConfigError`."""

    def __init__(self, settings: Mapping[str, str], worker: Mapping[str, str]) -> None:
        """``worker`` has the worker's converters with their settings, for what the connector does not name."""
        self._classes: dict[str, str] = {}
        self._key = self._converter(settings, worker, "key.converter")
        self._value = self._converter(settings, worker, "value.converter")
        self._header = self._converter(settings, worker, "header.converter")
        self.stages = stages_of(settings)

    def _converter(self, settings: Mapping[str, str], worker: Mapping[str, str], setting: str) -> Converter:
        source = settings if setting in settings else worker
        plugin = plugin_of(setting, source.get(setting, DEFAULT_CONVERTERS[setting]).strip(), CONVERTERS[setting])
        prefix = f"{setting}."
        given = {name.removeprefix(prefix): text for name, text in source.items() if name.startswith(prefix)}
        given.setdefault("converter.type", setting.partition(".")[0])
        self._classes[setting] = plugin.name
        made: Converter = plugin.make(given)
        return made

    # from a source to the log

    def encoded(self, record: SourceRecord) -> EncodedRecord | None:
        """The record for the log; None when a transform drops it. Raises `RecordFailed`, `RetriableError`."""
        changed = self._transformed(record) if self.stages else record
        if changed is None:
            return None
        topic = changed.topic
        if not topic:
            raise ConfigError("a record has no topic: the connector's settings must name one")
        key = self._to_bytes(self._key, Stage.KEY_CONVERTER, "key.converter", topic, changed.key_schema, changed.key)
        value = self._to_bytes(
            self._value, Stage.VALUE_CONVERTER, "value.converter", topic, changed.value_schema, changed.value
        )
        headers: Headers = ()
        if changed.headers:
            headers = tuple(
                (
                    header.key,
                    self._to_bytes(
                        self._header, Stage.HEADER_CONVERTER, "header.converter", topic, header.schema, header.value
                    ),
                )
                for header in changed.headers
            )
        return EncodedRecord(topic, changed.partition, changed.timestamp, key, value, headers)

    def _to_bytes(
        self, converter: Converter, stage: Stage, setting: str, topic: str, schema: Any, value: Any
    ) -> bytes | None:
        try:
            return converter.to_bytes(topic, schema, value)
        except (RetriableError, ConfigError):
            raise
        except Exception as error:
            raise RecordFailed(stage, self._classes[setting], error) from error

    # from the log to a sink

    def decoded(self, origin: TopicPartition, stored: StoredRecord) -> SinkRecord | None:
        """The record for the sink; None when a transform drops it. Raises `RecordFailed`, `RetriableError`."""
        topic = origin.topic
        key = self._from_bytes(self._key, Stage.KEY_CONVERTER, "key.converter", topic, stored.key)
        value = self._from_bytes(self._value, Stage.VALUE_CONVERTER, "value.converter", topic, stored.value)
        headers: tuple[ConnectHeader, ...] = ()
        if stored.headers:
            headers = tuple(
                ConnectHeader(
                    name, *self._from_bytes(self._header, Stage.HEADER_CONVERTER, "header.converter", topic, each)
                )
                for name, each in stored.headers
            )
        record = SinkRecord(
            topic=topic,
            partition=origin.partition,
            key_schema=key.schema,
            key=key.value,
            value_schema=value.schema,
            value=value.value,
            timestamp=stored.timestamp if stored.timestamp >= 0 else None,
            headers=headers,
            offset=stored.offset,
            origin=origin,
        )
        return self._transformed(record) if self.stages else record

    def _from_bytes(self, converter: Converter, stage: Stage, setting: str, topic: str, stored: bytes | None) -> Any:
        try:
            return converter.from_bytes(topic, stored)
        except (RetriableError, ConfigError):
            raise
        except Exception as error:
            raise RecordFailed(stage, self._classes[setting], error) from error

    # transforms

    def _transformed(self, record: Any) -> Any:
        current: ConnectRecord | None = record
        for stage in self.stages:
            if current is None:
                return None
            try:
                current = stage.apply(current)
            except (RetriableError, ConfigError):
                raise
            except Exception as error:
                raise RecordFailed(Stage.TRANSFORMATION, stage.class_name, error) from error
        return current
