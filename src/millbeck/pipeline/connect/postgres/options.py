"""The settings of the connector, with Debezium's names and defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.config.checks import at_least, between, non_empty_text, one_of, parsed_by
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    REQUIRED,
    STRING,
    Check,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.postgres.filters import key_columns_of, patterns_of

SLOT_NAME: Final = re.compile(r"[a-z0-9_]{1,63}")
SNAPSHOT_MODES: Final = ("initial", "always", "initial_only", "no_data", "never", "when_needed")
OPERATIONS: Final = ("c", "u", "d", "t", "none")

CONNECTION, FILTERS, VALUES, SNAPSHOT, STREAM, RECORDS = (
    "Connection",
    "Filters",
    "Values",
    "Snapshot",
    "Stream",
    "Records",
)


def _patterns() -> Check:
    return _text_check(patterns_of, "regular expressions, separated by commas")


def _text_check(parse: Callable[[str], object], allowed: str) -> Check:
    def problem(value: str | None) -> str | None:
        try:
            parse(value or "")
        except ValueError as error:
            return str(error)
        return None

    return Check(problem, allowed)


def _slot_name() -> Check:
    return Check(
        lambda value: None if value and SLOT_NAME.fullmatch(value) else "use at most 63 of a-z, 0-9 and _",
        "a-z, 0-9 and _",
    )


def _topic_text() -> Check:
    return Check(
        lambda value: (
            None if value and re.fullmatch(r"[A-Za-z0-9._-]+", value) else "use letters, digits, dots, dashes and _"
        ),
        "letters, digits, dots, dashes and underscores",
    )


def _operations(value: tuple[str, ...]) -> None:
    wrong = [each for each in value if each not in OPERATIONS]
    if wrong:
        raise ValueError(f"{wrong[0]} is none of {', '.join(OPERATIONS)}")


def _only(allowed: str, value: tuple[str, ...]) -> None:
    wrong = [each for each in value if each != allowed]
    if wrong:
        raise ValueError(f"{wrong[0]} is not there, only {allowed}")


def _key(
    name: str,
    kind: Any,
    default: Any,
    doc: str,
    group: str,
    check: Check | None = None,
    importance: Importance = Importance.MEDIUM,
) -> ConfigKey:
    return ConfigKey(name=name, kind=kind, default=default, doc=doc, group=group, check=check, importance=importance)


_HIGH, _LOW = Importance.HIGH, Importance.LOW

POSTGRES_OPTIONS: Final = ConfigDef(
    _key("database.hostname", STRING, REQUIRED, "The host of the database.", CONNECTION, non_empty_text(), _HIGH),
    _key("database.port", INT, 5432, "Its port.", CONNECTION, between(1, 65_535), _HIGH),
    _key("database.user", STRING, REQUIRED, "The role: with REPLICATION, and SELECT on the tables.", CONNECTION,
         non_empty_text(), _HIGH),
    _key("database.password", PASSWORD, None, "Its password.", CONNECTION, None, _HIGH),
    _key("database.dbname", STRING, REQUIRED, "The database whose changes are read.", CONNECTION, non_empty_text(),
         _HIGH),
    _key("database.sslmode", STRING, "prefer", "Whether connections use TLS, and what is checked.", CONNECTION,
         one_of("disable", "allow", "prefer", "require", "required", "verify-ca", "verify-full")),
    _key("database.sslrootcert", STRING, None, "A file with the certificates of authorities to trust.", CONNECTION),
    _key("database.sslcert", STRING, None, "A file with the client's certificate.", CONNECTION),
    _key("database.sslkey", STRING, None, "A file with the client's key.", CONNECTION),
    _key("database.sslpassword", PASSWORD, None, "The password of that key.", CONNECTION),
    _key("database.tcpKeepAlive", BOOLEAN, True, "Whether TCP finds out that the other side is gone.", CONNECTION,
         None, _LOW),
    _key("topic.prefix", STRING, REQUIRED, "The name of this database in topics and offsets; never change it.",
         RECORDS, _topic_text(), _HIGH),
    _key("plugin.name", STRING, "pgoutput", "The output plugin; only PostgreSQL's own is supported.", STREAM,
         one_of("pgoutput")),
    _key("slot.name", STRING, "debezium", "The replication slot; it is made when it is not there.", STREAM,
         _slot_name()),
    _key("slot.drop.on.stop", BOOLEAN, False,
         "Whether the slot is dropped when the connector stops: what changes then is lost. For tests.", STREAM),
    _key("slot.failover", BOOLEAN, False, "Whether the slot is made with FAILOVER, on PostgreSQL 17 and later.",
         STREAM, None, _LOW),
    _key("publication.name", STRING, "dbz_publication", "The publication that chooses the tables.", STREAM,
         non_empty_text()),
    _key("publication.autocreate.mode", STRING, "all_tables",
         "What is done about the publication: all_tables (made for all tables when it is not there; needs a "
         "superuser), filtered (made for the captured tables, and kept to them), disabled (it has to be there).",
         STREAM, one_of("all_tables", "filtered", "disabled")),
    _key("publish.via.partition.root", BOOLEAN, False,
         "Whether changes of partitions are those of the partitioned table, in a publication that is made here.",
         STREAM),
    _key("status.update.interval.ms", INT, 10_000, "How often the server is told what is in the log, at least.",
         STREAM, between(100, 600_000), _LOW),
    _key("offset.mismatch.strategy", STRING, "trust_offset",
         "What is done when the slot has been moved beyond the offset in the log, so that changes may be missing: "
         "trust_offset (fail), trust_slot or trust_greater_lsn (go on from the slot), no_validation.", STREAM,
         one_of("no_validation", "trust_offset", "trust_slot", "trust_greater_lsn")),
    _key("millbeck.spool.directory", STRING, None,
         "Where a transaction of more than 16 MB waits until it is written; the tasks read it there, so on a cluster "
         "it has to be shared. By default a directory for temporary files.", STREAM),
    _key("schema.include.list", STRING, "", "Schemas to capture, as regular expressions.", FILTERS, _patterns(), _HIGH),
    _key("schema.exclude.list", STRING, "", "Schemas to leave out.", FILTERS, _patterns()),
    _key("table.include.list", STRING, "", "Tables to capture, as schema.table.", FILTERS, _patterns(), _HIGH),
    _key("table.exclude.list", STRING, "", "Tables to leave out.", FILTERS, _patterns()),
    _key("column.include.list", STRING, "", "Columns to capture, as schema.table.column.", FILTERS, _patterns()),
    _key("column.exclude.list", STRING, "", "Columns to leave out.", FILTERS, _patterns()),
    _key("message.key.columns", STRING, None, "Columns of keys, as schema.table:a,b; and so on.", FILTERS,
         _text_check(key_columns_of, "table:column,column;...")),
    _key("message.prefix.include.list", STRING, "", "Prefixes of messages of pg_logical_emit_message to capture.",
         FILTERS, _patterns()),
    _key("message.prefix.exclude.list", STRING, "", "Prefixes of such messages to leave out.", FILTERS, _patterns()),
    _key("decimal.handling.mode", STRING, "precise", "Numbers of type numeric: precise, double or string.", VALUES,
         one_of("precise", "double", "string")),
    _key("time.precision.mode", STRING, "adaptive",
         "Dates and times: adaptive (milliseconds or microseconds, as the column has), adaptive_time_microseconds, "
         "microseconds, nanoseconds, or connect (Kafka's types, in milliseconds).", VALUES,
         one_of("adaptive", "adaptive_time_microseconds", "microseconds", "nanoseconds", "connect")),
    _key("interval.handling.mode", STRING, "numeric", "Intervals: numeric (microseconds) or string (ISO 8601).", VALUES,
         one_of("numeric", "string"), _LOW),
    _key("binary.handling.mode", STRING, "bytes", "Values of bytea.", VALUES,
         one_of("bytes", "base64", "base64-url-safe", "hex"), _LOW),
    _key("hstore.handling.mode", STRING, "json", "Values of hstore.", VALUES, one_of("json", "map"), _LOW),
    _key("money.fraction.digits", INT, 2, "The digits after the point of the currency of money.", VALUES,
         between(0, 18), _LOW),
    _key("include.unknown.datatypes", BOOLEAN, False,
         "Whether columns of types without a mapping are the bytes of their text, instead of left out.", VALUES),
    _key("unavailable.value.placeholder", STRING, "__debezium_unavailable_value",
         "What stands for a large value that an update left alone; hex: before hexadecimal bytes.", VALUES),
    _key("event.converting.failure.handling.mode", STRING, "fail",
         "A value that its type cannot hold, such as NaN: fail (errors.tolerance decides about the record), warn or "
         "skip (the value is null).", VALUES, one_of("fail", "warn", "skip")),
    _key("schema.name.adjustment.mode", STRING, "none", "Names of schemas for Avro.", RECORDS,
         one_of("none", "avro", "avro_unicode"), _LOW),
    _key("field.name.adjustment.mode", STRING, "none", "Names of fields for Avro.", RECORDS,
         one_of("none", "avro", "avro_unicode"), _LOW),
    _key("tombstones.on.delete", BOOLEAN, True, "Whether a delete is followed by a record without a value.", RECORDS),
    _key("skipped.operations", LIST, ("t",), "Changes that make no records: c, u, d, t, or none.", RECORDS,
         parsed_by(_operations, "c, u, d, t, none")),
    _key("skip.messages.without.change", BOOLEAN, False,
         "Whether updates that change no captured column are left out; needs REPLICA IDENTITY FULL.", RECORDS),
    _key("provide.transaction.metadata", BOOLEAN, False,
         "Whether records say where in their transaction they are, and its begin and end have records.", RECORDS),
    _key("include.schema.comments", BOOLEAN, False, "Whether comments of columns are in the schemas.", RECORDS, None,
         _LOW),
    _key("topic.delimiter", STRING, ".", "What stands between the parts of a topic's name.", RECORDS, _topic_text(),
         _LOW),
    _key("topic.heartbeat.prefix", STRING, "__debezium-heartbeat", "The first part of the name of the heartbeats' "
         "topic.", RECORDS, _topic_text(), _LOW),
    _key("topic.transaction", STRING, "transaction", "The last part of the name of the transactions' topic.", RECORDS,
         _topic_text(), _LOW),
    _key("heartbeat.interval.ms", INT, 0,
         "How often a heartbeat is written; 0 for never. The slot moves on without them.", RECORDS, at_least(0)),
    _key("heartbeat.action.query", STRING, None, "A statement to run with each heartbeat.", RECORDS, None, _LOW),
    _key("snapshot.mode", STRING, "initial",
         "When the tables are read as they are: initial (when there is no offset), always (at each start), "
         "initial_only (and nothing after it), no_data or never, when_needed (also when the slot is lost).", SNAPSHOT,
         one_of(*SNAPSHOT_MODES)),
    _key("snapshot.include.collection.list", STRING, "", "The captured tables that a snapshot reads; all by default.",
         SNAPSHOT, _patterns()),
    _key("millbeck.snapshot.chunk.rows", INT, 50_000, "The rows that one task reads at a time.", SNAPSHOT,
         between(100, 10_000_000)),
    _key("signal.data.collection", STRING, None, "The table of signals, as schema.table.", SNAPSHOT),
    _key("signal.enabled.channels", LIST, ("source",), "Where signals come from: only the table.", SNAPSHOT,
         parsed_by(lambda value: _only("source", value), "source"), _LOW),
    _key("incremental.snapshot.chunk.size", INT, 1024, "The rows of a chunk of an incremental snapshot, at least.",
         SNAPSHOT, between(1, 10_000_000)),
    *(
        _key(name, LONG, None, f"Has no effect: {why}.", STREAM, None, _LOW)
        for name, why in (
            ("max.batch.size", "shares are cut by bytes"),
            ("max.queue.size", "64 MB are held at most"),
            ("max.queue.size.in.bytes", "64 MB are held at most"),
            ("poll.interval.ms", "changes wake the connector"),
            ("slot.max.retries", "millbeck.restart.policy says how often"),
            ("slot.retry.delay.ms", "waits grow by themselves"),
            ("snapshot.fetch.size", "rows are streamed"),
            ("snapshot.max.threads", "tasks.max says how many"),
            ("signal.poll.interval.ms", "signals are seen as they come"),
        )
    ),
)  # fmt: skip


EXCLUSIVE: Final = (
    ("schema.include.list", "schema.exclude.list"),
    ("table.include.list", "table.exclude.list"),
    ("column.include.list", "column.exclude.list"),
    ("message.prefix.include.list", "message.prefix.exclude.list"),
)


def contradictions(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings that are wrong together, each with what is wrong."""
    for included, excluded in EXCLUSIVE:
        if values[included] and values[excluded]:
            yield excluded, f"{included} is given too: leave one of them out"
    signals = values["signal.data.collection"]
    if signals and signals.count(".") != 1:
        yield "signal.data.collection", "is not of the form schema.table"
    placeholder = values["unavailable.value.placeholder"] or ""
    if placeholder.startswith("hex:"):
        try:
            bytes.fromhex(placeholder[4:])
        except ValueError:
            yield "unavailable.value.placeholder", "has no hexadecimal bytes behind hex:"
