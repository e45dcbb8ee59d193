"""JsonConverter where no recorded answer shows it: caches, bounds, maps of several members."""

from __future__ import annotations

import contextlib
import json

import pytest

from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.converters.plain import StringConverter
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.schema import INT32_SCHEMA, INT64_SCHEMA, Schema, SchemaType, map_schema

PLAIN = JsonConverter({"schemas.enable": "false"})


def test_what_is_written_can_be_read() -> None:
    converter = JsonConverter({})
    schema = map_schema(Schema(SchemaType.STRING), Schema(SchemaType.FLOAT64, optional=True))
    value = {"a": 1.5, "b": None, 'c"': 1e300}
    assert converter.from_bytes("t", converter.to_bytes("t", schema, value)) == (schema, value)


@pytest.mark.parametrize(("size", "kept"), [("2", 2), ("0", 1), ("-1", 1)])
def test_no_more_schemas_are_kept_than_the_setting_says(size: str, kept: int) -> None:
    converter = JsonConverter({"schemas.cache.size": size})
    for version in (*range(5), *range(5)):
        schema = Schema(SchemaType.INT32, version=version)
        stored = converter.to_bytes("t", schema, 7)
        assert json.loads(stored or b"")["schema"]["version"] == version
        assert converter.from_bytes("t", stored) == (schema, 7)
    assert len(converter._known) == len(converter._written) == kept
    assert len(converter._prefixes) <= kept


BAD = {
    "deep": b"[" * 100_000,
    "a number of a megabyte": b"1" * 1_000_000,
    "an exponent without end": b"[1e" + b"9" * 2000 + b"]",
    "not UTF-8": b'"\xff"',
    "half a character": b'"\\ud800" x',
}


@pytest.mark.parametrize("stored", [value for name, value in BAD.items() if name != "half a character"])
def test_hostile_json_is_an_error_of_the_record(stored: bytes) -> None:
    with pytest.raises(InvalidValue):
        PLAIN.from_bytes("t", stored)


def test_half_a_character_is_read_but_not_written() -> None:
    found = PLAIN.from_bytes("t", BAD["half a character"]).value
    with pytest.raises(InvalidValue, match="half a character"):
        PLAIN.to_bytes("t", None, found)


def test_a_schema_without_end_is_an_error_of_the_record() -> None:
    nested = '{"type":"int32"}'
    for _ in range(300):
        nested = f'{{"type":"array","items":{nested}}}'
    with pytest.raises(InvalidValue, match="levels"):
        JsonConverter({}).from_bytes("t", f'{{"schema":{nested},"payload":[]}}'.encode())


def test_a_number_beyond_its_type_is_not_written() -> None:
    with pytest.raises(InvalidValue, match="out of its range"):
        PLAIN.to_bytes("t", INT32_SCHEMA, 1 << 40)
    with pytest.raises(InvalidValue, match="Invalid type for INT64"):
        PLAIN.to_bytes("t", INT64_SCHEMA, True)


def test_an_unknown_character_set_is_named() -> None:
    with pytest.raises(ConfigError, match=r"converter\.encoding"):
        StringConverter({"converter.encoding": "nothing"})


SCHEMA = '{"type":"struct","fields":[{"type":"int32","field":"a","optional":true}]}'


def envelope(payload: str, schema: str = SCHEMA) -> bytes:
    return f'{{"schema":{schema},"payload":{payload}}}'.encode()


ENVELOPES = {
    "the same shape": envelope('{"a":5}'),
    "another value": envelope('{"a":7}'),
    "spaces": envelope(' {"a": 5 } '),
    "zeros before a number": envelope('{"a":007}'),
    "a null": envelope('{"a":null}'),
    "what follows is ignored": envelope('{"a":5}') + b" more",
    "a member twice": envelope('{"a":5},"payload":{"a":6}'),
    "another member": envelope('{"a":5},"other":1'),
    "no end": envelope('{"a":5}')[:-1],
    "not the schema's": envelope('{"a":"x"}'),
    "another schema": envelope("5", '{"type":"int8"}'),
    "the word in a description": envelope("5", '{"type":"int8","doc":"a ,\\"payload\\": b"}'),
    "another order": b'{"payload":{"a":5},"schema":' + SCHEMA.encode() + b"}",
    "another order, with the word": b'{"payload":5,"schema":{"type":"int8","x":1,"payload":2}}',
    "not UTF-8": envelope('{"a":5}').replace(b"5", b"\xff"),
    "no schema": envelope("5", "null"),
}


@pytest.mark.parametrize("stored", ENVELOPES.values(), ids=ENVELOPES.keys())
def test_a_record_is_read_the_same_after_others_of_its_schema(stored: bytes) -> None:
    def outcome(converter: JsonConverter) -> object:
        try:
            return converter.from_bytes("t", stored)
        except InvalidValue as error:
            return str(error)

    experienced = JsonConverter({})
    for other in ENVELOPES.values():
        with contextlib.suppress(InvalidValue):
            experienced.from_bytes("t", other)
    assert outcome(experienced) == outcome(JsonConverter({}))
    assert outcome(experienced) == outcome(experienced)


def test_the_payload_alone_is_read_of_a_schema_that_came_before() -> None:
    converter = JsonConverter({})
    first = converter.from_bytes("t", envelope('{"a":5}'))
    second = converter.from_bytes("t", envelope('{"a":6}'))
    assert second.schema is first.schema
    assert list(converter._prefixes) == [envelope("")[:-1]]
    assert JsonConverter({"schemas.cache.size": "0"}).from_bytes("t", envelope('{"a":5}')) == first
