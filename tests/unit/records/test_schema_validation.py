"""Validation of schema ids in a produced batch: what passes, and what the error says."""

from __future__ import annotations

import pytest

from millbeck.records import batch
from millbeck.records.compression import Codec
from millbeck.records.record import Record
from millbeck.records.schema_validation import AcceptedIds, SchemaIdRefused, SchemaRules
from millbeck.records.validation import ValidationRules, validate

NOW = 1_700_000_000_000
GUID = bytes(range(16))
VALUES = AcceptedIds("confluent.value.schema.validation", "orders-value", frozenset({7}), frozenset({GUID}))
KEYS = AcceptedIds("confluent.key.schema.validation", "orders-key", frozenset({3}))
RULES = ValidationRules(schemas=SchemaRules(values=VALUES))


def with_id(number: int, payload: bytes = b"payload") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


def built(*records: Record, codec: Codec = Codec.NONE) -> bytes:
    return batch.build(list(records), codec=codec)


def record(value: bytes | None, key: bytes | None = None, **headers: bytes) -> Record:
    return Record(-1, NOW, key, value, tuple(headers.items()))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_with_their_schema_pass_as_they_came(codec: Codec) -> None:
    data = built(record(with_id(7)), record(None), record(with_id(7, b"")), codec=codec)
    assert validate(data, RULES, NOW).batch is data


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_the_error_lists_the_records_and_what_to_do(codec: Codec) -> None:
    data = built(record(with_id(7)), record(with_id(8)), record(b'{"id": 1}'), codec=codec)
    with pytest.raises(SchemaIdRefused) as caught:
        validate(data, RULES, NOW)
    assert [each.batch_index for each in caught.value.record_errors] == [1, 2]
    assert not caught.value.may_be_new
    first, second = (each.message for each in caught.value.record_errors)
    assert "id 8" in first
    assert "no version of orders-value (confluent.value.schema.validation=true): register" in first
    assert "does not begin with a zero byte" in second


def test_an_id_alone_may_be_new() -> None:
    with pytest.raises(SchemaIdRefused) as caught:
        validate(built(record(with_id(8))), RULES, NOW)
    assert caught.value.may_be_new


def test_a_guid_in_a_header_is_an_id() -> None:
    name = "__value_schema_id"
    validate(built(record(b"payload", **{name: b"\1" + GUID})), RULES, NOW)
    for header in (b"\1" + bytes(16), b"\1" + GUID[:15], b"", with_id(8)):
        with pytest.raises(SchemaIdRefused):
            validate(built(record(b"payload", **{name: header})), RULES, NOW)


def test_keys_have_rules_of_their_own() -> None:
    rules = ValidationRules(schemas=SchemaRules(keys=KEYS))
    validate(built(record(b"any", with_id(3)), record(b"any")), rules, NOW)
    with pytest.raises(SchemaIdRefused, match="its key has the schema id 7"):
        validate(built(record(b"any", with_id(7))), rules, NOW)


def test_an_error_lists_so_many_records() -> None:
    with pytest.raises(SchemaIdRefused) as caught:
        validate(built(*[record(b"x")] * 500), RULES, NOW)
    assert len(caught.value.record_errors) == 100
