"""The settings of the JDBC connectors, under the names of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.config.checks import at_least, non_empty_text, one_of_ignoring_case
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Check,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, Delivery, SettingProblem
from millbeck.pipeline.connect.connectors.jdbc.urls import url_problem

_PACKAGE: Final = "millbeck.pipeline.connect.connectors.jdbc"
_HIGH, _LOW = Importance.HIGH, Importance.LOW


def _url_check(url: str | None) -> str | None:
    problem = "is not set" if not url else url_problem(url)
    return None if problem is None else f"Invalid value [hidden] for configuration connection.url: {problem}"


_CONNECTION: Final = (
    ConfigKey(
        name="connection.url",
        kind=STRING,
        check=Check(_url_check, "jdbc:postgresql:, jdbc:mariadb: or jdbc:mysql:", is_whole_message=True),
        importance=_HIGH,
        doc="The database, as jdbc:postgresql://host:5432/database or jdbc:mariadb://host:3306/database; "
        "jdbc:mysql: means the same as jdbc:mariadb:. sslmode, sslrootcert and the like (sslMode, serverSslCert for "
        "MariaDB) may follow as parameters.",
        group="Connection",
        order=1,
    ),
    ConfigKey(
        name="connection.user",
        kind=STRING,
        default=None,
        importance=_HIGH,
        doc="The user.",
        group="Connection",
        order=2,
    ),
    ConfigKey(
        name="connection.password",
        kind=PASSWORD,
        default=None,
        importance=_HIGH,
        doc="The user's password.",
        group="Connection",
        order=3,
    ),
    ConfigKey(
        name="db.timezone",
        kind=STRING,
        default="UTC",
        doc="The time zone of columns of dates and times that have none of their own.",
        group="Connection",
        order=4,
    ),
)

JDBC_SINK_CONFIG: Final = ConfigDef(
    *_CONNECTION,
    ConfigKey(
        name="insert.mode",
        kind=STRING,
        default="insert",
        check=one_of_ignoring_case("insert", "upsert", "update"),
        importance=_HIGH,
        doc="insert: a new row for each record. upsert: the row with the record's key is inserted or replaced. update: "
        "the row with the record's key is changed if there is one.",
        group="Writes",
        order=1,
    ),
    ConfigKey(
        name="batch.size",
        kind=INT,
        default=3000,
        check=at_least(1),
        doc="Rows that are sent to the database at once; without millbeck.exactly.once, also those of a transaction.",
        group="Writes",
        order=2,
    ),
    ConfigKey(
        name="delete.enabled",
        kind=BOOLEAN,
        default=False,
        doc="Whether a record without a value deletes the row of its key; needs pk.mode=record_key.",
        group="Writes",
        order=3,
    ),
    ConfigKey(
        name="millbeck.exactly.once",
        kind=BOOLEAN,
        default=False,
        importance=_HIGH,
        doc="Whether the sink's positions are kept in a table of the database, in the rows' transaction.",
        group="Writes",
        order=4,
    ),
    ConfigKey(
        name="millbeck.positions.table",
        kind=STRING,
        default="millbeck_positions",
        check=non_empty_text(),
        importance=_LOW,
        doc="With millbeck.exactly.once: the table of positions, or schema.table. It is created if it is missing.",
        group="Writes",
        order=5,
    ),
    ConfigKey(
        name="table.name.format",
        kind=STRING,
        default="${topic}",
        check=non_empty_text(),
        doc="The table of a topic's records, where ${topic} is the topic. A dot separates the schema from the table.",
        group="Data Mapping",
        order=1,
    ),
    ConfigKey(
        name="pk.mode",
        kind=STRING,
        default="none",
        check=one_of_ignoring_case("none", "kafka", "record_key", "record_value"),
        importance=_HIGH,
        doc="The primary key. none: there is none. kafka: topic, partition and offset. record_key: the record's key. "
        "record_value: fields of the value.",
        group="Data Mapping",
        order=2,
    ),
    ConfigKey(
        name="pk.fields",
        kind=LIST,
        default=(),
        doc="The columns of the primary key. kafka: three names, or none for __connect_topic, __connect_partition and "
        "__connect_offset. record_key: the one column of a plain key, or fields of the key. record_value: "
        "fields of the "
        "value. Empty means all fields.",
        group="Data Mapping",
        order=3,
    ),
    ConfigKey(
        name="fields.whitelist",
        kind=LIST,
        default=(),
        doc="The fields of the value that are written, beside the key; all of them when empty.",
        group="Data Mapping",
        order=4,
    ),
    ConfigKey(
        name="replace.null.with.default",
        kind=BOOLEAN,
        default=True,
        doc="Whether a null in a field with a default becomes the default.",
        group="Data Mapping",
        order=5,
    ),
    ConfigKey(
        name="auto.create",
        kind=BOOLEAN,
        default=False,
        doc="Whether missing tables are created from the schema of the first record.",
        group="DDL Support",
        order=1,
    ),
    ConfigKey(
        name="auto.evolve",
        kind=BOOLEAN,
        default=False,
        doc="Whether columns are added for new fields that are optional or have a default.",
        group="DDL Support",
        order=2,
    ),
    ConfigKey(
        name="max.retries",
        kind=INT,
        default=10,
        importance=_LOW,
        doc="Accepted and without effect: what a retry can mend is retried as millbeck.restart.policy says.",
        group="Retries",
        order=1,
    ),
    ConfigKey(
        name="retry.backoff.ms",
        kind=INT,
        default=3000,
        importance=_LOW,
        doc="Accepted and without effect, as max.retries.",
        group="Retries",
        order=2,
    ),
)


def _sink_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    mode, keys = values["pk.mode"].lower(), values["pk.fields"]
    if values["insert.mode"].lower() != "insert" and mode == "none":
        yield SettingProblem(
            "pk.mode", f"insert.mode={values['insert.mode']} needs a key: set record_key or record_value"
        )
    if values["delete.enabled"] and mode != "record_key":
        yield SettingProblem("delete.enabled", "rows can be deleted with pk.mode=record_key only")
    if mode == "kafka" and len(keys) not in (0, 3):
        yield SettingProblem(
            "pk.fields", "with pk.mode=kafka name three columns, for topic, partition and offset, or none"
        )


JDBC_SINK: Final = ConnectorClass(
    name="io.confluent.connect.jdbc.JdbcSinkConnector",
    kind=ConnectorKind.SINK,
    doc="Rows of tables of PostgreSQL or MariaDB.",
    delivery=Delivery.UPSERT,
    implementation=f"{_PACKAGE}.sink:JdbcSink",
    problems=_sink_problems,
    config_def=JDBC_SINK_CONFIG,
    extra="postgres",
)

_MODES: Final = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_GRANULARITIES: Final = (
    "connect_logical",
    "micros_long",
    "micros_string",
    "micros_iso_datetime_string",
    "nanos_long",
    "nanos_string",
    "nanos_iso_datetime_string",
)

JDBC_SOURCE_CONFIG: Final = ConfigDef(
    *_CONNECTION,
    ConfigKey(
        name="mode",
        kind=STRING,
        check=one_of_ignoring_case(*_MODES),
        importance=_HIGH,
        doc="Which rows are new. bulk: all of them at each poll. incrementing: those with a larger number in "
        "one column. "
        "timestamp: those with a later timestamp. timestamp+incrementing: both, which also sees changed rows and "
        "loses none of equal timestamps.",
        group="Mode",
        order=1,
    ),
    ConfigKey(
        name="incrementing.column.name",
        kind=STRING,
        default="",
        doc="The column of growing numbers; empty: the one whole-number column of the primary key.",
        group="Mode",
        order=2,
    ),
    ConfigKey(
        name="timestamp.column.name",
        kind=LIST,
        default=(),
        doc="The columns of timestamps; the first of them that is not null counts.",
        group="Mode",
        order=3,
    ),
    ConfigKey(
        name="timestamp.initial",
        kind=LONG,
        default=None,
        importance=_LOW,
        doc="From where timestamps are read at first, in milliseconds since 1970; -1 is the time of the first poll. By "
        "default all rows are read.",
        group="Mode",
        order=4,
    ),
    ConfigKey(
        name="validate.non.null",
        kind=BOOLEAN,
        default=True,
        importance=_LOW,
        doc="Whether the columns of growing numbers and timestamps must not allow null: rows with a null are "
        "never read.",
        group="Mode",
        order=5,
    ),
    ConfigKey(
        name="query",
        kind=STRING,
        default="",
        doc="A query that is read instead of tables; its rows go to the topic topic.prefix.",
        group="Mode",
        order=6,
    ),
    ConfigKey(
        name="query.suffix",
        kind=STRING,
        default="",
        importance=_LOW,
        doc="What stands at the end of each query, after ORDER BY.",
        group="Mode",
        order=7,
    ),
    ConfigKey(
        name="table.whitelist",
        kind=LIST,
        default=(),
        doc="The tables to read, as table or schema.table; default: all of them.",
        group="Tables",
        order=1,
    ),
    ConfigKey(
        name="table.blacklist",
        kind=LIST,
        default=(),
        doc="The tables not to read, as table or schema.table.",
        group="Tables",
        order=2,
    ),
    ConfigKey(
        name="schema.pattern",
        kind=STRING,
        default=None,
        doc="The schemas whose tables are read, as a pattern of SQL's LIKE.",
        group="Tables",
        order=3,
    ),
    ConfigKey(
        name="table.types",
        kind=LIST,
        default=("TABLE",),
        importance=_LOW,
        doc="TABLE, VIEW, or both.",
        group="Tables",
        order=4,
    ),
    ConfigKey(
        name="table.poll.interval.ms",
        kind=LONG,
        default=60_000,
        check=at_least(0),
        importance=_LOW,
        doc="How often new tables are looked for, at most.",
        group="Tables",
        order=5,
    ),
    ConfigKey(
        name="topic.prefix",
        kind=STRING,
        importance=_HIGH,
        doc="What stands before a table's name in the name of its topic; with query, the topic.",
        group="Connector",
        order=1,
    ),
    ConfigKey(
        name="poll.interval.ms",
        kind=INT,
        default=5000,
        check=at_least(0),
        importance=_HIGH,
        doc="How long to wait when there was nothing new; in bulk mode, between two readings.",
        group="Connector",
        order=2,
    ),
    ConfigKey(
        name="batch.max.rows",
        kind=INT,
        default=10_000,
        check=at_least(1),
        importance=_LOW,
        doc="Rows of a table that are read in one turn; rows of one timestamp are never divided.",
        group="Connector",
        order=3,
    ),
    ConfigKey(
        name="timestamp.delay.interval.ms",
        kind=LONG,
        default=0,
        check=at_least(0),
        importance=_HIGH,
        doc="How old a timestamp must be before its row is read: longer than a transaction takes from setting "
        "it to its "
        "commit, or rows are lost.",
        group="Connector",
        order=4,
    ),
    ConfigKey(
        name="timestamp.granularity",
        kind=STRING,
        default="connect_logical",
        check=one_of_ignoring_case(*_GRANULARITIES),
        importance=_LOW,
        doc="How timestamps are written: as Kafka's Timestamp, whose milliseconds cut off what is finer, or in "
        "micro- or nanoseconds as number or text.",
        group="Connector",
        order=5,
    ),
    ConfigKey(
        name="numeric.mapping",
        kind=STRING,
        default="none",
        check=one_of_ignoring_case("none", "precision_only", "best_fit", "best_fit_eager_double"),
        importance=_LOW,
        doc="none: NUMERIC columns are Decimals. precision_only: without digits after the point and with at most 18, "
        "they are whole numbers. best_fit: also with digits after the point, as FLOAT64, which rounds. "
        "best_fit_eager_double: all with digits after the point are FLOAT64.",
        group="Connector",
        order=6,
    ),
)


def _source_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    mode = values["mode"].lower()
    if "timestamp" in mode and not values["timestamp.column.name"]:
        yield SettingProblem("timestamp.column.name", f"mode={mode} needs the column of timestamps")
    if values["query"] and (values["table.whitelist"] or values["table.blacklist"]):
        yield SettingProblem("query", "is read instead of tables: remove table.whitelist and table.blacklist")
    if values["table.whitelist"] and values["table.blacklist"]:
        yield SettingProblem("table.blacklist", "cannot be combined with table.whitelist: use one of them")
    if values["query"] and "incrementing" in mode and not values["incrementing.column.name"]:
        yield SettingProblem("incrementing.column.name", "a query has no primary key: name the column of numbers")


def _offset_problem(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> str | None:
    if not ({"table", "query"} & set(partition)):
        return "Partition objects should contain the key 'table' or 'query'"
    for name in ("incrementing", "timestamp", "timestamp_nanos"):
        value = None if offset is None else offset.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            return f"The value for the '{name}' key in the offset is expected to be a Long value"
    return None


JDBC_SOURCE: Final = ConnectorClass(
    name="io.confluent.connect.jdbc.JdbcSourceConnector",
    kind=ConnectorKind.SOURCE,
    doc="New rows of tables or of a query of PostgreSQL or MariaDB.",
    implementation=f"{_PACKAGE}.source:JdbcSource",
    problems=_source_problems,
    offset_problem=_offset_problem,
    config_def=JDBC_SOURCE_CONFIG,
    extra="postgres",
)
