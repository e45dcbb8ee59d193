"""The JDBC connectors on real servers of PostgreSQL and MariaDB: what is written is what is read, bit for bit."""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("psycopg")
pytest.importorskip("pymysql")

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.debezium_types import MICRO_TIMESTAMP
from millbeck.pipeline.connect.connectors.interface import (
    OffsetRange,
    RejectedRecord,
    SinkShare,
    SourceProgress,
    SourceShare,
)
from millbeck.pipeline.connect.connectors.jdbc.opening import connected
from millbeck.pipeline.connect.connectors.jdbc.sink import JdbcSink
from millbeck.pipeline.connect.connectors.jdbc.source import JdbcSource
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.logical import (
    MS_PER_DAY,
    Instant,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.moments import days_from
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.model.schema import (
    INT64_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from tests.interop.connect.databases import PASSWORD, USER
from tests.unit.pipeline.connect.connectors.listed_records import ListedRecords, made, sink_record, written

_NUMBERS = itertools.count()
A0 = TopicPartition("orders", 0)


@pytest.fixture
def topic() -> str:
    return f"orders_{next(_NUMBERS)}"


def login(url: str) -> dict[str, str]:
    return {"connection.url": url, "connection.user": USER, "connection.password": PASSWORD}


def sink(url: str, **settings: str) -> JdbcSink:
    found: JdbcSink = made(JdbcSink, login(url) | {name.replace("_", "."): text for name, text in settings.items()})
    return found


class Database:
    """A connection of the dialect's own driver, for looking."""

    def __init__(self, url: str) -> None:
        self._sink = sink(url)
        self.connection = connected(self._sink.dialect(), self._sink.values, "test")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            found = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        self.connection.commit()
        return found


@pytest.fixture
def look(database: str) -> Iterator[Database]:
    opened = Database(database)
    yield opened
    opened.connection.close()


class Positions:
    """What a worker would have committed."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}

    def get(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.known.get(str(dict(partition)))


def turns(source: JdbcSource, positions: Positions, *, at_most: int = 100) -> list[Any]:
    """Plan, read and commit until there is nothing new."""
    found: list[Any] = []
    for _ in range(at_most):
        plan = source.plan(positions)  # type: ignore[arg-type]
        if not plan.shares:
            return found
        for share in plan.shares:
            for item in source.read(share):
                if isinstance(item, (SourceRecord, RejectedRecord)):
                    found.append(item)
                    partition, offset = item.source_partition, item.source_offset
                else:
                    assert isinstance(item, SourceProgress)
                    partition, offset = item.partition, item.offset
                if partition is not None and offset is not None:
                    positions.known[str(dict(partition))] = dict(offset)
        if plan.again_s != 0:
            return found
    raise AssertionError("there is always something new")


KEY = struct_schema([Field("id", INT64_SCHEMA)])


def key(number: int) -> tuple[Schema, Struct]:
    return KEY, Struct.of(KEY, {"id": number})


FIELDS: dict[str, tuple[Schema, list[Any]]] = {
    "i8": (Schema(SchemaType.INT8, True), [Int8(-128), Int8(127), None]),
    "i16": (Schema(SchemaType.INT16, True), [Int16(-(2**15)), Int16(2**15 - 1), None]),
    "i32": (Schema(SchemaType.INT32, True), [Int32(-(2**31)), Int32(2**31 - 1), None]),
    "i64": (Schema(SchemaType.INT64, True), [-(2**63), 2**63 - 1, 0, None]),
    "f32": (Schema(SchemaType.FLOAT32, True), [Float32(1.1), Float32(-3.4e38), Float32(1e-38), Float32(16777217.0)]),
    "f64": (Schema(SchemaType.FLOAT64, True), [0.1, -1.7976931348623157e308, 5e-324, 1 / 3, None]),
    "yes": (Schema(SchemaType.BOOLEAN, True), [True, False, None]),
    "words": (
        Schema(SchemaType.STRING, True),
        ["", "it's 100 % \\ \"quoted\" ${topic}", "naïve 🚀", "%s {0}\n\t", "x" * 100_000, None],
    ),
    "raw": (Schema(SchemaType.BYTES, True), [b"", bytes(range(256)), b"\\x00'", None]),
    "price": (
        decimal_schema(4, optional=True),
        [Decimal("-0.0001"), Decimal("12345678901234567890123456.7890"), Decimal("0.0000"), None],
    ),
    "day": (
        date_schema(optional=True),
        [Instant(days_from(*day) * MS_PER_DAY) for day in ((1969, 12, 31), (1, 1, 1), (9999, 12, 31), (1582, 10, 10))],
    ),
    "at": (time_schema(optional=True), [Instant(0), Instant(MS_PER_DAY - 1), Instant(1), None]),
    "moment": (
        timestamp_schema(optional=True),
        [Instant(-1), Instant(-62_135_596_800_000), Instant(253_402_300_799_999), Instant(1_700_000_000_123), None],
    ),
    "micros": (
        Schema(SchemaType.INT64, True, name=MICRO_TIMESTAMP, version=1),
        [-1, 1_700_000_000_123_456, -62_135_596_800_000_000, None],
    ),
}  # fmt: skip
VALUE = struct_schema([Field("id", INT64_SCHEMA), *(Field(name, schema) for name, (schema, _) in FIELDS.items())])


def generated(count: int, seed: int = 7) -> list[Struct]:
    chance = random.Random(seed)
    return [
        Struct.of(VALUE, {"id": number} | {name: chance.choice(values) for name, (_, values) in FIELDS.items()})
        for number in range(count)
    ]


def source_settings(url: str, topic: str, **settings: str) -> dict[str, str]:
    given = {"table.whitelist": topic, "topic.prefix": "", "mode": "incrementing"}
    return login(url) | given | {name.replace("_", "."): text for name, text in settings.items()}


def test_every_value_is_read_as_it_was_written(database: str, topic: str) -> None:
    rows = generated(200)
    writer = sink(database, auto_create="true", pk_mode="record_value", pk_fields="id", batch_size="37")
    assert not list(writer.check())
    listed = written(writer, [sink_record(n, VALUE, row, topic=topic) for n, row in enumerate(rows)])
    assert not listed.rejected
    writer.close()
    source = made(JdbcSource, source_settings(database, topic, batch_max_rows="33"))
    assert not list(source.check())
    found = turns(source, Positions())
    assert [record.topic for record in found] == [topic] * 200
    for record, row in zip(found, rows, strict=True):
        for name in ("id", *FIELDS):
            read, wanted = record.value.without_default(name), row.without_default(name)
            if name == "micros" and wanted is not None:
                wanted = Instant(wanted // 1000)
            if name == "yes" and "mariadb" in database and wanted is not None:
                wanted = int(wanted)
            assert read == wanted, name
            assert name in ("micros", "yes", "i8") or type(read) is type(wanted), name


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_microseconds_are_kept_where_they_are_asked_for(postgresql: str, topic: str, zone: str) -> None:
    schema = struct_schema([Field("id", INT64_SCHEMA), Field("micros", FIELDS["micros"][0])])
    moments = [-1, 1_700_000_000_123_456, 1_712_345_678_000_001]
    writer = sink(postgresql, auto_create="true", pk_mode="record_value", pk_fields="id", db_timezone=zone)
    records = [
        sink_record(n, schema, Struct.of(schema, {"id": n, "micros": each}), topic=topic)
        for n, each in enumerate(moments)
    ]
    written(writer, records)
    settings = {"timestamp.granularity": "micros_long", "db.timezone": zone}
    source = made(JdbcSource, source_settings(postgresql, topic) | settings)
    assert [record.value["micros"] for record in turns(source, Positions())] == moments


def test_postgresql_keeps_what_is_not_finite(postgresql: str, topic: str) -> None:
    schema = struct_schema(
        [
            Field("id", INT64_SCHEMA),
            Field("f32", Schema(SchemaType.FLOAT32)),
            Field("f64", Schema(SchemaType.FLOAT64)),
            Field("moment", timestamp_schema()),
            Field("day", date_schema()),
            Field("many", array_schema(Schema(SchemaType.STRING, True))),
        ]
    )
    infinite = (9_223_372_036_825_200_000, -9_223_372_036_832_400_000)
    rows = [
        (math.inf, Instant(infinite[0]), Instant(days_from(10_000, 1, 1) * MS_PER_DAY), ["a,b", None, 'q"\\{}']),
        (-math.inf, Instant(infinite[1]), Instant(days_from(-43, 3, 15) * MS_PER_DAY), []),
        (math.nan, Instant(days_from(200_000, 2, 29) * MS_PER_DAY + 1), Instant(0), ["NULL"]),
    ]
    writer = sink(postgresql, auto_create="true", pk_mode="record_value", pk_fields="id")
    records = [
        sink_record(
            n,
            schema,
            Struct.of(schema, {"id": n, "f32": row[0], "f64": row[0], "moment": row[1], "day": row[2], "many": row[3]}),
            topic=topic,
        )
        for n, row in enumerate(rows)
    ]
    assert not written(writer, records).rejected
    found = turns(made(JdbcSource, source_settings(postgresql, topic)), Positions())
    for record, row in zip(found, rows, strict=True):
        for name in ("f32", "f64"):
            assert record.value[name] == row[0] or (math.isnan(row[0]) and math.isnan(record.value[name]))
        assert (record.value["moment"], record.value["day"]) == row[1:3]
    assert Database(postgresql).rows(f'SELECT many FROM "{topic}" ORDER BY id') == [(row[3],) for row in rows]


def test_mariadb_rejects_what_it_cannot_hold(mariadb: str, topic: str) -> None:
    schema = struct_schema([Field("id", INT64_SCHEMA), Field("f64", Schema(SchemaType.FLOAT64, True)),
                            Field("day", date_schema(optional=True))])  # fmt: skip
    writer = sink(mariadb, auto_create="true", pk_mode="record_value", pk_fields="id")
    values: list[dict[str, Any]] = [
        {"f64": 1.5},
        {"f64": math.nan},
        {"f64": math.inf},
        {"day": Instant(days_from(10_000, 1, 1) * MS_PER_DAY)},
        {"f64": 2.5},
    ]
    listed = written(
        writer,
        [sink_record(n, schema, Struct.of(schema, {"id": n} | each), topic=topic) for n, each in enumerate(values)],
    )
    assert [offset for offset, _ in listed.rejected] == [1, 2, 3]
    assert Database(mariadb).rows(f"SELECT id, f64 FROM `{topic}` ORDER BY id") == [("0", "1.5"), ("4", "2.5")]


def test_rows_that_the_database_refuses_are_found_in_their_batch(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    look.rows(f"CREATE TABLE {quote}{topic}{quote} (id BIGINT PRIMARY KEY, word VARCHAR(5))")
    schema = struct_schema([Field("id", INT64_SCHEMA), Field("word", Schema(SchemaType.STRING, True))])
    words = ["one", "far too long", "\ud800", "three", None, "seven more"]
    records = [
        sink_record(n, schema, Struct.of(schema, {"id": n, "word": word}), topic=topic) for n, word in enumerate(words)
    ]
    writer = sink(database, pk_mode="record_value", pk_fields="id")
    listed = written(writer, records)
    assert sorted(offset for offset, _ in listed.rejected) == [1, 2, 5]
    assert [int(row[0]) for row in look.rows(f"SELECT id FROM {quote}{topic}{quote} ORDER BY id")] == [0, 3, 4]
    # Without tolerance, the share fails and nothing of it stays.
    with pytest.raises(InvalidValue, match=r"(too long|half a character)"):
        written(sink(database), [each.with_(value=each.value) for each in records[1:]], tolerates=False)


def test_upsert_update_and_delete(database: str, topic: str, look: Database) -> None:
    schema = struct_schema([Field("id", INT64_SCHEMA), Field("amount", INT64_SCHEMA)])

    def row(offset: int, number: int, amount: int | None) -> Any:
        value = None if amount is None else Struct.of(schema, {"id": number, "amount": amount})
        return sink_record(offset, None if amount is None else schema, value, key=key(number), topic=topic)

    settings = {"auto_create": "true", "pk_mode": "record_key", "delete_enabled": "true"}
    records = [
        row(0, 1, 10),
        row(1, 2, 20),
        row(2, 1, 11),
        row(3, 2, None),
        row(4, 3, 30),
        row(5, 2, 21),
        row(6, 3, None),
    ]
    quote = "`" if "mariadb" in database else '"'
    query = f"SELECT id, amount FROM {quote}{topic}{quote} ORDER BY id"

    def numbers() -> list[tuple[int, ...]]:
        return [tuple(map(int, each)) for each in look.rows(query)]

    for _ in range(2):  # a repetition sets the same rows
        assert not written(sink(database, insert_mode="upsert", **settings), records).rejected
        assert numbers() == [(1, 11), (2, 21)]
    written(sink(database, insert_mode="update", **settings), [row(7, 1, 12), row(8, 9, 90)])
    assert numbers() == [(1, 12), (2, 21)]
    with pytest.raises(InvalidValue, match=r"delete\.enabled"):
        written(sink(database, pk_mode="record_key", pk_fields="id"), [row(9, 1, None)], tolerates=False)


def test_tables_are_created_and_extended(database: str, topic: str, look: Database) -> None:
    first = struct_schema([Field("id", INT64_SCHEMA)])
    second = struct_schema([*first.fields, Field("note", Schema(SchemaType.STRING, True)),
                            Field("level", Schema(SchemaType.INT32, default=Int32(7)))])  # fmt: skip
    third = struct_schema([*first.fields, Field("must", INT64_SCHEMA)])
    one = sink_record(0, first, Struct.of(first, {"id": 1}), topic=topic)
    two = sink_record(1, second, Struct.of(second, {"id": 2, "note": "new", "level": 8}), topic=topic)
    with pytest.raises(ConnectError, match=r"is missing: create it, or set auto\.create=true"):
        written(sink(database), [one])
    problems = list(made(JdbcSink, login(database) | {"topics": topic}).check())
    assert [each.setting for each in problems] == ["table.name.format"]
    creating = {"auto_create": "true", "pk_mode": "record_value", "pk_fields": "id"}
    with pytest.raises(ConnectError, match=r"has no columns note, level: add them, or set auto\.evolve=true"):
        written(sink(database, **creating), [one, two])
    for exactly_once in ("false", "true"):
        writer = sink(
            database, insert_mode="upsert", auto_evolve="true", millbeck_exactly_once=exactly_once, **creating
        )
        writer.start()
        if exactly_once == "true":
            writer.alter_positions({TopicPartition(topic, 0): None})
        written(writer, [one, two])
    quote = "`" if "mariadb" in database else '"'
    rows = look.rows(f"SELECT id, note, level FROM {quote}{topic}{quote} ORDER BY id")
    assert [tuple(map(str, row)) for row in rows] == [("1", "None", "7"), ("2", "new", "8")]
    with pytest.raises(ConnectError, match="required and has no default"):
        written(
            sink(database, auto_evolve="true", **creating),
            [sink_record(2, third, Struct.of(third, {"id": 3, "must": 1}), topic=topic)],
        )


def test_positions_and_rows_are_one_transaction(database: str, topic: str, look: Database) -> None:
    place = TopicPartition(topic, 0)
    settings = {"auto_create": "true", "millbeck_exactly_once": "true", "batch_size": "3"}
    records = [sink_record(n, KEY, key(n)[1], topic=topic) for n in range(20)]
    writer = sink(database, **settings)
    writer.start()
    assert writer.positions({place: 0}) == {place: 0}
    listed = ListedRecords(records[:8])
    writer.write(listed.share, listed)
    assert writer.positions({place: 0}) == {place: 8}
    # The worker died before it committed: another attempt at the same share writes nothing.
    again = ListedRecords(records[:8])
    with pytest.raises(RetriableError, match="written up to 8 in the database, not 0"):
        sink(database, **settings).write(again.share, again)

    class Broken(ListedRecords):
        def __iter__(self) -> Iterator[Any]:
            yield from records[8:15]
            raise OSError("the task is killed")

    broken = Broken(records[8:16])
    with pytest.raises(OSError, match="killed"):
        writer.write(broken.share, broken)
    assert writer.positions({place: 0}) == {place: 8}
    # Offsets without a record (control records) are passed over.
    rest = ListedRecords(records[8:16])
    writer.write(SinkShare(ranges=(OffsetRange(place, 8, 18),)), rest)
    assert writer.positions({place: 3}) == {place: 18}
    quote = "`" if "mariadb" in database else '"'
    rows = look.rows(f"SELECT id FROM {quote}{topic}{quote} ORDER BY id")
    assert [int(row[0]) for row in rows] == list(range(16))
    writer.alter_positions({place: 3})
    assert writer.positions({place: 18}) == {place: 3}
    writer.alter_positions({place: None})
    assert writer.positions({place: 5}) == {place: 5}


def test_of_two_attempts_at_a_share_one_writes(database: str, topic: str, look: Database) -> None:
    settings = {"auto_create": "true", "millbeck_exactly_once": "true"}
    sink(database, **settings).start()
    written(sink(database, **settings), [sink_record(0, KEY, key(0)[1], topic=topic)])
    entered, go = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    class Slow(ListedRecords):
        def __iter__(self) -> Iterator[Any]:
            yield sink_record(1, KEY, key(1)[1], topic=topic)
            entered.set()
            assert go.wait(20)

    def attempt(records: ListedRecords) -> None:
        try:
            writer = sink(database, **settings)
            writer.write(SinkShare(ranges=(OffsetRange(TopicPartition(topic, 0), 1, 2),)), records)
        except RetriableError as error:
            failures.append(error)

    slow = threading.Thread(target=attempt, args=[Slow([])])
    slow.start()
    assert entered.wait(20)
    other = threading.Thread(target=attempt, args=[ListedRecords([sink_record(1, KEY, key(1)[1], topic=topic)])])
    other.start()
    go.set()
    slow.join(30)
    other.join(30)
    assert [type(each) for each in failures] == [RetriableError]
    quote = "`" if "mariadb" in database else '"'
    assert [int(row[0]) for row in look.rows(f"SELECT id FROM {quote}{topic}{quote} ORDER BY id")] == [0, 1]


def test_rows_of_one_timestamp_are_never_divided(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    kind = "DATETIME(6)" if "mariadb" in database else "TIMESTAMP"
    look.rows(f"CREATE TABLE {quote}{topic}{quote} (id BIGINT PRIMARY KEY, changed {kind} NOT NULL)")
    moments = ["2024-03-31 01:30:00", "2024-03-31 01:30:00.000001", "2024-03-31 02:30:00"]
    for number in range(30):
        look.rows(f"INSERT INTO {quote}{topic}{quote} VALUES ({number}, '{moments[number // 10]}')")
    for mode in ("timestamp", "timestamp+incrementing"):
        extra = {"mode": mode, "timestamp.column.name": "changed", "batch.max.rows": "7"}
        positions = Positions()
        source = made(JdbcSource, source_settings(database, topic) | extra)
        found = turns(source, positions)
        read = [record.value["id"] for record in found]
        assert sorted(read) == list(range(30))
        assert [each // 10 for each in read] == [0] * 10 + [1] * 10 + [2] * 10
        assert len({str(record.source_offset) for record in found}) == (3 if mode == "timestamp" else 30)
        # From each offset that may have been committed, nothing is lost; with both columns nothing is repeated.
        for place, record in enumerate(found):
            if record.source_offset is None:
                continue
            later = Positions()
            later.known = {str(dict(record.source_partition)): dict(record.source_offset or {})}
            rest = [
                each.value["id"] for each in turns(made(JdbcSource, source_settings(database, topic) | extra), later)
            ]
            assert set(read[place + 1 :]) <= set(rest)
            assert mode == "timestamp" or rest == read[place + 1 :]
        look.rows(f"UPDATE {quote}{topic}{quote} SET changed = '2024-04-01 00:00:00' WHERE id = 4")
        assert [record.value["id"] for record in turns(source, positions)] == [4]
        look.rows(f"UPDATE {quote}{topic}{quote} SET changed = '{moments[0]}' WHERE id = 4")


def test_timestamps_wait_for_the_delay_and_begin_where_they_are_told(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    kind, now = ("DATETIME(6)", "UTC_TIMESTAMP(6)") if "mariadb" in database else ("TIMESTAMPTZ", "clock_timestamp()")
    look.rows(f"CREATE TABLE {quote}{topic}{quote} (id BIGINT PRIMARY KEY, changed {kind} NOT NULL)")
    look.rows(f"INSERT INTO {quote}{topic}{quote} VALUES (1, '2020-01-01 00:00:00'), (2, {now})")
    extra = {"mode": "timestamp", "timestamp.column.name": "changed"}
    whole = source_settings(database, topic) | extra

    def ids(**settings: str) -> list[int]:
        given = whole | {name.replace("_", "."): text for name, text in settings.items()}
        return [record.value["id"] for record in turns(made(JdbcSource, given), Positions())]

    assert ids() == [1, 2]
    assert ids(timestamp_delay_interval_ms="60000") == [1]
    assert ids(timestamp_initial="1577836800001") == [2]
    assert ids(timestamp_initial="1577836800000") == [1, 2]
    positions, source = Positions(), made(JdbcSource, whole | {"timestamp.initial": "-1"})
    assert turns(source, positions) == []
    look.rows(f"INSERT INTO {quote}{topic}{quote} VALUES (3, {now})")
    again = made(JdbcSource, whole | {"timestamp.initial": "-1"})
    assert [record.value["id"] for record in turns(again, positions)] == [3]


def test_a_query_and_a_bulk_reading(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    name = f"{quote}{topic}{quote}"
    look.rows(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, word VARCHAR(20))")
    look.rows(f"INSERT INTO {name} VALUES (1, 'ten %'), (2, NULL), (3, 'no')")
    query = f"SELECT id, word FROM {name} WHERE word LIKE '%%%' OR word IS NULL ORDER BY 1"
    settings = login(database) | {"topic.prefix": "words", "query": query}
    incrementing = settings | {"mode": "incrementing", "incrementing.column.name": "id"}
    found = turns(made(JdbcSource, incrementing), Positions())
    assert [(record.topic, record.value["id"], record.value["word"]) for record in found] == [
        ("words", 1, "ten %"), ("words", 2, None), ("words", 3, "no")]  # fmt: skip
    source = made(JdbcSource, settings | {"mode": "bulk", "poll.interval.ms": "1500"})
    for _ in range(2):
        plan = source.plan(Positions())
        assert plan.again_s == 1.5
        rows = [item for share in plan.shares for item in source.read(share)]
        assert [record.value["id"] for record in rows] == [1, 2, 3]
        assert all(record.source_offset is None for record in rows)
    tables = made(JdbcSource, source_settings(database, topic, mode="bulk") | {"topic.prefix": "db."})
    assert {record.topic for record in turns(tables, Positions())} == {f"db.{topic}"}


def test_what_no_record_can_hold_is_rejected_with_its_row(postgresql: str, topic: str) -> None:
    look = Database(postgresql)
    look.rows(f'CREATE TABLE "{topic}" (id BIGINT PRIMARY KEY, price NUMERIC(10,2), day DATE, free NUMERIC)')
    look.rows(
        f"INSERT INTO \"{topic}\" VALUES (1, 1.50, NULL, 1.2345678901234567890123456789e40), (2, 'NaN', NULL, 0),"
        " (3, 2, 'infinity', 0), (4, 2, NULL, '-Infinity'), (5, NULL, '10000-01-01', -0.00100)"
    )
    found = turns(made(JdbcSource, source_settings(postgresql, topic)), Positions())
    assert [isinstance(item, RejectedRecord) for item in found] == [False, True, True, True, False]
    assert b'"price": "NaN"' in found[1].value
    assert found[0].value["price"] == Decimal("1.50")
    assert found[0].value["free"]["scale"] == 0
    assert found[4].value["free"]["scale"] == 5


def test_mistakes_are_found_before_anything_runs(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    look.rows(f"CREATE TABLE {quote}{topic}{quote} (id BIGINT, word VARCHAR(20))")
    wrong = login(database) | {"connection.password": "not this"}
    cases = {
        "connection.url": wrong | {"mode": "bulk", "topic.prefix": "", "table.whitelist": topic},
        "table.whitelist": source_settings(database, "no_such_table"),
        "incrementing.column.name": source_settings(database, topic),
        "timestamp.column.name": source_settings(database, topic, mode="timestamp") | {"timestamp.column.name": "when"},
    }
    for setting, settings in cases.items():
        problems = list(made(JdbcSource, settings).check())
        assert [each.setting for each in problems] == [setting], problems
        assert PASSWORD not in str(problems)
    nullable = source_settings(database, topic) | {"incrementing.column.name": "id"}
    assert "may be null" in next(iter(made(JdbcSource, nullable).check())).problem
    assert not list(made(JdbcSource, nullable | {"validate.non.null": "false"}).check())
    assert [each.setting for each in made(JdbcSink, wrong).check()] == ["connection.url"]
    # A server that is down is no mistake of the configuration.
    down = login("jdbc:postgresql://127.0.0.1:1/shop" if "postgres" in database else "jdbc:mariadb://127.0.0.1:1/shop")
    assert not list(made(JdbcSink, down).check())
    with pytest.raises(RetriableError):
        made(JdbcSource, down | {"mode": "bulk", "topic.prefix": ""}).plan(Positions())


def test_shares_are_dealt_to_tasks_by_table(database: str, topic: str, look: Database) -> None:
    quote = "`" if "mariadb" in database else '"'
    names = [f"{topic}_{letter}" for letter in "abc"]
    for name in names:
        look.rows(f"CREATE TABLE {quote}{name}{quote} (id BIGINT PRIMARY KEY)")
        look.rows(f"INSERT INTO {quote}{name}{quote} VALUES (1)")
    settings = source_settings(database, topic) | {"table.whitelist": ",".join(names)}
    source = made(JdbcSource, settings, tasks_max=2)
    plan = source.plan(Positions())
    assert sorted(len(share.payload) for share in plan.shares) == [1, 2]
    assert all(isinstance(share, SourceShare) for share in plan.shares)
