"""JsonConverter where no recorded answer shows it: caches, bounds, maps of several members."""

from __future__ import annotations

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


def test_no_more_schemas_are_kept_than_the_setting_says() -> None:
    converter = JsonConverter({"schemas.cache.size": "2"})
    for version in (*range(5), *range(5)):
        schema = Schema(SchemaType.INT32, version=version)
        stored = converter.to_bytes("t", schema, 7)
        assert json.loads(stored or b"")["schema"]["version"] == version
        assert converter.from_bytes("t", stored) == (schema, 7)
    assert len(converter._known) == len(converter._written) == 2


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
