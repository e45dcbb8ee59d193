"""A share of raw changes to records: what a task does with the stream.

A share has whole transactions. Its last item is the offset behind it; the records themselves have none, since they
become visible together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.record import ConnectHeader, SourceRecord
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.postgres.pgoutput import (
    Begin,
    Cells,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Truncate,
    Update,
    message_of,
)
from millbeck.pipeline.connect.postgres.records import (
    SourceBlock,
    SystemSchemas,
    TableRecords,
    codec_of_bytes,
    stamps,
    struct_of,
)
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.share import HEARTBEAT, ChangeEntry, ShareHeader
from millbeck.pipeline.connect.postgres.snapshot_reach import SnapshotReach
from millbeck.pipeline.connect.postgres.tables import Table

NEW_KEY: Final = "__debezium.newkey"
OLD_KEY: Final = "__debezium.oldkey"
_SHAPES_KEPT_MAX: Final = 2000


class RefusedChange(InvalidValue):
    """A change that no record can be made of, with its place."""

    def __init__(self, error: InvalidValue, topic: str, message: bytes) -> None:
        super().__init__(str(error))
        self.topic = topic
        self.raw = message


class Sink(Protocol):
    """Makes something else of a change that cannot be a record."""

    def __call__(self, refused: RefusedChange) -> Any: ...


class ChangeReader:
    """Makes records of shares; what it learns of tables is kept from share to share."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._schemas = SystemSchemas.of(settings)
        self._bytes = codec_of_bytes(settings)
        self._known: dict[Table, TableRecords] = {}

    def records_of_table(self, table: Table) -> TableRecords:
        found = self._known.get(table)
        if found is None:
            if len(self._known) >= _SHAPES_KEPT_MAX:
                self._known.clear()
            found = self._known[table] = TableRecords(table, self._settings)
        return found

    def records(self, header: ShareHeader, entries: Iterable[ChangeEntry], refuse: Sink) -> Iterator[Any]:
        """The records of a share; a change that cannot be one is what ``refuse`` makes of it. Raises `InvalidValue` for
        a share that is broken.
        """
        tables = {shape: self.records_of_table(table) for shape, table in header.tables.items()}
        return _ShareReading(self._settings, self._schemas, tables, header, refuse, self._bytes.decode).run(entries)


class _ShareReading:
    """One pass over a share."""

    def __init__(
        self,
        settings: PostgresSettings,
        schemas: SystemSchemas,
        tables: Mapping[int, TableRecords],
        header: ShareHeader,
        refuse: Sink,
        content: Any,
    ) -> None:
        values = settings.values
        self._settings = settings
        self._schemas = schemas
        self._tables = tables
        self._refuse = refuse
        self._content = content
        self._now = stamps(header.now_ms * 1000)
        self._reach = SnapshotReach.of(header.start.get("millbeck.read_at"))
        self._source = SourceBlock(values["topic.prefix"], values["database.dbname"])
        self._source.last_commit_lsn = header.start.get("lsn_commit")
        self._has_tombstones: bool = values["tombstones.on.delete"]
        self._has_transactions: bool = values["provide.transaction.metadata"]
        self._skips_unchanged: bool = values["skip.messages.without.change"]
        self._final_lsn = 0
        self._counts: dict[str, int] = {}

    def run(self, entries: Iterable[ChangeEntry]) -> Iterator[Any]:
        for lsn, shape, message in entries:
            if message[0] == HEARTBEAT:
                yield self._heartbeat()
                continue
            change = message_of(message)
            self._source.lsn = lsn
            table = self._tables.get(shape)
            if table is None:
                yield from self._of_no_table(change, lsn)
                continue
            try:
                made = self._of_table(table, change)
            except InvalidValue as error:
                yield self._refuse(RefusedChange(error, table.topic, message))
                continue
            yield from made

    # what belongs to no table

    def _of_no_table(self, change: Message, lsn: int) -> list[SourceRecord]:
        source = self._source
        match change:
            case Begin():
                source.time_us, source.transaction_id = change.commit_time_us, change.transaction_id
                source.origin = source.origin_lsn = None
                self._final_lsn = change.final_lsn
                self._counts = {}
                return [self._transaction("BEGIN", lsn)] if self._has_transactions else []
            case Commit():
                found = [self._transaction("END", lsn)] if self._has_transactions else []
                source.last_commit_lsn = change.end_lsn
                return found
            case Origin():
                source.origin, source.origin_lsn = change.name, change.commit_lsn
                return []
            case LogicalMessage():
                return [self._message(change)] if change.prefix in self._settings.messages else []
        raise InvalidValue(f"a share has a {type(change).__name__} of an unknown table")

    def _heartbeat(self) -> SourceRecord:
        schemas = self._schemas
        return SourceRecord(
            topic=self._settings.naming.heartbeat_topic,
            partition=0,
            key_schema=schemas.heartbeat_key,
            key=struct_of(schemas.heartbeat_key, self._settings.naming.prefix),
            value_schema=schemas.heartbeat_value,
            value=struct_of(schemas.heartbeat_value, self._now[0]),
        )

    def _transaction(self, status: str, lsn: int) -> SourceRecord:
        schemas = self._schemas
        name = f"{self._source.transaction_id}:{lsn}"
        counts = collections = None
        if status == "END":
            schema = schemas.transaction_value.fields[3].schema.value_schema
            assert schema is not None
            counts = sum(self._counts.values())
            collections = [struct_of(schema, table, count) for table, count in self._counts.items()]
        return SourceRecord(
            topic=self._settings.naming.transaction_topic,
            key_schema=schemas.transaction_key,
            key=struct_of(schemas.transaction_key, name),
            value_schema=schemas.transaction_value,
            value=struct_of(schemas.transaction_value, status, name, counts, collections, self._source.time_us // 1000),
        )

    def _block(self, name: str) -> Struct | None:
        if not self._has_transactions:
            return None
        self._counts[name] = self._counts.get(name, 0) + 1
        schema = self._schemas.message_value.fields[3].schema
        return struct_of(
            schema,
            f"{self._source.transaction_id}:{self._source.lsn}",
            sum(self._counts.values()),
            self._counts[name],
        )

    def _message(self, change: LogicalMessage) -> SourceRecord:
        schemas, source = self._schemas, self._source
        if not change.is_transactional:
            # It was written at once: neither a transaction nor a time of commit belongs to it.
            source.transaction_id, source.time_us, source.origin, source.origin_lsn = None, self._now[1], None, None
        block = self._block("LOGICAL_DECODING_MESSAGE") if change.is_transactional else None
        content = struct_of(schemas.message_block, change.prefix, self._content(change.content))
        return SourceRecord(
            topic=self._settings.naming.message_topic,
            key_schema=schemas.message_key,
            key=struct_of(schemas.message_key, change.prefix),
            value_schema=schemas.message_value,
            value=struct_of(schemas.message_value, "m", self._now[0], source.struct("", ""), block, content),
        )

    # changes of rows

    def _of_table(self, table: TableRecords, change: Message) -> list[SourceRecord]:
        match change:
            case Insert():
                if self._leaves_out("c") or self._was_read(table, change.new):
                    return []
                return [self._row_record(table, "c", table.key(change.new), None, table.row(change.new))]
            case Update():
                was_read = self._was_read(table, change.new)
                if was_read and (change.old is None or self._was_read(table, change.old)):
                    return []
                return self._update(table, change)
            case Delete():
                if self._leaves_out("d") or self._was_read(table, change.old):
                    return []
                return self._delete(table, table.key(change.old), table.row(change.old), ())
            case Truncate():
                if self._leaves_out("t") or self._was_read(table, None):
                    return []
                return [self._row_record(table, "t", None, None, None)]
        raise InvalidValue(f"a share has a {type(change).__name__} of a table")

    def _leaves_out(self, operation: str) -> bool:
        return operation in self._settings.skipped

    def _was_read(self, table: TableRecords, cells: Cells | None) -> bool:
        """Whether a snapshot has seen this change already."""
        return self._reach.has(table.table, cells, self._final_lsn)

    def _update(self, table: TableRecords, change: Update) -> list[SourceRecord]:
        if self._leaves_out("u"):
            return []
        old = change.old if change.is_old_whole else None
        key, row = table.key(change.new, change.old), table.row(change.new, old)
        old_key = None if change.old is None else table.key(change.old)
        before = None if change.old is None else table.row(change.old)
        if self._skips_unchanged and change.is_old_whole and before is not None and before.values == row.values:
            return []
        if old_key is None or old_key.values == (key.values if key else None):
            return [self._row_record(table, "u", key, before, row)]
        assert table.key_schema is not None
        removed = self._delete(table, old_key, before, (ConnectHeader(NEW_KEY, table.key_schema, key),))
        made = self._row_record(table, "c", key, None, row)
        return [*removed, made.with_(headers=(ConnectHeader(OLD_KEY, table.key_schema, old_key),))]

    def _delete(
        self, table: TableRecords, key: Struct | None, before: Struct | None, headers: tuple[ConnectHeader, ...]
    ) -> list[SourceRecord]:
        made = self._row_record(table, "d", key, before, None).with_(headers=headers)
        if not self._has_tombstones:
            return [made]
        tombstone = SourceRecord(topic=table.topic, key_schema=table.key_schema, key=key, headers=headers)
        return [made, tombstone]

    def _row_record(
        self, table: TableRecords, operation: str, key: Struct | None, before: Struct | None, after: Struct | None
    ) -> SourceRecord:
        place = table.table.id
        value = Struct(table.envelope_schema)
        value.values = [
            before,
            after,
            self._source.struct(place.schema, place.name),
            self._block(str(place)) if self._has_transactions else None,
            operation,
            *self._now,
        ]
        return SourceRecord(
            topic=table.topic,
            key_schema=None if key is None else table.key_schema,
            key=key,
            value_schema=table.envelope_schema,
            value=value,
        )
