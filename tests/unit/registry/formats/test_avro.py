"""Avro texts: what is a schema, and its forms."""

from __future__ import annotations

import json

import pytest

from millbeck.registry.errors import InvalidSchema, SchemaTooLarge
from millbeck.registry.formats.avro import AvroFormat, Record
from millbeck.registry.formats.interface import Form, Imported, Limits

AVRO = AvroFormat()


def canonical(text: str, *imported: Imported, form: Form = Form.CANONICAL) -> str:
    return AVRO.parse(text, imported).text(form)


CANONICAL = {
    "a primitive": ('{"type": "string"}', '"string"'),
    "a logical type": ('{ "logicalType": "date", "type": "int" }', '{"type":"int","logicalType":"date"}'),
    "members in their order": (
        '{"fields": [{"type": ["null", "string"], "default": null, "name": "c"}], "name": "O", "type": "record"}',
        '{"type":"record","name":"O","fields":[{"name":"c","type":["null","string"],"default":null}]}',
    ),
    "a namespace in the name": (
        '{"type":"fixed","name":"a.b.F","size":2}',
        '{"type":"fixed","name":"F","namespace":"a.b","size":2}',
    ),
    "an inherited namespace": (
        '{"type":"record","name":"a.R","fields":[{"name":"e","type":{"type":"enum","name":"a.E","symbols":["X"]}},'
        '{"name":"f","type":"a.E"}]}',
        '{"type":"record","name":"R","namespace":"a","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"symbols":["X"]}},{"name":"f","type":"E"}]}',
    ),
    "everything a field can have": (
        '{"type":"record","name":"R","doc":"d","aliases":["Q"],"x":1,"fields":[{"aliases":["g"],"order":"ignore",'
        '"default":1,"doc":"e","type":"int","name":"f","y":[2]}]}',
        '{"type":"record","name":"R","doc":"d","fields":[{"name":"f","type":"int","doc":"e","default":1,'
        '"order":"ignore","aliases":["g"],"y":[2]}],"x":1,"aliases":["Q"]}',
    ),
    "a recursive record": (
        '{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}',
        '{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}',
    ),
    "members of other types are dropped": (
        '{"type":"array","name":"x","doc":"d","items":{"type":"int","name":"y","namespace":"z"},"default":[]}',
        '{"type":"array","items":"int","default":[]}',
    ),
    "nested arrays and maps": (
        '{"type":"array","items":{"type":"map","values":{"type":"long"}}}',
        '{"type":"array","items":{"type":"map","values":"long"}}',
    ),
}


@pytest.mark.parametrize(("text", "expected"), CANONICAL.values(), ids=CANONICAL.keys())
def test_the_canonical_form(text: str, expected: str) -> None:
    assert canonical(text) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"fixed","name":"F","namespace":"a-b.1c","size":2}',
        '{"type":"enum","name":"E","symbols":["a-b"]}',
        '{"type":"record","name":"R","fields":[{"name":"a b","type":"int"}]}',
    ],
)
def test_names_of_schemas_from_before_are_not_checked(text: str) -> None:
    with pytest.raises(InvalidSchema):
        AVRO.parse(text, ())
    assert AVRO.parse(text, (), is_new=False).text(Form.CANONICAL) == text


def test_the_normalized_form_is_the_same_for_other_spellings() -> None:
    spellings = [
        '{"type":"record","name":"R","namespace":"a","z":1,"b":2,"fields":[{"name":"r","type":["null","R"]}]}',
        '{"type":"record","name":"a.R","b":2,"z":1,"fields":[{"name":"r","type":["null","a.R"]}]}',
    ]
    first, second = (canonical(text, form=Form.NORMALIZED) for text in spellings)
    assert first == second
    assert canonical(spellings[0]) != canonical(spellings[1])


def test_references_are_names_in_the_text_and_types_in_the_resolved_form() -> None:
    customer = Imported("a.C", '{"type":"record","name":"C","namespace":"a","fields":[{"name":"id","type":"long"}]}')
    text = '{"type":"record","name":"O","namespace":"a","fields":[{"name":"c","type":"a.C"}]}'
    assert canonical(text, customer) == text.replace("a.C", "C")
    resolved = canonical(text, customer, form=Form.RESOLVED)
    assert json.loads(resolved)["fields"][0]["type"]["fields"] == [{"name": "id", "type": "long"}]


def test_a_recursive_type_is_one_object() -> None:
    root = AVRO.parse('{"type":"record","name":"N","fields":[{"name":"next","type":"N"}]}', ()).root
    assert isinstance(root, Record)
    assert root.fields[0].type is root


INVALID = {
    "not JSON": ('{"type": ', "not JSON"),
    "NaN": ('{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":NaN}]}', "not JSON"),
    "a number": ("1", "not a type"),
    "an unknown name": ('"Order"', "add its schema to the references"),
    "a type of no type": ('{"name":"R"}', "has no member type"),
    "a record without fields": ('{"type":"record","name":"R"}', '"R" has no fields'),
    "a record without a name": ('{"type":"record","fields":[]}', "has no name"),
    "a bad name": ('{"type":"record","name":"1R","fields":[]}', "is not a name"),
    "a bad field name": ('{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}', "not a field's name"),
    "a field twice": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        "two fields",
    ),
    "a name twice": ('[{"type":"fixed","name":"F","size":1},{"type":"enum","name":"F","symbols":[]}]', "defined twice"),
    "a union in a union": ('["null",["int"]]', "other unions"),
    "a branch twice": ('["int","int"]', "int twice"),
    "two arrays": ('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', "array twice"),
    "a symbol twice": ('{"type":"enum","name":"E","symbols":["A","A"]}', "a symbol twice"),
    "a bad symbol": ('{"type":"enum","name":"E","symbols":["A-B"]}', "is not a symbol"),
    "a default that is no symbol": (
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        "not one of its symbols",
    ),
    "a size below zero": ('{"type":"fixed","name":"F","size":-1}', "number of bytes"),
    "a default of another type": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
        'the default of field "a" is "x", which is not a valid int',
    ),
    "a default too large for int": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":2147483648}]}',
        "which is not a valid int",
    ),
    "a bad order": ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}', "order"),
}


@pytest.mark.parametrize(("text", "reason"), INVALID.values(), ids=INVALID.keys())
def test_what_is_no_schema_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        AVRO.parse(text, ())


def test_a_schema_that_was_accepted_once_may_have_a_bad_default() -> None:
    root = AVRO.parse(INVALID["a default of another type"][0], (), is_new=False).root
    assert isinstance(root, Record)
    assert root.fields[0].default == "x"


LARGE = {
    "many levels": '{"type":"array","items":' * 300 + '"int"' + "}" * 300,
    "levels that JSON does not survive": "[" * 100_000,
    "a long text": json.dumps({"type": "string", "doc": "x" * (1024 * 1024)}),
    "many symbols": json.dumps({"type": "enum", "name": "E", "symbols": [f"S{index}" for index in range(100_001)]}),
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_what_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(SchemaTooLarge):
        AVRO.parse(text, ())


def test_references_are_limited() -> None:
    with pytest.raises(SchemaTooLarge, match="references"):
        AvroFormat(Limits(reference_count_max=1)).parse('"int"', [Imported("a", '"int"')] * 2)
