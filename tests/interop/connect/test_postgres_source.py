"""The PostgreSQL source against a real server, in turns without a worker: nothing lost, nothing twice."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from millbeck.pipeline.connect.config.definitions import ConfigDef
from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.connectors.declared import connector_of, implementation_of
from millbeck.pipeline.connect.connectors.interface import ConnectorContext, SourceConnector
from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from tests.interop.connect.postgres_server import PostgresServer, bin_directory, wait_until
from tests.interop.connect.postgres_writer import Writer
from tests.interop.connect.source_runner import Log, SourceRunner

pytestmark = pytest.mark.skipif(bin_directory() is None, reason="no PostgreSQL: apt-get install postgresql")
SERVER = {"server": "shop"}


@pytest.fixture(scope="module")
def shared() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def server(shared: PostgresServer) -> Iterator[PostgresServer]:
    """The server with an empty schema, without slots and publications."""
    yield shared
    with shared.connect() as connection:
        connection.execute("select pg_terminate_backend(active_pid) from pg_replication_slots where active")
        wait_until(lambda: not slots(connection, "active"), what="the end of the stream")
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'millbeck%'"
        )
        for (name,) in slots(connection):
            connection.execute("select pg_drop_replication_slot(%s)", (name,))
        for (name,) in connection.execute("select pubname from pg_publication").fetchall():
            connection.execute(f'drop publication "{name}"')
        connection.execute("drop schema public cascade; create schema public")


def slots(connection: psycopg.Connection[Any], where: str = "true") -> list[Any]:
    found: list[Any] = connection.execute(f"select slot_name from pg_replication_slots where {where}").fetchall()
    return found


def is_streaming(log: Log) -> bool:
    return "lsn_commit" in (log.get(SERVER) or {})


def drop_slot(connection: psycopg.Connection[Any]) -> None:
    wait_until(lambda: not slots(connection, "active"), what="the end of the stream")
    connection.execute("select pg_drop_replication_slot('shop')")


def run_for_a_while(turns: SourceRunner) -> None:
    for _ in range(40):
        turns.turn()
        turns.woken.wait(0.2)


def started(server: PostgresServer, log: Log, *, tasks_max: int = 1, **settings: Any) -> SourceRunner:
    return SourceRunner(server.connector_settings(**settings), log, tasks_max=tasks_max)


def test_types_arrive_as_they_are(server: PostgresServer) -> None:
    columns = {
        "bool": ("boolean", "true", True),
        "int2": ("smallint", "-5", -5),
        "int8": ("bigint", "9223372036854775807", 9223372036854775807),
        "oid": ("oid", "4294967295", 4294967295),
        "float4": ("real", "1.1", 1.1),
        "float8": ("double precision", "'0.1'", 0.1),
        "num": ("numeric(10,3)", "1.5", 1.5),
        "neg": ("numeric(5,-2)", "12345", 12300),
        "free": ("numeric", "1.10", {"scale": 1, "value": "Cw=="}),
        "txt": ("text", r"E'a\tb\\c\nd\u00e4'", "a\tb\\c\ndä"),
        "bp": ("char(4)", "'a'", "a   "),
        "byt": ("bytea", r"'\x00ff'", "AP8="),
        "dat": ("date", "'2024-02-29'", 19782),
        "bc": ("date", "'0044-03-15 BC'", -735160),
        "far": ("date", "'5874897-12-31'", 2_145_042_905),
        "dinf": ("date", "'infinity'", 2147483647),
        "tim": ("time", "'24:00:00'", 86_400_000_000),
        "tim3": ("time(3)", "'01:02:03.004'", 3_723_004),
        "ttz": ("timetz", "'01:02:03.5+02'", "23:02:03.5Z"),
        "ts": ("timestamp", "'2024-02-29 12:34:56.789012'", 1_709_210_096_789_012),
        "ts3": ("timestamp(3)", "'2024-02-29 12:34:56.789'", 1_709_210_096_789),
        "tsinf": ("timestamp", "'-infinity'", -9_223_372_036_832_400_000),
        "tstz": ("timestamptz", "'2024-02-29 12:34:56.7+02'", "2024-02-29T10:34:56.700000Z"),
        "tstz0": ("timestamptz(0)", "'2024-02-29 12:34:56+00'", "2024-02-29T12:34:56Z"),
        "tstzbc": ("timestamptz", "'0044-03-15 00:00:00+00 BC'", "-0043-03-15T00:00:00.000000Z"),
        "itv": ("interval", "'1 year 2 mons -3 days 04:05:06.5'", 36_573_906_500_000 + 0),
        "uid": ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "jsn": ("json", """'{"a" : 1}'""", '{"a" : 1}'),
        "jsb": ("jsonb", """'{"a" : 1}'""", '{"a": 1}'),
        "xm": ("xml", "'<a/>'", "<a/>"),
        "ip": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
        "net": ("cidr", "'10.0.0.0/8'", "10.0.0.0/8"),
        "mac": ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
        "bit1": ("bit(1)", "B'1'", True),
        "bitn": ("bit(10)", "B'1000000001'", "AQI="),
        "mon": ("money", "'-1234.56'", -1234.56),
        "rng": ("int4range", "'[1,5]'", "[1,6)"),
        "pt": ("point", "'(1,2)'", {"x": 1.0, "y": 2.0, "wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None}),
        "ints": ("int[]", "'{1,NULL,3}'", [1, None, 3]),
        "txts": ("text[]", """'{a,"b,c",NULL,"NULL"}'""", ["a", "b,c", None, "NULL"]),
        "dates": ("date[]", "'{1970-01-02}'", [1]),
        "mood": ("mood", "'ok'", "ok"),
        "dom": ("amount", "1.5", 1.5),
        "hst": ("hstore", "'a=>1,b=>NULL'", '{"a":"1","b":null}'),
        "cit": ("citext", "'AbC'", "AbC"),
    }
    with server.connect() as db:
        db.execute("create extension if not exists hstore; create extension if not exists citext")
        db.execute("create type mood as enum ('sad', 'ok'); create domain amount as numeric(6,2)")
        db.execute(f"create table t (id int primary key, {', '.join(f'{n} {c[0]}' for n, c in columns.items())})")
        values = ", ".join(case[1] for case in columns.values())
        db.execute(f"insert into t values (1, {values})")
        log = Log()
        turns = started(server, log)
        turns.run_until(lambda: is_streaming(log))
        db.execute(f"insert into t values (2, {values})")
        db.execute("alter table t replica identity full; update t set id = 3 where id = 2")
        turns.run_until(lambda: len(log.records) >= 5)
        turns.stop()
    read, created, removed, _, moved = log.of("shop.public.t")
    expected = {name: case[2] for name, case in columns.items()}
    expected["itv"] = interval_us(14, -3, 14_706.5)
    for (key, value), number, row in (
        (read, 1, "after"),
        (created, 2, "after"),
        (removed, 2, "before"),
        (moved, 3, "after"),
    ):
        assert key == {"id": number}
        assert {name: value[row][name] for name in expected} == expected
    assert [value["op"] for _, value in (read, created, removed, moved)] == ["r", "c", "d", "c"]


def interval_us(months: int, days: int, seconds: float) -> int:
    return int((months * (365.25 / 12) + days) * 86_400_000_000 + seconds * 1e6)


def test_generated_values_come_back(server: PostgresServer) -> None:
    """Values of PostgreSQL's whole ranges, read by the snapshot and by the stream alike."""
    chance = random.Random(7)
    with server.connect() as db:
        db.execute(
            "create table g (id int primary key, d date, ts timestamp, tz timestamptz, n numeric, i interval, f float8)"
        )
        rows: list[tuple[Any, ...]] = []
        for number in range(300):
            year = chance.choice(
                (chance.randrange(1, 9999), chance.randrange(1, 4713), chance.randrange(10_000, 290_000))
            )
            era = " BC" if year < 4713 and chance.random() < 0.4 else ""
            day = f"{year:04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
            second = chance.randrange(86_400)
            clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{chance.randrange(10**6):06}"
            digits = "".join(chance.choice("0123456789") for _ in range(chance.randrange(1, 60)))
            rows.append((
                number, f"{day}{era}", f"{day} {clock}{era}", f"{day} {clock}+{chance.randrange(15):02}{era}",
                f"{digits}.{digits[::-1]}", f"{chance.randrange(-99, 99)} mons {chance.randrange(99)} days {clock}",
                repr(chance.uniform(-1e300, 1e300)),
            ))  # fmt: skip
        insert = "insert into g values (%s, %s, %s, %s, %s, %s, %s)"
        with db.cursor() as cursor:
            cursor.executemany(insert, rows)
        log = Log()
        turns = started(server, log, decimal_handling_mode="string")
        turns.run_until(lambda: is_streaming(log))
        with db.cursor() as cursor:
            cursor.executemany(insert, [(row[0] + 1000, *row[1:]) for row in rows])
        turns.run_until(lambda: len(log.records) >= 600)
        turns.stop()
        facts = db.execute(
            "select id, d - '1970-01-01'::date, round(extract(epoch from ts) * 1000000), n::text, f from g"
        ).fetchall()
    found = {key["id"]: value["after"] for key, value in log.of("shop.public.g")}
    assert len(found) == 600
    for number, days, microseconds, digits, double in facts:
        row = found[number]
        assert (row["d"], row["ts"], row["n"], row["f"]) == (days, microseconds, digits, double)
    for number in range(300):
        assert {**found[number], "id": 0} == {**found[number + 1000], "id": 0}


def folded(log: Log) -> dict[int, str]:
    """The table that the records make, applied in their order."""
    rows: dict[int, str] = {}
    for key, value in log.of("shop.public.items"):
        if value is None:
            rows.pop(key["id"], None)
        elif value["op"] != "d":
            rows[key["id"]] = value["after"]["note"]
    return rows


def changes(log: Log) -> list[Any]:
    return [value for _, value in log.of("shop.public.items") if value is not None and value["op"] in "cud"]


def test_kills_lose_and_double_nothing(server: PostgresServer) -> None:
    """The worker is dropped at any point, its connection left behind, shares lost: each change is there once."""
    chance = random.Random(11)
    writer = Writer(server, 5)
    writer.create()
    log = Log()
    settings: dict[str, Any] = {"table_include_list": "public.items"}
    turns = started(server, log, **settings)
    turns.run_until(lambda: is_streaming(log))
    abandoned: list[SourceRunner] = []
    for _ in range(12):
        for _ in range(chance.randrange(1, 15)):
            writer.transaction()
        for _ in range(chance.randrange(0, 4)):
            turns.turn(loses=(0,) if chance.random() < 0.4 else ())
        if chance.random() < 0.6:
            abandoned.append(turns)
            turns = started(server, log, **settings)
    turns.run_until(lambda: len(changes(log)) >= writer.changes)
    turns.run_until(lambda: folded(log) == writer.rows)
    found = changes(log)
    assert len(found) == writer.changes
    places = [(value["source"]["lsn"], value["op"], json.dumps(value["after"])) for value in found]
    assert len(set(places)) == len(places)
    # Transactions are whole, one after another.
    order = [value["source"]["txId"] for value in found]
    assert len([1 for before, after in pairwise(order) if before != after]) == len(set(order)) - 1
    for each in [*abandoned, turns]:
        each.stop()
    writer.close()


def test_a_snapshot_goes_on_after_kills_while_rows_change(server: PostgresServer) -> None:
    writer = Writer(server, 9)
    writer.create(rows=5000)
    log = Log()
    settings = {"table_include_list": "public.items", "millbeck_snapshot_chunk_rows": "400"}
    for kill in range(4):
        turns = started(server, log, tasks_max=3, **settings)
        for _ in range(2):
            for _ in range(5):
                writer.transaction()
            turns.turn(loses=(1,))
        read_before = len(log.records)
        turns.connector.stop()
        assert "millbeck.snapshot" in (log.get(SERVER) or {}), kill
    assert read_before >= 1200
    turns = started(server, log, tasks_max=3, **settings)
    turns.run_until(lambda: is_streaming(log))
    for _ in range(20):
        writer.transaction()
    turns.run_until(lambda: folded(log) == writer.rows)
    turns.stop()
    # Each row of the snapshots was read once, and no change that a snapshot has seen came again.
    reads = [key["id"] for key, value in log.of("shop.public.items") if value is not None and value["op"] == "r"]
    assert len(set(reads)) == len(reads)
    created = {key["id"] for key, value in log.of("shop.public.items") if value is not None and value["op"] == "c"}
    assert not created & set(reads)
    assert not [partition for partition, _ in log.items() if "chunk" in partition]
    writer.close()


def test_incremental_snapshots_while_rows_change(server: PostgresServer) -> None:
    """Rows are read again and again while they change; kills do not matter."""
    chance = random.Random(3)
    writer = Writer(server, 21, hot=30)
    writer.create(rows=12_000)
    settings = {
        "snapshot_mode": "no_data",
        "table_include_list": "public.items",
        "signal_data_collection": "public.signals",
    }
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(0.002):
            writer.transaction(3)

    thread = threading.Thread(target=write)
    with server.connect() as db:
        db.execute("create table signals (id serial primary key, type text not null, data text)")
        log = Log()
        running = started(server, log, tasks_max=2, **settings)
        running.turn()
        thread.start()
        for _ in range(6):
            db.execute(
                "insert into signals (type, data) values ('execute-snapshot', %s)",
                (json.dumps({"data-collections": ["public.items"]}),),
            )
            running.run_until(lambda: "millbeck.incremental" in (log.get(SERVER) or {}))
            for _ in range(3):
                running.turn(loses=(0,) if chance.random() < 0.2 else ())
                if chance.random() < 0.15:
                    running.stop()
                    running = started(server, log, tasks_max=2, **settings)
            running.run_until(lambda: "millbeck.incremental" not in (log.get(SERVER) or {}))
        is_over.set()
        thread.join()
        running.run_until(lambda: folded(log) == writer.rows)
        running.stop()
    assert not [partition for partition, _ in log.items() if "chunk" in partition]
    sources = [value["source"] for _, value in log.of("shop.public.items") if value and value["op"] == "r"]
    assert len(sources) > 6 * 11_000
    assert {source["snapshot"] for source in sources} == {"incremental"}
    # A row that was read is what the changes before it have made of it.
    rows: dict[int, str | None] = {}
    for key, value in log.of("shop.public.items"):
        if value is None or value["op"] == "d":
            rows[key["id"]] = None
        elif value["op"] == "r" and key["id"] in rows:
            assert value["after"]["note"] == rows[key["id"]]
        else:
            rows[key["id"]] = value["after"]["note"]
    writer.close()


def test_a_large_transaction_is_spooled_and_whole(server: PostgresServer, tmp_path: Any) -> None:
    with server.connect() as db:
        db.execute("create table big (id int primary key, note text)")
        log = Log()
        turns = started(server, log, millbeck_spool_directory=str(tmp_path))
        turns.run_until(lambda: is_streaming(log))
        db.execute("insert into big select i, repeat('x', 1000) from generate_series(1, 40000) i")
        turns.run_until(lambda: len(log.records) >= 40_000)
        assert len({value["source"]["txId"] for _, value in log.of("shop.public.big")}) == 1
        turns.turn()
        assert not list(tmp_path.glob("*/*")), "the spool is removed once it is committed"
        turns.stop()


def test_the_stream_holds_no_more_than_its_bound(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table many (id int primary key, note text)")
        log = Log()
        turns = started(server, log)
        turns.run_until(lambda: is_streaming(log))
        turns.turn()
        for start in range(0, 100_000, 2000):
            db.execute(
                "insert into many select i, repeat('x', 1000) from generate_series(%s::int, %s::int) i",
                (start, start + 1999),
            )
        time.sleep(2)
        stream = turns.connector._stream  # type: ignore[attr-defined]
        assert 30 << 20 < stream.held_bytes < 64 << 20
        # The server does not give up on a stream that is not read: its timeout is 10 s here.
        time.sleep(11)
        turns.run_until(lambda: len(log.records) >= 100_000)
        assert len({key["id"] for key, _ in log.of("shop.public.many")}) == 100_000
        turns.stop()


def test_idle_tables_let_the_slot_move_on(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table quiet (id int primary key); create table noise (id serial, note text)")
        log = Log()
        turns = started(server, log, table_include_list="public.quiet")
        turns.run_until(lambda: is_streaming(log))
        retained: list[int] = []
        for _ in range(15):
            db.execute("insert into noise (note) select repeat('x', 1000) from generate_series(1, 20000)")
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline and turns.turn() == 0:
                turns.woken.wait(0.2)
            time.sleep(0.6)
            row = db.execute(
                "select pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) from pg_replication_slots"
            )
            retained.append(int((row.fetchone() or [0])[0]))
        assert max(retained) < 64 << 20, retained
        gauges = turns.connector.gauges()
        assert (gauges["slot_wal_status"], gauges["stream_held_bytes"]) == (0, 0)
        assert gauges["stream_lag_bytes"] < 64 << 20
        assert "slot_retained_bytes" in gauges
        assert not log.records
        # It goes on from there after a restart.
        turns.stop()
        turns = started(server, log, table_include_list="public.quiet")
        db.execute("insert into quiet values (1)")
        turns.run_until(lambda: len(log.records) == 1)
        turns.stop()


def test_tables_that_change_in_mid_stream(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key, a text)")
        log = Log()
        turns = started(server, log)
        turns.run_until(lambda: is_streaming(log))
        db.execute("insert into t values (1, 'x')")
        db.execute("alter table t add column b int not null default 7; insert into t values (2, 'y', 8)")
        db.execute("alter table t drop column a; insert into t values (3, 9)")
        db.execute(
            "alter table t rename column b to c; alter table t alter column c type text; insert into t values (4, '1')"
        )
        turns.run_until(lambda: len(log.records) == 4)
        turns.stop()
    assert [value["after"] for _, value in log.of("shop.public.t")] == [
        {"id": 1, "a": "x"},
        {"id": 2, "a": "y", "b": 8},
        {"id": 3, "b": 9},
        {"id": 4, "c": "1"},
    ]


@pytest.mark.parametrize("via_root", [False, True])
def test_partitioned_tables(server: PostgresServer, via_root: bool) -> None:
    with server.connect() as db:
        db.execute("create table p (id int primary key, note text) partition by range (id)")
        db.execute("create table p1 partition of p for values from (0) to (10)")
        db.execute("create table p2 partition of p for values from (10) to (20)")
        db.execute("insert into p values (1, 'a'), (11, 'b')")
        log = Log()
        turns = started(server, log, publish_via_partition_root=str(via_root).lower())
        turns.run_until(lambda: is_streaming(log))
        db.execute("insert into p values (2, 'c'), (12, 'd'); update p set id = 13 where id = 2")
        turns.run_until(lambda: len(log.records) >= 7)
        turns.stop()
    topics = {record.topic for record in log.records}
    assert topics == ({"shop.public.p"} if via_root else {"shop.public.p1", "shop.public.p2"})


def test_a_table_without_a_key_is_read_by_its_pages(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table nokey (a int, note text)")
        db.execute("insert into nokey select i, repeat('x', 500) from generate_series(1, 3000) i; analyze nokey")
        log = Log()
        turns = started(server, log, tasks_max=2, millbeck_snapshot_chunk_rows="500")
        turns.run_until(lambda: is_streaming(log), turns_max=30)
        turns.stop()
    values = [value["after"]["a"] for _, value in log.of("shop.public.nokey")]
    assert sorted(values) == list(range(1, 3001))


def test_tables_that_cannot_be_updated_any_more_are_named(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key); create table bare (a int); create table full_row (a int)")
        db.execute("alter table full_row replica identity full")
        log = Log()
        running = started(server, log, table_include_list="public.t")
        running.turn()
        running.stop()
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            db.execute("insert into bare values (1); update bare set a = 2")
    (warning,) = [record.getMessage() for record in caplog.records if "REPLICA IDENTITY" in record.getMessage()]
    assert "on public.bare, which" in warning


def test_snapshot_modes(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key); insert into t values (1)")
        none = Log()
        turns = started(server, none, snapshot_mode="no_data")
        turns.turn()
        db.execute("insert into t values (2)")
        turns.run_until(lambda: none.records)
        turns.stop()
        assert [key["id"] for key, _ in none.of("shop.public.t")] == [2]
        drop_slot(db)

        only = Log()
        turns = started(server, only, snapshot_mode="initial_only")
        turns.run_until(lambda: is_streaming(only))
        db.execute("insert into t values (3)")
        assert [turns.turn() for _ in range(5)] == [0] * 5
        turns.stop()
        assert len(only.records) == 2
        drop_slot(db)

        always = Log()
        for count in (3, 6):
            turns = started(server, always, snapshot_mode="always")
            turns.run_until(lambda count=count: len(always.records) == count and is_streaming(always))
            turns.stop()
        assert [value["op"] for _, value in always.of("shop.public.t")] == ["r"] * 6
        db.execute("insert into t values (4)")
        drop_slot(db)

        turns = started(server, always, snapshot_mode="initial")
        with pytest.raises(ConfigError, match=r"slot\.name: the slot shop is gone.*when_needed"):
            turns.turn()
        turns.stop()
        turns = started(server, always, snapshot_mode="when_needed")
        turns.run_until(lambda: len(always.records) == 10 and is_streaming(always))
        turns.stop()


def test_a_slot_that_somebody_moved_is_not_trusted(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key)")
        log = Log()
        turns = started(server, log)
        turns.run_until(lambda: is_streaming(log))
        turns.stop()
        wait_until(lambda: not slots(db, "active"), what="the end of the stream")
        db.execute("insert into t values (1)")
        db.execute("select pg_replication_slot_advance('shop', pg_current_wal_lsn())")
        turns = started(server, log)
        with pytest.raises(ConfigError, match="beyond"):
            turns.turn()
        turns.stop()
        turns = started(server, log, offset_mismatch_strategy="trust_slot")
        turns.turn()
        db.execute("insert into t values (2)")
        turns.run_until(lambda: log.records)
        assert [key["id"] for key, _ in log.of("shop.public.t")] == [2]
        turns.stop()


def test_a_slot_in_use_is_waited_for_or_taken_over(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key)")
        log = Log()
        first = started(server, log)
        first.run_until(lambda: is_streaming(log))
        first.turn()
        # The same connector on another worker: the first one's connection is ended.
        second = started(server, log)
        second.turn()
        db.execute("insert into t values (1)")
        second.run_until(lambda: log.records)
        with pytest.raises(RetriableError):
            run_for_a_while(first)
        first.connector.stop()
        # Somebody else: nothing is ended.
        other = SourceRunner({**server.connector_settings(), "name": "other"}, log)
        with pytest.raises(RetriableError, match=r"in use by process \d+ \(millbeck connect shop"):
            other.turn()
        other.stop()
        db.execute("insert into t values (2)")
        second.run_until(lambda: len(log.records) == 2)
        second.stop()


def test_an_open_transaction_holds_up_the_slot(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.pipeline.connect.postgres.slots.SLOT_TIMEOUT_S", 1.0)
    with server.connect() as db, server.connect(autocommit=False) as other:
        db.execute("create table t (id int primary key); insert into t values (1)")
        other.execute("insert into t values (2)")
        log = Log()
        running = started(server, log)
        with pytest.raises(RetriableError, match=r"hold up the slot: SELECT pid"):
            running.turn()
        assert not slots(db)
        other.rollback()
        running.run_until(lambda: is_streaming(log))
        assert len(log.records) == 1
        running.stop()


def test_a_restart_of_the_server(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key); insert into t values (1)")
    log = Log()
    turns = started(server, log)
    turns.run_until(lambda: is_streaming(log))
    turns.turn()
    stopped = threading.Thread(target=server.stop)
    stopped.start()
    stopped.join()
    with pytest.raises(RetriableError):
        run_for_a_while(turns)
    server.start()
    with server.connect() as db:
        db.execute("insert into t values (2)")
    turns.run_until(lambda: len(log.records) == 2)
    turns.stop()


def test_an_offset_of_debezium_is_carried_on(server: PostgresServer) -> None:
    """Debezium's offset after the last record of a transaction does not say that it ended."""
    with server.connect() as db:
        db.execute("create table t (id int primary key)")
        log = Log()
        turns = started(server, log)
        turns.run_until(lambda: is_streaming(log))
        before = log.get(SERVER)
        assert before is not None
        db.execute("insert into t values (1), (2), (3)")
        turns.run_until(lambda: len(log.records) == 3)
        turns.connector._close_stream()  # type: ignore[attr-defined]
        sources = [value["source"] for _, value in log.of("shop.public.t")]
    middle = {
        "lsn": sources[1]["lsn"],
        "lsn_proc": before["lsn_commit"],
        "lsn_commit": before["lsn_commit"],
        "txId": sources[1]["txId"],
        "ts_usec": 1,
        "messageType": "INSERT",
    }
    again = Log()
    again.move(SERVER, middle)
    resumed = started(server, again, offset_mismatch_strategy="no_validation")
    resumed.run_until(lambda: again.records)
    assert [key["id"] for key, _ in again.of("shop.public.t")] == [3]
    resumed.stop()


def test_heartbeats_and_messages(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key); create table beats (n int)")
        log = Log()
        turns = started(
            server, log, table_include_list="public.t", heartbeat_interval_ms="200",
            heartbeat_action_query="insert into beats values (1)",
        )  # fmt: skip
        turns.run_until(lambda: is_streaming(log))
        db.execute("select pg_logical_emit_message(true, 'greeting', 'hello')")
        db.execute("select pg_logical_emit_message(false, 'greeting', 'now')")
        turns.run_until(lambda: len(log.of("shop.message")) == 2 and log.of("__debezium-heartbeat.shop"))
        assert (db.execute("select count(*) from beats").fetchone() or [0])[0] > 0
        turns.stop()


def problems(server: PostgresServer, **settings: str) -> list[SettingProblem]:
    given = {**server.connector_settings(), **{name.replace("_", "."): text for name, text in settings.items()}}
    known = connector_of("PostgresConnector")
    definition: ConfigDef = known.config_def
    made = implementation_of(known)(definition.parse(given), ConnectorContext(name="shop", settings=given))
    assert isinstance(made, SourceConnector)
    return list(made.check())


def test_what_is_wrong_is_told_before_anything_runs(server: PostgresServer) -> None:
    with server.connect() as db:
        db.execute("create table t (id int primary key)")
        db.execute("create role weak login password 'weak'; create role middle login replication password 'middle'")
        assert not problems(server)
        cases = {
            "database.password": ({"database_password": "wrong"}, "authentication"),
            "database.dbname": ({"database_dbname": "nowhere"}, "does not exist"),
            "table.include.list": ({"table_include_list": "public.nothing"}, "no table of the database"),
            "signal.data.collection": ({"signal_data_collection": "public.signals"}, "CREATE TABLE"),
            "publication.name": ({"publication_autocreate_mode": "disabled"}, "CREATE PUBLICATION"),
        }
        for setting, (settings, words) in cases.items():
            (found,) = problems(server, **settings)
            assert found.setting == setting
            assert words in found.problem
        weak = {"database_user": "weak", "database_password": "weak"}
        assert {"database.user", "publication.autocreate.mode"} == {each.setting for each in problems(server, **weak)}
        middle = problems(server, database_user="middle", database_password="middle")
        assert [each.setting for each in middle] == ["database.user", "publication.autocreate.mode"]
        assert "GRANT SELECT" in middle[0].problem
        db.execute("select pg_create_physical_replication_slot('shop')")
        (found,) = problems(server)
        assert (found.setting, "not for pgoutput" in found.problem) == ("slot.name", True)
        db.execute("drop role weak; drop role middle")


def test_a_server_without_logical_decoding_is_told(tmp_path: Any) -> None:
    with PostgresServer({"wal_level": "replica"}) as server:
        found = problems(server)
        assert [(each.setting, "wal_level=logical" in each.problem) for each in found] == [("database.hostname", True)]


def test_the_password_is_in_no_message(server: PostgresServer) -> None:
    cases: tuple[dict[str, Any], ...] = ({"database_password": "a-secret"}, {"database_port": "1"})
    for settings in cases:
        turns = started(server, Log(), **settings)
        with pytest.raises((ConfigError, RetriableError)) as caught:
            turns.turn()
        assert "a-secret" not in f"{caught.value!r} {caught.value.__cause__!r}"
        assert server.password not in f"{caught.value!r} {caught.value.__cause__!r}"
        turns.stop()
