"""A connector package as others would write it: a source that counts, and a sink that keeps records in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from millbeck.pipeline.connect.config.checks import at_least
from millbeck.pipeline.connect.config.definitions import INT, STRING, ConfigDef, ConfigKey
from millbeck.pipeline.connect.connectors.declared import ConnectorClass, ConnectorKind, SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    Plan,
    SinkConnector,
    SinkRecords,
    SinkShare,
    SourceConnector,
    SourcePositions,
    SourceShare,
)
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.model.schema import INT64_SCHEMA


def _problems(values: Mapping[str, Any]) -> Iterator[SettingProblem]:
    if values["step"] > values["end"]:
        yield SettingProblem("step", "is longer than the way to end: make it smaller")


class CountingSource(SourceConnector):
    """Numbers from 0 to end, cut by tasks.max."""

    declared = ConnectorClass(
        name="shop.CountingSource",
        kind=ConnectorKind.SOURCE,
        doc="Numbers from 0 to end.",
        config_def=ConfigDef(
            ConfigKey(name="topic", kind=STRING, doc="The topic to write to."),
            ConfigKey(name="end", kind=INT, check=at_least(1), doc="The first number that is not written."),
            ConfigKey(name="step", kind=INT, default=10, check=at_least(1), doc="Numbers in a share."),
        ),
        problems=_problems,
    )

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        tasks, end = self.context.tasks_max, self.values["end"]
        shares: list[SourceShare] = []
        for lane in range(tasks):
            # Lane N has the numbers whose remainder by tasks.max is N.
            offset = positions.get({"lane": lane})
            first = lane if offset is None else offset["next"]
            if first < end:
                shares.append(SourceShare(payload=(lane, first, min(end, first + self.values["step"] * tasks), tasks)))
        return Plan(shares=tuple(shares), again_s=0 if shares else None)

    def read(self, share: SourceShare) -> Iterator[SourceRecord]:
        lane, first, end, step = share.payload
        for number in range(first, end, step):
            yield SourceRecord(
                topic=self.values["topic"],
                value_schema=INT64_SCHEMA,
                value=number,
                source_partition={"lane": lane},
                source_offset={"next": number + step},
            )


class MemorySink(SinkConnector):
    """Keeps values in a list of this process."""

    declared = ConnectorClass(
        name="shop.MemorySink",
        kind=ConnectorKind.SINK,
        doc="Keeps values in memory.",
        config_def=ConfigDef(ConfigKey(name="refuses", kind=STRING, default="", doc="A value that is refused.")),
    )
    kept: list[Any] = []

    def write(self, share: SinkShare, records: SinkRecords) -> int:
        count = 0
        for record in records:
            if record.value == self.values["refuses"]:
                records.reject(record, ValueError(f"{record.value} is refused"))
                continue
            self.kept.append(record.value)
            count += 1
        return count
