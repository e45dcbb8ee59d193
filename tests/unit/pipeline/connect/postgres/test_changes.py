"""Shares to records: envelopes, keys, tombstones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.postgres.changes import ChangeReader, RefusedChange
from millbeck.pipeline.connect.postgres.pgoutput import UNCHANGED
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.share import (
    HEARTBEAT,
    ShareHeader,
    StreamOffset,
    entries_of,
    entry_of,
    header_of,
)
from millbeck.pipeline.connect.postgres.tables import Column, ColumnType, Table
from tests.unit.pipeline.connect.postgres import messages
from tests.unit.pipeline.connect.postgres.messages import json_of, settings_of, table_of

OID = 16
ORDERS = table_of(id="int4!", note="text", price="int4!")


def read(
    *changes: bytes,
    table: Table = ORDERS,
    settings: PostgresSettings | None = None,
    start: dict[str, Any] | None = None,
    final_lsn: int = 90,
) -> list[Any]:
    """The records of one transaction with these changes."""
    entries = [entry_of(10, 0, messages.begin(final_lsn, 7))]
    entries += [entry_of(11 + place, 0 if change[:1] in b"MO" else 1, change) for place, change in enumerate(changes)]
    entries.append(entry_of(95, 0, messages.commit(final_lsn, 95)))
    end = StreamOffset(commit_lsn=95, lsn=95).as_json()
    header = ShareHeader(tables={1: table}, start=start or {"lsn_commit": 5}, end=end, now_ms=123_456)
    data = header.as_bytes() + b"".join(entries)
    again, position = header_of(data)
    assert again == header
    return list(ChangeReader(settings or settings_of()).records(again, entries_of(data, position), lambda wrong: wrong))


def shown(records: Sequence[SourceRecord]) -> list[tuple[Any, Any, Any, Any]]:
    """Key, operation, before and after."""
    made = []
    for record in records:
        value = json_of(record.value) or {}
        made.append((json_of(record.key), value.get("op"), value.get("before"), value.get("after")))
    return made


def row(number: int, note: str | None, price: int) -> dict[str, Any]:
    return {"id": number, "note": note, "price": price}


def test_an_insert_has_the_whole_envelope() -> None:
    (record,) = read(messages.insert(OID, b"1", b"a", b"5"))
    assert record.topic == "shop.public.orders"
    assert record.key_schema.name == "shop.public.orders.Key"
    assert record.value_schema.name == "shop.public.orders.Envelope"
    assert [field.name for field in record.value_schema.fields] == [
        "before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns",
    ]  # fmt: skip
    value = json_of(record.value)
    source = value.pop("source")
    assert json_of(record.key) == {"id": 1}
    assert value == {
        "before": None,
        "after": row(1, "a", 5),
        "transaction": None,
        "op": "c",
        "ts_ms": 123_456,
        "ts_us": 123_456_000,
        "ts_ns": 123_456_000_000,
    }
    assert source.pop("version")
    assert source == {
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1_700_000_000_000,
        "snapshot": "false",
        "db": "shop",
        "sequence": '["5","11"]',
        "ts_us": 1_700_000_000_000_000,
        "ts_ns": 1_700_000_000_000_000_000,
        "schema": "public",
        "table": "orders",
        "txId": 7,
        "lsn": 11,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }
    record.value.validate()


def test_updates_and_deletes() -> None:
    found = read(
        messages.update(OID, [b"1", b"b", b"6"]),
        messages.update(OID, [b"1", b"c", b"6"], [b"1", b"b", b"6"], b"O"),
        messages.delete(OID, [b"1", None, None]),
        messages.delete(OID, [b"2", b"c", b"6"], b"O"),
    )
    assert shown(found) == [
        ({"id": 1}, "u", None, row(1, "b", 6)),
        ({"id": 1}, "u", row(1, "b", 6), row(1, "c", 6)),
        # The log has no more than the key: what cannot be null is 0.
        ({"id": 1}, "d", row(1, None, 0), None),
        ({"id": 1}, None, None, None),
        ({"id": 2}, "d", row(2, "c", 6), None),
        ({"id": 2}, None, None, None),
    ]
    assert found[3].value is None
    assert found[3].value_schema is None


def test_no_tombstones() -> None:
    settings = settings_of(tombstones_on_delete="false")
    assert len(read(messages.delete(OID, [b"1", None, None]), settings=settings)) == 1


def test_a_changed_key_is_a_delete_and_a_create() -> None:
    found = read(messages.update(OID, [b"2", b"b", b"6"], [b"1", None, None]))
    assert shown(found) == [
        ({"id": 1}, "d", row(1, None, 0), None),
        ({"id": 1}, None, None, None),
        ({"id": 2}, "c", None, row(2, "b", 6)),
    ]
    assert [(header.key, json_of(header.value)) for record in found for header in record.headers] == [
        ("__debezium.newkey", {"id": 2}),
        ("__debezium.newkey", {"id": 2}),
        ("__debezium.oldkey", {"id": 1}),
    ]


def test_large_values_that_were_left_alone() -> None:
    whole, partly = read(
        messages.update(OID, [b"1", UNCHANGED, b"6"], [b"1", b"large", b"5"], b"O"),
        messages.update(OID, [b"1", UNCHANGED, b"6"]),
    )
    assert json_of(whole.value)["after"]["note"] == "large"
    assert json_of(partly.value)["after"]["note"] == "__debezium_unavailable_value"


def test_operations_that_are_skipped() -> None:
    changes = (
        messages.insert(OID, b"1", b"a", b"5"),
        messages.update(OID, [b"1", b"b", b"6"]),
        messages.delete(OID, [b"1", None, None]),
        messages.truncate(OID),
    )
    assert [each[1] for each in shown(read(*changes))] == ["c", "u", "d", None]
    assert [each[1] for each in shown(read(*changes, settings=settings_of(skipped_operations="none")))] == [
        "c", "u", "d", None, "t",
    ]  # fmt: skip
    assert not read(*changes, settings=settings_of(skipped_operations="c,u,d,t"))


def test_a_truncate_has_no_key() -> None:
    (record,) = read(messages.truncate(OID), settings=settings_of(skipped_operations="none"))
    assert (record.key, record.key_schema) == (None, None)


def test_updates_that_change_nothing() -> None:
    same = messages.update(OID, [b"1", b"a", b"6"], [b"1", b"a", b"6"], b"O")
    assert len(read(same)) == 1
    assert not read(same, settings=settings_of(skip_messages_without_change="true"))


def test_a_table_without_a_key() -> None:
    (record,) = read(
        messages.insert(OID, b"1", b"a", b"5"), table=table_of(key=(), id="int4!", note="text", price="int4")
    )
    assert (record.key, record.key_schema) == (None, None)


def test_chosen_keys_and_columns() -> None:
    settings = settings_of(message_key_columns="public.orders:note", column_exclude_list="public.orders.note")
    (record,) = read(messages.insert(OID, b"1", b"a", b"5"), settings=settings)
    assert json_of(record.key) == {"note": "a"}
    assert json_of(record.value)["after"] == {"id": 1, "price": 5}


def test_constant_defaults_are_in_the_schema() -> None:
    def column(kind: str, default: str) -> Column:
        return Column(name=kind, type=ColumnType(kind), optional=False, default=default)

    table = table_of(
        key=(),
        text=column("text", "'it''s'::text"),
        int4=column("int4", "(-5)"),
        bool=column("bool", "true"),
        date=column("date", "'1970-01-03'::date"),
        timestamptz=column("timestamptz", "now()"),
        int8=column("int8", "nextval('s'::regclass)"),
    )
    (record,) = read(messages.insert(OID, b"x", b"1", b"f", b"1970-01-01", b"infinity", b"1"), table=table)
    defaults = {field.name: field.schema.default for field in record.value_schema.fields[1].schema.fields}
    assert defaults == {"text": "it's", "int4": -5, "bool": True, "date": 2, "timestamptz": None, "int8": None}


def test_masked_columns_say_so() -> None:
    settings = settings_of(**{"column.mask.with.3.chars": "public.orders.note"})
    (record,) = read(messages.insert(OID, b"1", b"secret", b"5"), settings=settings)
    assert json_of(record.value)["after"]["note"] == "***"
    assert record.value_schema.fields[1].schema.field("note").schema.parameters == {"masked": "true"}


def test_a_change_without_a_record_is_refused_alone() -> None:
    table = table_of(id="int4!", amount="numeric")
    first, second = read(messages.insert(OID, b"1", b"NaN"), messages.insert(OID, b"2", b"1"), table=table)
    assert isinstance(first, RefusedChange)
    assert "public.orders.amount: NaN is no decimal" in str(first)
    assert first.topic == "shop.public.orders"
    assert json_of(second.key) == {"id": 2}
    lenient = settings_of(event_converting_failure_handling_mode="warn")
    (record, _) = read(
        messages.insert(OID, b"1", b"NaN"), messages.insert(OID, b"2", b"1"), table=table, settings=lenient
    )
    assert json_of(record.value)["after"]["amount"] is None


def test_transaction_metadata() -> None:
    settings = settings_of(provide_transaction_metadata="true")
    found = read(messages.insert(OID, b"1", b"a", b"5"), messages.update(OID, [b"1", b"b", b"6"]), settings=settings)
    assert [record.topic for record in found] == [
        "shop.transaction", "shop.public.orders", "shop.public.orders", "shop.transaction",
    ]  # fmt: skip
    assert json_of(found[0].value) == {
        "status": "BEGIN", "id": "7:10", "event_count": None, "data_collections": None, "ts_ms": 1_700_000_000_000,
    }  # fmt: skip
    assert json_of(found[2].value)["transaction"] == {"id": "7:12", "total_order": 2, "data_collection_order": 2}
    end = json_of(found[3].value)
    assert (end["status"], end["event_count"]) == ("END", 2)
    assert end["data_collections"] == [{"data_collection": "public.orders", "event_count": 2}]


def test_logical_messages_and_origins() -> None:
    (record,) = read(messages.origin("far", 3), messages.logical_message("p", b"\x01"))
    value = json_of(record.value)
    assert (record.topic, json_of(record.key), value["op"]) == ("shop.message", {"prefix": "p"}, "m")
    assert value["message"] == {"prefix": "p", "content": b"\x01"}
    assert (value["source"]["origin"], value["source"]["origin_lsn"], value["source"]["table"]) == ("far", 3, "")


def test_heartbeats() -> None:
    header = ShareHeader(tables={}, start={}, end={"lsn": 9}, now_ms=77)
    data = header.as_bytes() + entry_of(9, 0, bytes((HEARTBEAT,)))
    again, position = header_of(data)
    (record,) = ChangeReader(settings_of()).records(again, entries_of(data, position), lambda wrong: wrong)
    assert record.topic == "__debezium-heartbeat.shop"
    assert (json_of(record.key), json_of(record.value)) == ({"serverName": "shop"}, {"ts_ms": 77})


def test_what_a_snapshot_has_seen_is_left_out() -> None:
    # Rows up to 10 were read at 50, those behind at 100; the transaction committed at 90.
    start = {"lsn_commit": 5, "millbeck.read_at": {"public.orders": [[10, 50], [None, 100]]}}
    changes = (messages.insert(OID, b"10", b"a", b"5"), messages.insert(OID, b"11", b"a", b"5"))
    assert [json_of(record.key)["id"] for record in read(*changes, start=start)] == [10]
    assert [json_of(record.key)["id"] for record in read(*changes, start=start, final_lsn=100)] == [10, 11]
    # A row that moves from the first to the second range has to leave the first.
    moved = messages.update(OID, [b"11", b"a", b"5"], [b"9", None, None])
    assert [each[1] for each in shown(read(moved, start=start))] == ["d", None, "c"]
