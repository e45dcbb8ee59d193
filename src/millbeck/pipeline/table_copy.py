"""A machine's copy of a table's topic, for lookups by the tasks of a query; needs pyarrow.

The first task of a batch on a machine brings the copy up to date: it asks for the end of the topic, and reads what was
added since the last batch. The other tasks of the batch use what it has read. So a batch costs what has changed; only
the first one reads the whole topic.

A copy is read anew when it could have missed something: the topic was created again, or truncated, or its records were
deleted before they were read, or so much time has passed that tombstones may have been removed from the log
(``delete.retention.ms``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from millbeck.client.admin import Admin, AdminConfig
from millbeck.client.admin.results import ConfigResource, ResourceType
from millbeck.client.blocking import Blocking
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid, uuid_text
from millbeck.pipeline.errors import RecordsLost
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.planning import OffsetRange
from millbeck.pipeline.range_task import read_range
from millbeck.pipeline.source_options import SourceOptions
from millbeck.pipeline.table_rows import FoundRow, TableRecord, TableRows

log = logging.getLogger(__name__)

_DELETE_RETENTION: Final = "delete.retention.ms"
_DELETE_RETENTION_MS: Final = 24 * 3600 * 1000
"""The broker's default, for topics whose configuration may not be read."""


class TableCopy:
    """The copy of one topic; ``options`` name it, and are those of a batch query."""

    def __init__(self, options: SourceOptions, path: str) -> None:
        self._options = options
        (self._topic,) = options.topics
        self._view = LogView(options)
        self._rows = TableRows(path)
        self._batch: str | None = None

    def close(self) -> None:
        self._view.close()
        self._rows.close()

    def rows_of(self, keys: Iterable[bytes], batch: str | None) -> dict[bytes, FoundRow]:
        """The rows of these keys as of the beginning of the batch; None is a batch of its own."""
        if batch is None or batch != self._batch:
            with self._rows.transaction():
                if batch is None or self._rows.state("batch") != batch:
                    self._update()
                    self._rows.put_state("batch", batch)
            self._batch = batch
        return self._rows.find(keys)

    def _update(self) -> None:
        now_ms = self._view.wall_ms()
        topics = self._view.topics()
        topic_id = self._view.ids(topics).get(self._topic)
        ends = self._view.latest(self._view.partitions(topics))
        if not self._may_continue(topic_id, ends, now_ms):
            self._begin(topic_id)
        try:
            self._read(topic_id, ends)
        except RecordsLost as error:
            log.warning("reading the table %s anew: %s", self._topic, error)
            self._begin(topic_id)
            self._read(topic_id, ends)
        self._rows.purge()
        self._rows.put_state("updated_ms", now_ms)

    def _may_continue(self, topic_id: Uuid | None, ends: Mapping[TopicPartition, int], now_ms: int) -> bool:
        updated_ms = self._rows.state("updated_ms")
        if updated_ms is None or self._rows.state("topic_id") != _text(topic_id):
            return False
        if now_ms - updated_ms > self._rows.state("tombstones_ms") // 2:
            return False
        positions = self._positions()
        return all(positions.get(partition.partition, 0) <= end for partition, end in ends.items())

    def _begin(self, topic_id: Uuid | None) -> None:
        self._rows.clear()
        self._rows.put_state("topic_id", _text(topic_id))
        self._rows.put_state("tombstones_ms", tombstones_ms(self._options.settings, self._topic))

    def _positions(self) -> dict[int, int]:
        return {int(number): offset for number, offset in (self._rows.state("positions") or {}).items()}

    def _read(self, topic_id: Uuid | None, ends: Mapping[TopicPartition, int]) -> None:
        positions = self._positions()
        new = [partition for partition in ends if partition.partition not in positions]
        for partition, offset in (self._view.earliest(new) if new else {}).items():
            positions[partition.partition] = offset
        for partition, end in ends.items():
            begin = positions[partition.partition]
            if begin < end:
                wanted = OffsetRange(partition=partition, start=begin, end=end, topic_id=topic_id or ZERO_UUID)
                for batch in read_range(self._options, wanted):
                    self._rows.put(_records(batch, partition.partition))
            positions[partition.partition] = max(begin, end)
        self._rows.put_state("positions", positions)


def _records(batch: Any, partition: int) -> Iterator[TableRecord]:
    columns = [batch.column(name) for name in ("key", "value", "timestamp", "offset")]
    columns[2] = columns[2].cast("int64")
    keys, values, timestamps, offsets = (column.to_pylist() for column in columns)
    for key, value, timestamp, offset in zip(keys, values, timestamps, offsets, strict=True):
        if key is not None:
            yield TableRecord(key, partition, value, timestamp, offset)


def tombstones_ms(settings: Mapping[str, str], topic: str) -> int:
    """How long a tombstone stays in the topic at least."""
    known = {option.name for option in AdminConfig.options}
    own = {name: value for name, value in settings.items() if name in known}
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Blocking() as blocking:
        admin = blocking.make(lambda environment: Admin(own, environment=environment))
        try:
            found = blocking.run(admin.describe_configs({resource: [_DELETE_RETENTION]}))
        except ApiError as error:
            log.info("%s of the topic %s is not known, a day is assumed: %s", _DELETE_RETENTION, topic, error)
            return _DELETE_RETENTION_MS
    return int(found[resource][_DELETE_RETENTION].value or _DELETE_RETENTION_MS)


def _text(topic_id: Uuid | None) -> str | None:
    return None if topic_id is None else uuid_text(topic_id)


_copies: dict[str, TableCopy] = {}
"""The open copies of this process, by path."""


def opened(options: SourceOptions, application: str) -> TableCopy:
    """The machine's copy of the topic for this application, in the directory that Spark removes at its end."""
    named = json.dumps([application, options.topics, sorted(options.settings.items())])
    name = f"millbeck-table-{hashlib.sha256(named.encode()).hexdigest()[:24]}.sqlite"
    directory = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    path = os.path.join(directory, name)
    if path not in _copies:
        _copies[path] = TableCopy(options, path)
    return _copies[path]
