"""In a task: the rows of a chunk to records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from millbeck.pipeline.connect.connectors.interface import RejectedRecord, SourceItem, SourceProgress
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.postgres.changes import ChangeReader
from millbeck.pipeline.connect.postgres.records import SourceBlock, stamps
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.snapshot import chunk_rows
from millbeck.pipeline.connect.postgres.tables import Table


def chunk_items(
    reader: ChangeReader, settings: PostgresSettings, connector: str, payload: Mapping[str, Any]
) -> Iterator[SourceItem]:
    """The records of a chunk, and last that it is done."""
    values = settings.values
    table = Table.from_json(payload["table"])
    records = reader.records_of_table(table)
    source = SourceBlock(values["topic.prefix"], values["database.dbname"], payload["time_us"], "true")
    if payload["is_incremental"]:
        source.snapshot = "incremental"
    else:
        source.lsn = payload["lsn"]
    skipped = payload["skipped"]
    places = [place for name in table.key for place, column in enumerate(table.columns) if column.name == name]
    block = source.struct(table.id.schema, table.id.name)
    now = stamps(payload["now_ms"] * 1000)
    for cells in chunk_rows(values, connector, table, payload["snapshot"], payload["where"]):
        if skipped and tuple(cells[place] for place in places) in skipped:
            continue
        try:
            key, row = records.key(cells), records.row(cells)
        except InvalidValue as error:
            yield RejectedRecord(error=error, topic=records.topic)
            continue
        value = Struct(records.envelope_schema)
        value.values = [None, row, block, None, "r", *now]
        yield SourceRecord(
            topic=records.topic,
            key_schema=records.key_schema,
            key=key,
            value_schema=records.envelope_schema,
            value=value,
        )
    yield SourceProgress(payload["partition"], payload["offset"])
