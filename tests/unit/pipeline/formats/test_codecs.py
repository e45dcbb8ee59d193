"""Schemas from registries: records of several writers, and what is no record of theirs."""

from __future__ import annotations

import pickle
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytest.importorskip("fastavro", reason="the extra spark is not installed")

from millbeck.client.schemas import waiting
from millbeck.client.schemas.errors import BadRecord
from millbeck.client.schemas.model import AVRO, PROTOBUF, MemorySchemas, Schema
from millbeck.pipeline.errors import SchemaError
from millbeck.pipeline.formats import codecs
from millbeck.pipeline.formats.codecs import AvroCodec, ProtobufCodec, RegistrySubject

OLD = Schema(AVRO, '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}')
NEW = Schema(
    AVRO,
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "s", "type": ["null", "string"], "default": null}]}',
)
PROTO = Schema(
    PROTOBUF, 'syntax = "proto3"; message A { int32 n = 1; } message B { message C { int32 n = 1; } C c = 1; }'
)


class Counted(MemorySchemas):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(uuid4().hex)
        self.asked = 0

    def by_id(self, schema_id: int) -> Schema:
        self.asked += 1
        return super().by_id(schema_id)


class Broken(MemorySchemas):
    """Does not answer the first times."""

    def __init__(self, failure_count: int) -> None:
        super().__init__(uuid4().hex)
        self.failures_left = failure_count

    def by_id(self, schema_id: int) -> Schema:
        if self.failures_left:
            self.failures_left -= 1
            raise SchemaError("the registry does not answer")
        return super().by_id(schema_id)


def test_without_a_registry_records_are_bare() -> None:
    codec = pickle.loads(pickle.dumps(AvroCodec(OLD)))
    assert codec.writing()({"n": 1}) == b"\2"
    assert codec.reading()(b"\2") == {"n": 1}
    proto = pickle.loads(pickle.dumps(ProtobufCodec(PROTO)))
    assert proto.writing()({"n": 1}) == b"\x08\1"
    assert proto.reading()(b"\x08\1") == {"n": 1}


def test_each_record_is_read_with_the_schema_it_was_written_with() -> None:
    schemas = Counted()
    registered = RegistrySubject(schemas, "t-value", auto_register=True)
    records = [
        AvroCodec(schema, registered).writing()(value)
        for schema, value in ((OLD, {"n": 7}), (NEW, {"n": 2**40, "s": "x"}), (OLD, {"n": 8}))
    ]
    assert [record[:5] for record in records] == [b"\0\0\0\0\1", b"\0\0\0\0\2", b"\0\0\0\0\1"]
    read = AvroCodec(registered.latest(), registered).reading()
    expected = [{"n": 7, "s": None}, {"n": 2**40, "s": "x"}, {"n": 8, "s": None}]
    assert [read(record) for record in records] == expected
    again = AvroCodec(NEW, RegistrySubject(schemas, "t-value")).reading()
    assert [again(record) for record in records] == expected
    # By the latest, and once for each id.
    assert schemas.asked == 2


def test_a_message_of_another_kind_is_no_record() -> None:
    registered = RegistrySubject(Counted(), "t-value", auto_register=True)
    inner = ProtobufCodec(PROTO, "B.C", registered)
    record = inner.writing()({"n": 3})
    assert record == b"\0\0\0\0\1" + b"\4\2\0" + b"\x08\3"
    assert inner.reading()(record) == {"n": 3}
    with pytest.raises(BadRecord, match=r"it is a B\.C, not a A"):
        ProtobufCodec(PROTO, "A", registered).reading()(record)
    with pytest.raises(BadRecord, match=r"schema 1 cannot be used: the schema has no message at \[5\]"):
        inner.reading()(b"\0\0\0\0\1\2\x0a")


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (b"\2", "too few"),
        (b"{...}", "begins with 0x7b"),
        (b"\0\0\0\0\x63\2", "id 99"),
        (b"\0\0\0\0\2\2", "is PROTOBUF"),
    ],
)
def test_what_is_no_record_of_the_registry_is_named(record: bytes, complaint: str) -> None:
    schemas: Any = Counted()
    schemas.register("t-value", OLD)
    schemas.register("u-value", PROTO)
    with pytest.raises(BadRecord, match=complaint):
        AvroCodec(OLD, RegistrySubject(schemas, "t-value")).reading()(record)


def test_a_registry_that_does_not_answer_delays_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", 0.001)
    schemas = Broken(3)
    schemas.register("t-value", OLD)
    assert AvroCodec(OLD, RegistrySubject(schemas, "t-value")).reading()(b"\0\0\0\0\1\2") == {"n": 1}
    monkeypatch.setattr(codecs, "WAIT_SECONDS_MAX", 0.01)
    with pytest.raises(SchemaError, match="does not answer"):
        AvroCodec(OLD, RegistrySubject(Broken(10**9), "t-value")).reading()(b"\0\0\0\0\1\2")


def test_a_schema_is_not_registered_unless_asked_for() -> None:
    schemas = MemorySchemas(uuid4().hex)
    for codec in (
        AvroCodec(OLD, RegistrySubject(schemas, "t-value")),
        ProtobufCodec(PROTO, "A", RegistrySubject(schemas, "t-value")),
    ):
        with pytest.raises(SchemaError, match="millbeck registry schema register t-value FILE"):
            codec.writing()
    schemas.register("t-value", OLD)
    assert AvroCodec(OLD, RegistrySubject(schemas, "t-value")).writing()({"n": 1}) == b"\0\0\0\0\1\2"


def test_workers_get_the_id_from_the_driver() -> None:
    schemas = MemorySchemas(uuid4().hex)
    schemas.register("t-value", OLD)
    codec = AvroCodec(OLD, RegistrySubject(schemas, "t-value"))
    codec.prepare_writing()
    schemas._ids.clear()
    assert pickle.loads(pickle.dumps(codec)).writing()({"n": 1}) == b"\0\0\0\0\1\2"
