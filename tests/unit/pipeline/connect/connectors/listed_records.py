"""Records of a share, from a list, as connectors' tests need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.definitions import ConfigDef
from millbeck.pipeline.connect.connectors.interface import (
    Connector,
    ConnectorContext,
    OffsetRange,
    SinkConnector,
    SinkShare,
)
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import Schema


class ListedRecords:
    """Notes what is rejected, and where writing stopped. With ``tolerates=False`` a rejected record fails the share."""

    def __init__(self, records: Iterable[SinkRecord], *, tolerates: bool = True) -> None:
        self._records = list(records)
        self._tolerates = tolerates
        self.rejected: list[tuple[int, str]] = []
        self.stops: dict[TopicPartition, int] = {}

    def __iter__(self) -> Iterator[SinkRecord]:
        return iter(self._records)

    def raw_batches(self) -> Iterator[Any] | None:
        return None

    def reject(self, record: SinkRecord, error: Exception) -> None:
        if not self._tolerates:
            raise error
        self.rejected.append((record.offset, str(error)))

    def stop_at(self, partition: TopicPartition, offset: int) -> None:
        self.stops[partition] = offset

    @property
    def share(self) -> SinkShare:
        """A share of all records."""
        ends: dict[TopicPartition, tuple[int, int]] = {}
        for record in self._records:
            assert record.origin is not None
            start, _ = ends.get(record.origin, (record.offset, 0))
            ends[record.origin] = (start, record.offset + 1)
        return SinkShare(ranges=tuple(OffsetRange(place, *range_) for place, range_ in sorted(ends.items())))


def sink_record(
    offset: int, schema: Schema | None, value: Any, *, key: tuple[Schema, Any] | None = None, **other: Any
) -> SinkRecord:
    """A record of partition 0 of orders."""
    topic, partition = other.pop("topic", "orders"), other.pop("partition", 0)
    key_schema, key_value = (None, None) if key is None else key
    return SinkRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key_schema=key_schema,
        key=key_value,
        value_schema=schema,
        value=value,
        origin=TopicPartition(topic, partition),
        **other,
    )


def written(sink: SinkConnector, records: Iterable[SinkRecord], *, tolerates: bool = True) -> ListedRecords:
    """Write records as one share."""
    listed = ListedRecords(records, tolerates=tolerates)
    sink.write(listed.share, listed)
    return listed


def parsed_values(config_def: ConfigDef, settings: Mapping[str, str]) -> dict[str, Any]:
    return config_def.parse(settings)


def made(connector: type[Connector], settings: Mapping[str, str], *, name: str = "test", tasks_max: int = 1) -> Any:
    """A connector of these settings; the default values are filled in."""
    values = connector.declared.config_def.parse(settings)
    assert not list(connector.declared.problems(values))
    return connector(values, ConnectorContext(name=name, settings=settings, tasks_max=tasks_max))
