"""The questions that are put to Kafka's classes: converters, transforms and predicates with many settings and values.

Each question is a dictionary in the form that `ConnectOracle.java` reads; `tests/unit/pipeline/connect/plain_form.py`
has the form of values, schemas and records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

Form = dict[str, Any]

TRANSFORMS = "org.apache.kafka.connect.transforms."
CONVERTERS = "org.apache.kafka.connect.converters."
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
DATA = "org.apache.kafka.connect.data."

MOMENT = 1_700_000_123_456
DAY = 19_675 * 86_400_000
NESTED = {"type": "struct", "fields": [["street", {"type": "string"}], ["zip", {"type": "int32", "optional": True}]]}
ORDER: Form = {
    "type": "struct",
    "name": "Order",
    "version": 3,
    "doc": "An order.",
    "parameters": {"owner": "shop"},
    "fields": [
        ["id", {"type": "int64"}],
        ["name", {"type": "string", "optional": True}],
        ["price", {"type": "float64", "default": {"float64": "9.5"}}],
        ["count", {"type": "int32", "optional": True, "default": {"int32": 7}}],
        ["paid", {"type": "boolean"}],
        ["when", {"type": "int64", "name": f"{DATA}Timestamp", "version": 1}],
        ["address", {**NESTED, "optional": True}],
        ["tags", {"type": "array", "element": {"type": "string"}}],
    ],
}
ORDER_VALUE: Form = {
    "struct": {
        "id": {"int64": 42},
        "name": {"string": "Größe"},
        "price": {"float64": "1.25"},
        "paid": {"boolean": True},
        "when": {"instant": MOMENT},
        "address": {"struct": {"street": {"string": "Main"}, "zip": {"int32": 8000}}},
        "tags": {"array": [{"string": "a"}, {"string": "b"}]},
    }
}
PLAIN_ORDER: Form = {
    "map": [
        [{"string": "id"}, {"int64": 42}],
        [{"string": "name"}, {"string": "Ann"}],
        [{"string": "price"}, {"float64": "1.25"}],
        [{"string": "none"}, None],
        [{"string": "when"}, {"int64": MOMENT}],
        [
            {"string": "address"},
            {"map": [[{"string": "street"}, {"string": "Main"}], [{"string": "a.b"}, {"int64": 1}]]},
        ],
        [{"string": "tags"}, {"array": [{"int64": 1}, {"int64": 2}]}],
    ]
}
HEADERS = [
    {"key": "trace", "schema": {"type": "string"}, "value": {"string": "x1"}},
    {"key": "n", "schema": {"type": "int32"}, "value": {"int32": 5}},
    {"key": "trace", "schema": None, "value": None},
]


def record(side: str = "Value", schema: Form | None = None, value: Form | None = None, **changes: Any) -> Form:
    found: Form = {
        "topic": "shop-orders",
        "partition": 3,
        "key_schema": None,
        "key": None,
        "value_schema": None,
        "value": None,
        "timestamp": MOMENT,
        "headers": [],
        "offset": 1234,
    }
    found[f"{side.lower()}_schema"] = schema
    found[side.lower()] = value
    return found | changes


def transform(name: str, config: dict[str, str], of: Form) -> Form:
    return {"op": "transform", "class": TRANSFORMS + name, "config": config, "record": of}


def on_all(name: str, *configs: dict[str, str], sides: tuple[str, ...] = ("Key", "Value")) -> Iterator[Form]:
    """A transform of keys and of values, with a schema, without, and on what it may not be for."""
    inputs: list[tuple[Form | None, Form | None]] = [
        (ORDER, ORDER_VALUE),
        (None, PLAIN_ORDER),
        (None, None),
        ({**ORDER, "optional": True}, None),
        ({"type": "string"}, {"string": "text"}),
        (None, {"string": "text"}),
    ]
    for side, config in product(sides, configs):
        chosen = inputs if side == "Value" else inputs[:2]
        for schema, value in chosen:
            yield transform(f"{name}${side}", config, record(side, schema, value))


def cast_cases() -> Iterator[Form]:
    yield from on_all("Cast", {"spec": "id:int32,count:string,name:string"}, {"spec": "string"})
    yield from on_all("Cast", {"spec": "price:string,when:int64,count:float32", "replace.null.with.default": "false"})
    values: list[tuple[Form, Form]] = [
        ({"type": "int64"}, {"int64": 300}),
        ({"type": "int64"}, {"int64": -(1 << 40)}),
        ({"type": "float64"}, {"float64": "1.0E10"}),
        ({"type": "float64"}, {"float64": "-3.99"}),
        ({"type": "float64"}, {"float64": "NaN"}),
        ({"type": "float64"}, {"float64": "1.0E300"}),
        ({"type": "float32"}, {"float32": "1.1"}),
        ({"type": "boolean"}, {"boolean": True}),
        ({"type": "string"}, {"string": "42"}),
        ({"type": "string"}, {"string": " 42 "}),
        ({"type": "string"}, {"string": "4.5f"}),
        ({"type": "string"}, {"string": "TRUE"}),
        ({"type": "string"}, {"string": "x"}),
        ({"type": "bytes"}, {"bytes": "00ff10"}),
        ({"type": "int64", "name": f"{DATA}Timestamp", "version": 1}, {"instant": MOMENT}),
        ({"type": "int32", "name": f"{DATA}Date", "version": 1}, {"instant": DAY}),
        ({"type": "int32", "name": f"{DATA}Time", "version": 1}, {"instant": 3_723_004}),
        (
            {"type": "bytes", "name": f"{DATA}Decimal", "version": 1, "parameters": {"scale": "2"}},
            {"decimal": "123.45"},
        ),
    ]
    targets = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
    for (schema, value), target in product(values, targets):
        yield transform("Cast$Value", {"spec": target}, record(schema=schema, value=value))
    plain_values: list[Form] = [{"int64": 300}, {"string": "12"}, {"map": []}, {"float64": "2.5"}]
    for plain, target in product(plain_values, ("int8", "string")):
        yield transform("Cast$Value", {"spec": target}, record(value=plain))
    for spec in ("", "int8,int16", "a:b:c", "a:nothing", "bytes", "a:array", "a:int8,int8"):
        yield transform("Cast$Value", {"spec": spec}, record(value=PLAIN_ORDER))
    yield transform("Cast$Value", {}, record(value=PLAIN_ORDER))


def field_cases() -> Iterator[Form]:
    yield from on_all("ExtractField", {"field": "name"}, {"field": "count"}, {"field": "nothing"})
    nested = {"field.syntax.version": "v2"}
    for field in ("address.street", "address", "address.nothing", "nothing.x", "name.x", "`id`", "tags.x"):
        for schema, value in ((ORDER, ORDER_VALUE), (None, PLAIN_ORDER)):
            yield transform("ExtractField$Value", {"field": field, **nested}, record(schema=schema, value=value))
    for path in ("`address`.`a.b`", "`a.b", "address.`a.b`", "`a`b`", "a.", "`a\\`.b`.c", ""):
        yield transform("ExtractField$Value", {"field": path, **nested}, record(value=PLAIN_ORDER))
    no_default = {"field": "count", "replace.null.with.default": "false"}
    yield transform("ExtractField$Value", no_default, record(schema=ORDER, value=ORDER_VALUE))
    yield from on_all("HoistField", {"field": "inner"})
    yield from on_all(
        "ReplaceField",
        {"exclude": "id,paid"},
        {"include": "id,name,count"},
        {"include": "id,name", "exclude": "name", "renames": "id:key,name:title"},
        {"renames": "id:name"},
    )
    for renames in ("a", "a:b:c", "a:", ":b"):
        yield transform("ReplaceField$Value", {"renames": renames}, record(value=PLAIN_ORDER))
    yield from on_all("MaskField", {"fields": "name,count,price,paid,when"}, {"fields": "tags,address"})
    yield from on_all(
        "MaskField", {"fields": "id,name,price", "replacement": "17"}, {"fields": "id", "replacement": "x"}
    )
    for value in (
        {"int8": 1},
        {"int16": 1},
        {"int32": 1},
        {"float32": "1.5"},
        {"decimal": "1.50"},
        {"instant": 5},
        {"boolean": True},
    ):
        for config in ({"fields": "a"}, {"fields": "a", "replacement": "300"}, {"fields": "a", "replacement": "1.75"}):
            yield transform("MaskField$Value", config, record(value={"map": [[{"string": "a"}, value]]}))
    inputs: list[tuple[Form | None, Form | None]] = [
        (ORDER, ORDER_VALUE),
        (None, PLAIN_ORDER),
        (None, None),
        ({"type": "string"}, {"string": "x"}),
    ]
    yield transform("MaskField$Value", {"fields": ""}, record(value=PLAIN_ORDER))
    yield transform("MaskField$Value", {"fields": "a", "replacement": ""}, record(value=PLAIN_ORDER))
    for config in (
        {"fields": "id"},
        {"fields": "id,count"},
        {"fields": "count", "replace.null.with.default": "false"},
        {"fields": "nothing"},
        {"fields": ""},
    ):
        for schema, found in inputs:
            yield transform("ValueToKey", config, record(schema=schema, value=found))


def insert_and_flatten_cases() -> Iterator[Form]:
    yield from on_all(
        "InsertField",
        {"topic.field": "t", "partition.field": "p!", "offset.field": "o?", "timestamp.field": "ts"},
        {"static.field": "s!", "static.value": "v", "replace.null.with.default": "false"},
    )
    source: Form = {"offset": None, "partition": None, "timestamp": None}
    for config in (
        {"topic.field": "t", "partition.field": "p", "timestamp.field": "ts"},
        {"offset.field": "o"},
        {"topic.field": "id"},
        {"static.field": "s"},
        {},
    ):
        for schema, value in ((ORDER, ORDER_VALUE), (None, PLAIN_ORDER)):
            yield transform("InsertField$Value", config, record(schema=schema, value=value, **source))
    yield from on_all("Flatten", {}, {"delimiter": "_"}, {"delimiter": ""})
    with_default = {
        **ORDER,
        "fields": [
            [
                "inner",
                {
                    "type": "struct",
                    "optional": True,
                    "fields": [["a", {"type": "int32", "default": {"int32": 1}}], ["b", {"type": "string"}]],
                    "default": {"struct": {"a": {"int32": 5}, "b": {"string": "d"}}},
                },
            ],
            ["inner2", {"type": "struct", "optional": True, "fields": [["c", {"type": "bytes"}]]}],
        ],
    }
    for value in (
        {"struct": {"inner": {"struct": {"a": {"int32": 2}, "b": {"string": "x"}}}}},
        {"struct": {}},
        {"struct": {"inner2": {"struct": {"c": {"bytes": "01"}}}}},
    ):
        yield transform("Flatten$Value", {}, record(schema=with_default, value=value))
    mapped = {
        "type": "struct",
        "fields": [["m", {"type": "map", "key": {"type": "string"}, "element": {"type": "int8"}}]],
    }
    value = {"struct": {"m": {"map": [[{"string": "k"}, {"int8": 1}]]}}}
    yield transform("Flatten$Value", {}, record(schema=mapped, value=value))


def header_cases() -> Iterator[Form]:
    for names in ("trace", "n,trace", "other", ""):
        yield transform("DropHeaders", {"headers": names}, record(value={"string": "x"}, headers=HEADERS))
    for literal in ("text", "5", "true", "[1,2]", "2024-01-02", "", "null", "1.5", '{"a":1}'):
        yield transform(
            "InsertHeader", {"header": "h", "value.literal": literal}, record(value={"string": "x"}, headers=HEADERS)
        )
    yield transform("InsertHeader", {"header": "h"}, record())
    yield from on_all(
        "HeaderFrom",
        {"fields": "id,count", "headers": "hid,hcount", "operation": "move"},
        {"fields": "name,count", "headers": "a,b", "operation": "copy", "replace.null.with.default": "false"},
        {"fields": "nothing", "headers": "a", "operation": "copy"},
    )
    for operation, headers in (("both", "a"), ("move", "a,b")):
        yield transform("HeaderFrom$Value", {"fields": "x", "headers": headers, "operation": operation}, record())


def routing_cases() -> Iterator[Form]:
    for regex, replacement in (
        ("(.*)-(.*)", "$2-$1"),
        ("shop-(?<what>.*)", "${what}.v2"),
        ("nothing", "x"),
        ("shop.*", "fixed"),
        ("(.*?)", "<$1>"),
        ("(.*)", "$1$10"),
        ("(.*)", "\\$1"),
        ("(.*)", "$2"),
        ("(.*)", "$"),
        ("\\p{Lower}+-\\w+", "lower"),
        ("[a-z\\-]{3,}", "range"),
        ("\\Qshop-\\E(.*)", "$1"),
        ("(?i)SHOP-(.*)", "$1"),
        ("(", "x"),
        ("shop-orders\\z", "end"),
    ):
        yield transform("RegexRouter", {"regex": regex, "replacement": replacement}, record())
    for pattern in (
        "yyyyMMdd",
        "yyyy-MM-dd'T'HH",
        "EEE d MMM yy",
        "EEEE dd MMMM yyyy hh:mm:ss.SSS a",
        "D F w W u k K G",
        "YYYY-'W'ww",
        "Z X XX z",
        "''yyyy''",
        "q",
        "'open",
    ):
        for moment in (MOMENT, 0, -1, 951_782_400_000, -12_219_292_800_001, 253_402_300_800_000):
            yield transform("TimestampRouter", {"timestamp.format": pattern}, record(timestamp=moment))
    yield transform("TimestampRouter", {"topic.format": "a-${timestamp}-${topic}-b"}, record())
    yield transform("TimestampRouter", {}, record(timestamp=None))
    yield from on_all(
        "SetSchemaMetadata",
        {"schema.name": "New"},
        {"schema.version": "9"},
        {"schema.name": "N", "schema.version": "1"},
    )
    yield transform("SetSchemaMetadata$Value", {}, record())
    yield transform("SetSchemaMetadata$Value", {"schema.version": "x"}, record())
    yield transform("Filter", {}, record(value={"string": "x"}))


def timestamp_cases() -> Iterator[Form]:
    iso = "yyyy-MM-dd HH:mm:ss.SSS"
    values: list[tuple[Form | None, Form]] = [
        (None, {"int64": MOMENT}),
        (None, {"int64": -1}),
        (None, {"string": "2023-11-14 22:15:23.456"}),
        (None, {"string": "2023-13-40 25:61:00.5"}),
        (None, {"string": "yesterday"}),
        (None, {"int32": 5}),
        (None, {"instant": MOMENT}),
        ({"type": "int64", "optional": True}, {"int64": MOMENT}),
        ({"type": "string"}, {"string": "2023-11-14 22:15:23.456"}),
        ({"type": "int64", "name": f"{DATA}Timestamp", "version": 1}, {"instant": MOMENT}),
        ({"type": "int32", "name": f"{DATA}Date", "version": 1}, {"instant": DAY}),
        ({"type": "int32", "name": f"{DATA}Time", "version": 1}, {"instant": 3_723_004}),
        ({"type": "int32"}, {"int32": 5}),
    ]
    for (schema, value), target in product(values, ("string", "unix", "Date", "Time", "Timestamp")):
        config = {"target.type": target, "format": iso}
        yield transform("TimestampConverter$Value", config, record(schema=schema, value=value))
    for precision, target in product(("seconds", "microseconds", "nanoseconds"), ("unix", "Timestamp")):
        for number in (MOMENT, -1999, 1 << 61):
            config = {"target.type": target, "unix.precision": precision}
            yield transform("TimestampConverter$Value", config, record(value={"int64": number}))
    yield from on_all("TimestampConverter", {"field": "when", "target.type": "string", "format": iso})
    yield from on_all("TimestampConverter", {"field": "when", "target.type": "unix"}, sides=("Value",))
    for text, pattern in (
        ("20231114", "yyyyMMdd"),
        ("14/11/23", "dd/MM/yy"),
        ("14/11/99", "dd/MM/yy"),
        ("14 Nov 2023", "dd MMM yyyy"),
        ("November 14, 2023", "MMMM d, yyyy"),
        ("Tue, 14 Nov 2023", "EEE, dd MMM yyyy"),
        ("2023-11-14T22:15:23Z", "yyyy-MM-dd'T'HH:mm:ssX"),
        ("2023-11-14T22:15:23+02:30", "yyyy-MM-dd'T'HH:mm:ssXXX"),
        ("2023-11-14 10:15 PM", "yyyy-MM-dd hh:mm a"),
        ("2023-11-14 12:15 AM", "yyyy-MM-dd hh:mm a"),
        ("2023-11-14 22:15:23 UTC", "yyyy-MM-dd HH:mm:ss z"),
        ("2023-11-14 22:15:23 -0700", "yyyy-MM-dd HH:mm:ss Z"),
        ("2023-318", "yyyy-DDD"),
        ("2023-11-14 and more", "yyyy-MM-dd"),
        ("0044-03-15 BC", "yyyy-MM-dd G"),
        ("1500-02-29", "yyyy-MM-dd"),
        ("-5-11-14", "yyyy-MM-dd"),
        ("2023-11", "yyyy-MM-dd"),
    ):
        config = {"target.type": "unix", "format": pattern}
        yield transform("TimestampConverter$Value", config, record(value={"string": text}))
    for config in ({"target.type": "string"}, {"target.type": "month"}, {"target.type": "unix", "format": "bbb"}, {}):
        yield transform("TimestampConverter$Value", config, record(value={"int64": 1}))


def predicate_cases() -> Iterator[Form]:
    for name, config, of in (
        ("HasHeaderKey", {"name": "trace"}, record(headers=HEADERS)),
        ("HasHeaderKey", {"name": "nothing"}, record(headers=HEADERS)),
        ("HasHeaderKey", {"name": ""}, record(headers=HEADERS)),
        ("HasHeaderKey", {}, record(headers=HEADERS)),
        ("RecordIsTombstone", {}, record(headers=HEADERS)),
        ("RecordIsTombstone", {}, record(value={"string": ""})),
        ("TopicNameMatches", {"pattern": "shop-.*"}, record(headers=HEADERS)),
        ("TopicNameMatches", {"pattern": "shop"}, record(headers=HEADERS)),
        ("TopicNameMatches", {"pattern": ""}, record(headers=HEADERS)),
        ("TopicNameMatches", {"pattern": "["}, record(headers=HEADERS)),
    ):
        yield {"op": "predicate", "class": f"{TRANSFORMS}predicates.{name}", "config": config, "record": of}


def to_bytes(
    name: str, schema: Form | None, value: Form | None, config: Form | None = None, *, header: bool = False
) -> Form:
    return {"op": "to_bytes", "class": name, "config": config or {}, "schema": schema, "value": value, "header": header}


def from_bytes(name: str, given: bytes | None, config: Form | None = None, *, header: bool = False) -> Form:
    stored = None if given is None else given.hex()
    return {"op": "from_bytes", "class": name, "config": config or {}, "bytes": stored, "header": header}


SCALARS: list[tuple[Form | None, Form | None]] = [
    (None, None),
    ({"type": "string", "optional": True}, None),
    ({"type": "string"}, None),
    ({"type": "int32", "default": {"int32": 5}}, None),
    ({"type": "int8"}, {"int8": -128}),
    ({"type": "int16"}, {"int16": 300}),
    ({"type": "int32"}, {"int32": -70_000}),
    ({"type": "int64", "optional": True, "name": "id", "version": 2, "doc": "An id."}, {"int64": 1 << 62}),
    ({"type": "float32"}, {"float32": "1.1"}),
    ({"type": "float32"}, {"float32": "3.4028235E38"}),
    ({"type": "float64"}, {"float64": "1.0E10"}),
    ({"type": "float64"}, {"float64": "1.0E-5"}),
    ({"type": "float64"}, {"float64": "NaN"}),
    ({"type": "float64"}, {"float64": "-Infinity"}),
    ({"type": "boolean"}, {"boolean": False}),
    ({"type": "string"}, {"string": 'a "quoted" \\ text\n\u0001\u001f é 日 😀'}),
    ({"type": "bytes"}, {"bytes": "00ff7f"}),
    ({"type": "bytes", "name": f"{DATA}Decimal", "version": 1, "parameters": {"scale": "2"}}, {"decimal": "-123.45"}),
    ({"type": "bytes", "name": f"{DATA}Decimal", "version": 1, "parameters": {"scale": "2"}}, {"decimal": "1.5"}),
    ({"type": "bytes", "name": f"{DATA}Decimal", "version": 1, "parameters": {"scale": "0"}}, {"decimal": "128"}),
    ({"type": "bytes", "name": f"{DATA}Decimal", "version": 1, "parameters": {"scale": "-3"}}, {"decimal": "1.2E+4"}),
    ({"type": "int32", "name": f"{DATA}Date", "version": 1}, {"instant": DAY}),
    ({"type": "int32", "name": f"{DATA}Date", "version": 1}, {"instant": DAY + 1}),
    ({"type": "int32", "name": f"{DATA}Time", "version": 1}, {"instant": 3_723_004}),
    ({"type": "int32", "name": f"{DATA}Time", "version": 1}, {"instant": -1}),
    ({"type": "int64", "name": f"{DATA}Timestamp", "version": 1}, {"instant": MOMENT}),
    ({"type": "string"}, {"int32": 5}),
    ({"type": "int32"}, {"string": "5"}),
    (None, {"int8": 5}),
    (None, {"float64": "2.0"}),
    (None, {"float32": "0.1"}),
    (None, {"string": "text"}),
    (None, {"boolean": True}),
    (None, {"bytes": "01"}),
    (None, {"array": [{"int64": 1}, None, {"string": "x"}]}),
    (None, {"map": [[{"string": "a"}, {"int64": 1}]]}),
    (None, {"map": [[{"int64": 1}, {"string": "a"}]]}),
    (None, {"map": []}),
    (None, {"array": []}),
    ({"type": "array", "element": {"type": "int32", "optional": True}}, {"array": [{"int32": 1}, None]}),
    (
        {"type": "map", "key": {"type": "string"}, "element": {"type": "float64"}},
        {"map": [[{"string": "k"}, {"float64": "0.5"}]]},
    ),
    (
        {"type": "map", "key": {"type": "int32"}, "element": {"type": "string"}},
        {"map": [[{"int32": 1}, {"string": "v"}]]},
    ),
    (ORDER, ORDER_VALUE),
]


def json_cases() -> Iterator[Form]:
    for schema, value in SCALARS:
        yield to_bytes(JSON, schema, value)
        yield to_bytes(JSON, schema, value, {"schemas.enable": "false"})
    decimal, amount = SCALARS[17]
    yield to_bytes(JSON, decimal, amount, {"decimal.format": "numeric"})
    yield to_bytes(JSON, SCALARS[20][0], SCALARS[20][1], {"decimal.format": "NUMERIC", "schemas.enable": "false"})
    yield to_bytes(JSON, SCALARS[3][0], None, {"replace.null.with.default": "false"})
    yield to_bytes(JSON, None, None, {"decimal.format": "hex"})
    for text in (
        '{"a": 1, "b": [1.5, true, null, "x"], "c": {"d": -7}}',
        "null", "5", "5.0", "1e3", "9223372036854775807", '"text"', "true", "[]", "{}", " 1", "1 2", "007", "[007]",
        "", " ", "{", "nul", "NaN", "[1,]", "{\"a\":1,}", "'a'", '"\t"', '{"a":1,"a":2}', "1e400", "-0",
        "-0.0", '"\\u00e9"',
        "[" * 50 + "]" * 50, "\ufeff1",
    ):  # fmt: skip
        yield from_bytes(JSON, text.encode(), {"schemas.enable": "false"})
    yield from_bytes(JSON, b"\xff\xfe", {"schemas.enable": "false"})
    yield from_bytes(JSON, None)
    yield from json_envelopes()


def json_envelopes() -> Iterator[Form]:
    date, time, timestamp = (f"{DATA}{word}" for word in ("Date", "Time", "Timestamp"))
    decimal = f'"type":"bytes","name":"{DATA}Decimal","version":1,"parameters":{{"scale":"2"}}'
    for schema, payload in (
        ('{"type":"int8"}', "5"), ('{"type":"int16"}', "300"), ('{"type":"int32","optional":true}', "null"),
        ('{"type":"int64","optional":false,"name":"n","version":3,"doc":"d","parameters":{"a":"b"}}', "7"),
        ('{"type":"float"}', "1.1"), ('{"type":"double"}', "1"), ('{"type":"float32"}', "1.1"),
        ('{"type":"boolean"}', "true"), ('{"type":"string"}', '"x"'), ('{"type":"bytes"}', '"AP9/"'),
        ('{"type":"bytes"}', '"***"'), ('{"type":"bytes"}', '"AA"'), ('{"type":"int32"}', "null"),
        ('{"type":"int32","default":9}', "null"), ('{"type":"int32","default":"x"}', "1"),
        ('{"type":"array","items":{"type":"int32"}}', "[1,2]"), ('{"type":"array"}', "[1]"),
        ('{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}', '{"a":1}'),
        ('{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}}', '[[1,"a"]]'),
        ('{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}}', '[[1]]'),
        ('{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}}', '{"1":"a"}'),
        ('{"type":"map","keys":{"type":"string"},"values":{"type":"string"}}', '[["1","a"]]'),
        ('{"type":"map","values":{"type":"string"}}', "{}"),
        (
            '{"type":"struct","fields":[{"field":"a","type":"int32"},{"field":"b","type":"string","optional":true}]}',
            '{"a":1}',
        ),
        ('{"type":"struct","fields":[{"field":"a","type":"int32"}]}', '{"a":1,"z":2}'),
        ('{"type":"struct","fields":[{"field":"a","type":"int32"}]}', "{}"),
        ('{"type":"struct","fields":[{"field":"a","type":"int32","default":3}]}', "{}"),
        ('{"type":"struct","fields":[{"field":"a","type":"int32"}]}', "[1]"),
        ('{"type":"struct","fields":[{"type":"int32"}]}', "{}"), ('{"type":"struct"}', "{}"),
        ('{"type":"struct","fields":[{"field":"a","type":"int32"},{"field":"a","type":"int32"}]}', '{"a":1}'),
        ('{"type":"other"}', "1"), ("{}", "1"), ("null", '{"a":[1,2.5]}'), ('"int32"', "1"),
        (f'{{"type":"int32","name":"{date}","version":1}}', "19675"),
        (f'{{"type":"int32","name":"{date}","version":1}}', "1.5"),
        (f'{{"type":"int32","name":"{time}","version":1}}', "3723004"),
        (f'{{"type":"int32","name":"{time}","version":1}}', "86400001"),
        (f'{{"type":"int64","name":"{timestamp}","version":1}}', "1700000123456"),
        (f'{{"type":"int64","name":"{timestamp}","version":1}}', '"now"'),
        (f"{{{decimal}}}", '"MDk="'), (f"{{{decimal}}}", "12.345"), (f"{{{decimal}}}", "7"), (f"{{{decimal}}}", "true"),
        ('{"type":"int32"}', '"5"'), ('{"type":"int8"}', "300"), ('{"type":"int32"}', "1.9"),
        ('{"type":"string"}', "5"), ('{"type":"boolean"}', "1"), ('{"type":"boolean"}', '"true"'),
        ('{"type":"int32"}', "3000000000"), ('{"type":"double"}', '"1.5"'), ('{"type":"bytes"}', "5"),
        ('{"type":"int32","version":"1","name":5,"optional":"true"}', "5"),
        ('{"type":"int32","parameters":{"a":1}}', "5"),
        ('{"type":"array","items":{"type":"int32"}}', "5"),
    ):  # fmt: skip
        yield from_bytes(JSON, f'{{"schema":{schema},"payload":{payload}}}'.encode())
    for text in ('{"schema":null}', '{"schema":null,"payload":1,"x":2}', "5", "null", "[]", ""):
        yield from_bytes(JSON, text.encode())
    content = {"schema.content": '{"type":"struct","fields":[{"field":"a","type":"int32"}]}'}
    for text in ('{"a":5}', '{"a":"x"}', '{"schema":null,"payload":null}', "null", ""):
        yield from_bytes(JSON, text.encode(), content)
    yield from_bytes(JSON, b'{"a":5}', {"schema.content": "{"})
    yield to_bytes(JSON, {"type": "int32"}, {"int32": 5}, content)


def plain_cases() -> Iterator[Form]:
    numbers = {"Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8, "Boolean": 1}
    for name, size in numbers.items():
        converter = f"{CONVERTERS}{name}Converter"
        for given in (None, b"", bytes(size), b"\x01" * size, b"\xff" * size, bytes(size + 1)):
            yield from_bytes(converter, given)
    samples: list[tuple[Form | None, Form | None]] = [
        (None, None),
        ({"type": "int16"}, {"int16": -2}),
        ({"type": "int32"}, {"int32": 5}),
        ({"type": "int64"}, {"int64": 5}),
        ({"type": "float32"}, {"float32": "1.5"}),
        ({"type": "float64"}, {"float64": "1.5"}),
        ({"type": "boolean"}, {"boolean": True}),
        (None, {"int64": 5}),
        (None, {"string": "5"}),
    ]
    for name, (schema, value) in product(numbers, samples):
        yield to_bytes(f"{CONVERTERS}{name}Converter", schema, value)
    for schema, value in SCALARS:
        if value is None or "bytes" not in value:  # Java prints where in memory they are
            yield to_bytes(STRING, schema, value)
            yield to_bytes(SIMPLE, schema, value, header=True)
    yield to_bytes(STRING, None, {"string": "é"}, {"converter.encoding": "ISO-8859-1"})
    yield to_bytes(SIMPLE, {"type": "bytes"}, {"bytes": "00ff7f"}, header=True)
    yield to_bytes(SIMPLE, None, {"array": [{"bytes": "00"}, {"string": 'a"b\\'}]}, header=True)
    for given in (None, b"", b"text", b"\xc3\xa9", b"\xff"):
        yield from_bytes(STRING, given)
        yield from_bytes(f"{CONVERTERS}ByteArrayConverter", given)
    yield from_bytes(STRING, b"\xe9", {"converter.encoding": "ISO-8859-1"})
    yield from_bytes(STRING, b"\xe9", {"converter.encoding": "nothing"})
    for schema, value in (
        SCALARS[0],
        SCALARS[16],
        SCALARS[15],
        (None, {"bytes": "01"}),
        (None, {"int64": 1}),
        ({"type": "bytes"}, {"string": "x"}),
    ):
        yield to_bytes(f"{CONVERTERS}ByteArrayConverter", schema, value)


def header_text_cases() -> Iterator[Form]:
    for text in (
        "", " ", "text", "null", " null ", "nullx", "true", "false", "True", "true ", "0", "127", "128", "-129",
        "32768",
        "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "+5", "5.0", "1.5", "-0.1",
        "1e3", "1e40", "1e400", "1.23456789012", ".5", "5.", "--5", "1_000", "0x10", "NaN", "2023-11-14",
        "22:15:23.456Z", "2023-11-14T22:15:23.456Z", "2023-11-14T22:15:23Z", "2023-13-45", "[]", "[1,2,3]", "[1, 2.5]",
        "[1,true]", '["a","b"]', "[a]", '["a",1]', "[1,,2]", "[1", "[1,]", "[null]", "[1,null,3]", "[[1],[2,3]]", "{}",
        '{"a":1}', '{"a":1,"b":300}', '{"a":1,"b":"x"}', '{"a":null}', '{1:2}', "{a:1}", '{"a"}', '{"a":1', '{"a":1,}',
        '{"a":[1,2]}', '"quoted"', '["2023-11-14"]', '["22:15:23.456Z"]', 'a "b" c', "a,b", "a:b", "a\\,b", '["a\\"b"]',
        "[true,false]", "[ 1 , 2 ]", "{ \"a\" : 1 }", "[{\"a\":1}]", "\\", "[", "]", "{", "}", ",", ":", "5 apples",
        "2023-11-14 is a date", "[128,1]", "[1.5,1]", "[1,70000,5000000000]", "\u00e9", "+", "-", "1:2",
        "12:30:00.000Z,x",
    ):  # fmt: skip
        yield from_bytes(SIMPLE, text.encode(), header=True)
    yield from_bytes(SIMPLE, None, header=True)
    yield from_bytes(SIMPLE, b"\xff", header=True)


def config_cases() -> Iterator[Form]:
    sided = (
        "Cast",
        "ExtractField",
        "Flatten",
        "HeaderFrom",
        "HoistField",
        "InsertField",
        "MaskField",
        "ReplaceField",
        "SetSchemaMetadata",
        "TimestampConverter",
    )
    plain = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
    predicates = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
    names = [f"{TRANSFORMS}{name}$Value" for name in sided]
    names += [f"{TRANSFORMS}{name}" for name in plain] + [f"{TRANSFORMS}predicates.{name}" for name in predicates]
    names += [JSON, STRING, SIMPLE]
    names += [
        f"{CONVERTERS}{name}Converter"
        for name in ("ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double")
    ]
    for name in names:
        yield {"op": "config", "class": name, "config": {}}


def all_cases() -> list[Form]:
    makers = (
        cast_cases, field_cases, insert_and_flatten_cases, header_cases, routing_cases, timestamp_cases,
        predicate_cases,
        json_cases, plain_cases, header_text_cases, config_cases,
    )  # fmt: skip
    return [case for maker in makers for case in maker()]
