"""Decoding of records for the program: deserializers and interceptors."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.consumer.decoding_config import DecodingConfig
from millbeck.client.errors import DeserializationFailed
from millbeck.client.serialization import Deserializer, given
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

log = logging.getLogger(__name__)


class ConsumerInterceptor(Protocol):
    """A consumer interceptor: gets every record before the program, and every commit. An exception is logged and
    ignored."""

    def on_consume(self, record: Record[Any, Any]) -> Record[Any, Any]:
        """Return the record for the program, usually the same one."""

    def on_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Called after these offsets were committed."""


class RecordDecoder:
    def __init__(
        self,
        config: DecodingConfig,
        key: Deserializer[Any] | str | None,
        value: Deserializer[Any] | str | None,
        interceptors: Sequence[ConsumerInterceptor],
    ) -> None:
        self._key: Deserializer[Any] | None
        self._value: Deserializer[Any] | None
        self._key, self._value = (
            given(setting, serde, "Deserializer") or config.deserializer(setting)
            for setting, serde in (("key.deserializer", key), ("value.deserializer", value))
        )
        self._interceptors = (*interceptors, *config.interceptors())

    @property
    def is_plain(self) -> bool:
        """Whether records are passed to the program without decoding."""
        return not (self._key or self._value or self._interceptors)

    def decode(self, record: Record) -> Record[Any, Any]:
        """Decode a record for the program; raises `DeserializationFailed`."""
        if self._key is not None or self._value is not None:
            record = Record(
                record.offset,
                record.timestamp,
                self._decoded(self._key, "key", record.key, record),
                self._decoded(self._value, "value", record.value, record),
                record.headers,
                record.source,
            )
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_consume(record)
            except Exception:
                log.exception("an interceptor failed; the record is passed on unchanged")
        return record

    def _decoded(self, deserializer: Deserializer[Any] | None, what: str, data: bytes | None, record: Record) -> Any:
        if data is None or deserializer is None:
            return data
        try:
            return deserializer.deserialize(record.topic, data, record.headers)
        except Exception as error:
            place = TopicPartition(record.topic, record.partition)
            raise DeserializationFailed(
                f"the {what} of {place} at offset {record.offset} cannot be deserialized: {error}; seek to "
                f"{record.offset + 1} to skip the record",
                partition=place,
                offset=record.offset,
            ) from error

    def committed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                log.exception("an interceptor failed")
