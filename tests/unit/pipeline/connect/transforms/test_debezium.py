"""Debezium's two transforms, on events as its connectors write them."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord
from millbeck.pipeline.connect.model.schema import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.transforms.debezium import EventRouter, ExtractNewRecordState

ROW = struct_schema(
    [Field("id", INT32_SCHEMA), Field("name", Schema(SchemaType.STRING, True, "nobody"))],
    basis=Schema(SchemaType.STRUCT, name="shop.public.orders.Value"),
)
SOURCE = struct_schema([Field("table", STRING_SCHEMA), Field("lsn", OPTIONAL_INT64_SCHEMA)])
KEY = struct_schema([Field("id", INT32_SCHEMA)])


def envelope(row: Schema) -> Schema:
    optional = struct_schema(row.fields, optional=True, basis=row)
    return struct_schema(
        [
            Field("before", optional),
            Field("after", optional),
            Field("source", SOURCE),
            Field("op", STRING_SCHEMA),
            Field("ts_ms", OPTIONAL_INT64_SCHEMA),
        ],
        basis=Schema(SchemaType.STRUCT, name="shop.public.orders.Envelope"),
    )


ENVELOPE = envelope(ROW)


def event(operation: str, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> ConnectRecord:
    optional = ENVELOPE.fields[0].schema
    value = Struct.of(
        ENVELOPE,
        {
            "before": None if before is None else Struct.of(optional, before),
            "after": None if after is None else Struct.of(optional, after),
            "source": Struct.of(SOURCE, {"table": "orders", "lsn": 77}),
            "op": operation,
            "ts_ms": 1000,
        },
    )
    key = Struct.of(KEY, {"id": 1})
    return ConnectRecord(topic="shop.public.orders", key_schema=KEY, key=key, value_schema=ENVELOPE, value=value)


def extract(record: ConnectRecord, **settings: str) -> ConnectRecord | None:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    return ExtractNewRecordState(ExtractNewRecordState.config_def.parse(given)).apply(record)


DELETION = event("d", None, {"id": 1, "name": "a"})
TOMBSTONE = DELETION.with_(value_schema=None, value=None)


@pytest.mark.parametrize("operation", ["c", "u", "r"])
def test_the_row_after_a_change_is_the_value(operation: str) -> None:
    found = extract(event(operation, {"id": 1, "name": "a"}, {"id": 1, "name": "b"}))
    assert found is not None
    assert (found.topic, found.key["id"]) == ("shop.public.orders", 1)
    assert found.value_schema == ROW
    assert (found.value["id"], found.value["name"]) == (1, "a")


@pytest.mark.parametrize(
    ("settings", "deletion", "tombstone"),
    [
        ({}, None, "kept"),
        ({"delete_tombstone_handling_mode": "drop"}, None, None),
        ({"delete_tombstone_handling_mode": "rewrite"}, "rewritten", None),
        ({"delete_tombstone_handling_mode": "rewrite-with-tombstone"}, "rewritten", "kept"),
        ({"delete_tombstone_handling_mode": "delete-to-tombstone"}, "tombstone", None),
        ({"drop_tombstones": "false", "delete_handling_mode": "rewrite"}, "rewritten", "kept"),
        ({"delete_handling_mode": "none"}, "tombstone", None),
        ({"delete_handling_mode": "drop"}, None, None),
    ],
)
def test_what_becomes_of_deletions(settings: dict[str, str], deletion: str | None, tombstone: str | None) -> None:
    found = extract(DELETION, **settings)
    match deletion:
        case None:
            assert found is None
        case "tombstone":
            assert found is not None
            assert (found.key["id"], found.value_schema, found.value) == (1, None, None)
        case _:
            assert found is not None
            assert (found.value["id"], found.value["__deleted"]) == (1, "true")
            kept = extract(event("u", {"id": 1}), **settings)
            assert kept is not None
            assert kept.value["__deleted"] == "false"
            assert kept.value_schema == found.value_schema
    after = extract(TOMBSTONE, **settings)
    assert (after is not None) == (tombstone is not None)


def test_fields_and_headers_are_added() -> None:
    found = extract(
        event("c", {"id": 1, "name": None}),
        add_fields="op,table,source.lsn:position,ts_ms,nothing",
        add_fields_prefix="_",
        add_headers="source.table,op:operation",
        replace_null_with_default="false",
    )
    assert found is not None
    assert [field.name for field in found.value.schema.fields] == ["id", "name", "_op", "_table", "_position", "_ts_ms"]
    assert [value for _, value in found.value.items()] == [1, None, "c", "orders", 77, 1000]
    assert [(each.key, each.value) for each in found.headers] == [("__source_table", "orders"), ("__operation", "c")]
    filled = extract(event("c", {"id": 1, "name": None}))
    assert filled is not None
    assert filled.value.without_default("name") == "nobody"


def test_the_topic_is_taken_from_a_field_and_fields_are_left_out() -> None:
    record = event("c", {"id": 1, "name": "vip"})
    found = extract(record, route_by_field="name")
    assert found is not None
    assert found.topic == "vip"
    dropped = extract(
        record.with_(headers=(ConnectHeader("leave-out", None, ["name"]),)), drop_fields_header_name="leave-out"
    )
    assert dropped is not None
    assert [field.name for field in dropped.value.schema.fields] == ["id"]


def test_other_records_pass_and_truncations_are_dropped() -> None:
    heartbeat = ConnectRecord(topic="heartbeat", value_schema=SOURCE, value=Struct.of(SOURCE, {"table": "x"}))
    assert extract(heartbeat) is heartbeat
    assert extract(event("t", None)) is None
    with pytest.raises(InvalidValue, match="REPLICA IDENTITY"):
        extract(event("d", None), delete_tombstone_handling_mode="rewrite")
    with pytest.raises(ConfigError, match="fields are added from"):
        extract(heartbeat, add_fields="elsewhere.x")


def test_events_without_schemas() -> None:
    value = {"op": "u", "before": None, "after": {"id": 1}, "source": {"lsn": 5}}
    found = extract(ConnectRecord(topic="t", value=value), add_fields="source.lsn", add_headers="op")
    assert found is not None
    assert found.value == {"id": 1, "__source_lsn": 5}
    assert [(each.key, each.value) for each in found.headers] == [("__op", "u")]
    deleted = ConnectRecord(topic="t", value={"op": "d", "before": {"id": 1}, "after": None})
    rewritten = extract(deleted, delete_tombstone_handling_mode="rewrite")
    assert rewritten is not None
    assert rewritten.value == {"id": 1, "__deleted": "true"}


OUTBOX = struct_schema(
    [
        Field("id", STRING_SCHEMA),
        Field("aggregatetype", STRING_SCHEMA),
        Field("aggregateid", STRING_SCHEMA),
        Field("type", STRING_SCHEMA),
        Field("payload", OPTIONAL_STRING_SCHEMA),
        Field("lane", OPTIONAL_INT64_SCHEMA),
        Field("written", OPTIONAL_INT64_SCHEMA),
    ]
)
OUTBOX_ENVELOPE = envelope(OUTBOX)
ORDERED = {
    "id": "e1", "aggregatetype": "order", "aggregateid": "42", "type": "OrderPlaced",
    "payload": '{"total": 5}', "lane": 3,
}  # fmt: skip


def outbox(operation: str = "c", **row: Any) -> ConnectRecord:
    after = Struct.of(OUTBOX_ENVELOPE.fields[1].schema, ORDERED | row)
    source = Struct.of(SOURCE, {"table": "outbox"})
    value = Struct.of(OUTBOX_ENVELOPE, {"after": after, "source": source, "op": operation, "ts_ms": 1000})
    return ConnectRecord(topic="shop.public.outbox", value_schema=OUTBOX_ENVELOPE, value=value, timestamp=5)


def route(record: ConnectRecord, **settings: str) -> ConnectRecord | None:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    return EventRouter(EventRouter.config_def.parse(given)).apply(record)


def test_an_event_goes_to_its_aggregates_topic() -> None:
    found = route(outbox())
    assert found is not None
    assert (found.topic, found.key, found.value, found.timestamp) == ("outbox.event.order", "42", '{"total": 5}', 1000)
    assert (found.key_schema, found.value_schema) == (STRING_SCHEMA, OPTIONAL_STRING_SCHEMA)
    assert [(each.key, each.value) for each in found.headers] == [("id", "e1")]


def test_topics_and_columns_by_other_names() -> None:
    found = route(
        outbox(written=77),
        route_by_field="type",
        route_topic_regex="(?<kind>[A-Z][a-z]+)(.*)",
        route_topic_replacement="events.${kind}.$2",
        table_field_event_key="id",
        table_field_event_timestamp="written",
    )
    assert found is not None
    assert (found.topic, found.key, found.timestamp) == ("events.Order.Placed", "e1", 77)


def test_more_columns_are_headers_the_partition_or_beside_the_payload() -> None:
    found = route(
        outbox(), table_fields_additional_placement="type:header:eventType,lane:partition,aggregatetype:envelope:kind"
    )
    assert found is not None
    assert [(each.key, each.value) for each in found.headers] == [("id", "e1"), ("eventType", "OrderPlaced")]
    assert found.partition == 3
    assert (found.value["payload"], found.value["kind"]) == ('{"total": 5}', "order")
    with pytest.raises(InvalidValue, match="no column other"):
        route(outbox(), table_fields_additional_placement="other:header")
    lenient = {"table_fields_additional_error_on_missing": "false"}
    assert route(outbox(), table_fields_additional_placement="other:header", **lenient) is not None
    with pytest.raises(ConfigError, match="column:header"):
        route(outbox(), table_fields_additional_placement="type:footer")


def test_a_payload_of_json_is_expanded() -> None:
    text = (
        '{"total": 5, "zero": 0, "rate": 0.5, "none": null, "items": [{"n": 1}, {"n": 2}], "mixed": true, "word": ""}'
    )
    found = route(outbox(payload=text), table_expand_json_payload="true")
    assert found is not None
    assert [field.name for field in found.value.schema.fields] == ["total", "zero", "rate", "items", "mixed", "word"]
    assert found.value["zero"] == 0
    assert found.value["word"] == ""
    assert [each["n"] for each in found.value["items"]] == [1, 2]
    keeping = {"table_json_payload_null_behavior": "optional_bytes"}
    kept = route(outbox(payload=text), table_expand_json_payload="true", **keeping)
    assert kept is not None
    assert kept.value["none"] is None
    for other in ("plain", "{broken", '{"a": [1, "x"]}'):
        same = route(outbox(payload=other), table_expand_json_payload="true")
        assert same is not None
        assert same.value == other


def test_deletions_updates_and_empty_payloads() -> None:
    assert route(outbox("d")) is None
    assert route(outbox("u")) is None
    with pytest.raises(InvalidValue, match="unexpected operation u"):
        route(outbox("u"), table_op_invalid_behavior="error")
    assert route(ConnectRecord(topic="t")) is None
    empty = route(outbox(payload=None))
    assert empty is not None
    assert empty.value_schema == OPTIONAL_STRING_SCHEMA
    tombstone = route(outbox(payload=None), route_tombstone_on_empty_payload="true")
    assert tombstone is not None
    assert (tombstone.value_schema, tombstone.value, tombstone.key) == (None, None, "42")
    with pytest.raises(InvalidValue, match="no column uuid"):
        route(outbox(), table_field_event_id="uuid")


def test_they_are_known_by_debeziums_names() -> None:
    settings: dict[str, str | None] = {
        "name": "n",
        "connector.class": "FileStreamSink",
        "topics": "t",
        "transforms": "row,outbox",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.row.delete.tombstone.handling.mode": "sometimes",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    }
    errors = validated(settings).errors
    assert len(errors) == 1
    assert "sometimes" in errors[0]
    assert INT64_SCHEMA.type is SchemaType.INT64
