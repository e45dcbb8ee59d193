"""The schemas that a topic may have, from the records of the registry's topic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millbeck.server.schemas.registered import RegisteredSchemas

ORDER = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": []})
PROTO = 'syntax = "proto3";\npackage shop;\nmessage Order { message Line { } }\nmessage Other { }\n'


def key(keytype: str, subject: str, version: int | None = None) -> bytes:
    members: dict[str, Any] = {"keytype": keytype, "subject": subject}
    return json.dumps({**members, **({} if version is None else {"version": version}), "magic": 1}).encode()


def value(subject: str, schema_id: int, text: str = ORDER, **members: Any) -> bytes:
    return json.dumps({"subject": subject, "version": 1, "id": schema_id, "schema": text, **members}).encode()


def registered(*versions: tuple[str, int, int, str, str]) -> RegisteredSchemas:
    found = RegisteredSchemas()
    for subject, number, schema_id, text, kind in versions:
        assert found.replay(key("SCHEMA", subject, number), value(subject, schema_id, text, schemaType=kind))
    return found


def ids(
    schemas: RegisteredSchemas, topic: str, strategy: str = "TopicNameStrategy", *, is_key: bool = False
) -> set[int]:
    return set(schemas.of_topic(topic, strategy, is_key=is_key)[0])


def test_versions_of_the_topics_subject_are_accepted_until_they_are_deleted() -> None:
    schemas = registered(("orders-value", 1, 5, ORDER, "AVRO"), ("orders-value", 2, 6, ORDER, "AVRO"))
    schemas.replay(key("SCHEMA", "orders-key", 1), value("orders-key", 9))
    assert ids(schemas, "orders") == {5, 6}
    assert ids(schemas, "orders", is_key=True) == {9}
    assert ids(schemas, "other") == set()
    schemas.replay(key("SCHEMA", "orders-value", 1), value("orders-value", 5, deleted=True))
    assert ids(schemas, "orders") == {6}
    schemas.replay(key("SCHEMA", "orders-value", 1), None)
    schemas.replay(key("DELETE_SUBJECT", "orders-value"), b'{"subject":"orders-value","version":2}')
    assert ids(schemas, "orders") == set()
    schemas.replay(key("SCHEMA", "orders-value", 2), value("orders-value", 6))
    assert ids(schemas, "orders") == {6}
    schemas.replay(key("CLEAR_SUBJECT", "orders-value"), b'{"subject":"orders-value"}')
    assert ids(schemas, "orders") == set()


def test_guids_are_accepted_too() -> None:
    schemas = RegisteredSchemas()
    guid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    schemas.replay(key("SCHEMA", "orders-value", 1), value("orders-value", 5, guid=guid))
    schemas.replay(key("SCHEMA", "orders-value", 2), value("orders-value", 6, guid="not a guid"))
    assert schemas.of_topic("orders", "TopicNameStrategy", is_key=False) == ({5, 6}, {bytes(range(16))})


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        (ORDER, "AVRO", "shop.Order"),
        ('{"type": "fixed", "name": "a.Id", "namespace": "b", "size": 2}', "AVRO", "a.Id"),
        ('{"type": "object", "title": "Order"}', "JSON", "Order"),
        (PROTO, "PROTOBUF", "shop.Order"),
        (PROTO, "PROTOBUF", "shop.Other"),
    ],
)
def test_subjects_are_named_after_records(text: str, kind: str, name: str) -> None:
    schemas = registered((name, 1, 1, text, kind), (f"orders-{name}", 1, 2, text, kind), ("other-x", 1, 3, text, kind))
    assert ids(schemas, "orders", "RecordNameStrategy") == {1}
    assert ids(schemas, "orders", "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy") == {2}
    assert ids(schemas, "other", "TopicRecordNameStrategy") == set()


def test_an_alias_leads_to_its_subject() -> None:
    schemas = registered(("shop", 1, 5, ORDER, "AVRO"))
    schemas.replay(key("CONFIG", "orders-value"), b'{"alias":"shop"}')
    assert ids(schemas, "orders") == {5}
    schemas.replay(key("CONFIG", "orders-value"), None)
    assert ids(schemas, "orders") == set()


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (None, b"{}"),
        (b"no json", b"{}"),
        (key("SCHEMA", ":.lab:orders-value", 1), value("orders-value", 5)),
        (key("SCHEMA", "orders-value", 1), b'{"id": -1}'),
        (key("NOOP", "x"), None),
        (key("MODE", "orders-value"), b'{"mode":"READONLY"}'),
    ],
)
def test_what_is_of_no_concern_is_passed_over(raw: bytes | None, written: bytes | None) -> None:
    schemas = RegisteredSchemas()
    assert not schemas.replay(raw, written)
    assert ids(schemas, "orders") == set()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"name": 5}', "[]", "", 7, None])
def test_a_text_without_a_name_has_none(text: Any) -> None:
    schemas = RegisteredSchemas()
    schemas.replay(key("SCHEMA", "orders-value", 1), value("orders-value", 5, text))
    assert ids(schemas, "orders") == {5}
    assert ids(schemas, "orders", "RecordNameStrategy") == set()
