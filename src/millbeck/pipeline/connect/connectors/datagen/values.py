"""Values of chance for an Avro schema, and the schemas of the well-known forms."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random
from typing import Any, Final

from millbeck.pipeline.connect.converters.avro_mapping import value_of_avro
from millbeck.pipeline.connect.model.schema import Schema

_PIECE: Final = re.compile(r"\[([^\]]+)\](?:\{(\d{1,3})(?:,(\d{1,3}))?\})?|([^\[\]{}()|*+?\\])")
_LETTERS: Final = string.ascii_lowercase
_LENGTH: Final = 8
_START_MS: Final = 1_500_000_000_000
Make = Callable[[Random, int], Any]


def value_maker(avro: Any, schema: Schema) -> Make:
    """Makes the value of a record by its number. Raises ValueError for properties that are not understood."""
    make = _maker(avro)
    return lambda chance, number: value_of_avro(schema, make(chance, number))


def _maker(avro: Any) -> Make:
    if isinstance(avro, list):
        others = [each for each in avro if each != "null"]
        makers = [_maker(each) for each in others]
        if len(makers) != 1:
            raise ValueError("a union of several types cannot be generated")
        make, odds = makers[0], 0.1 if len(avro) > 1 else 0.0
        return lambda chance, number: None if chance.random() < odds else make(chance, number)
    if isinstance(avro, str):
        return _of_type(avro, {}, {})
    given = avro.get("arg.properties") or {}
    kind = avro["type"]
    if isinstance(kind, list):
        return _maker(kind)
    if isinstance(kind, dict):
        return _maker({**kind, "arg.properties": {**(kind.get("arg.properties") or {}), **given}})
    return _of_type(kind, avro, given)


def _of_type(kind: str, avro: dict[str, Any], given: dict[str, Any]) -> Make:
    if "options" in given:
        options = list(given["options"])
        return lambda chance, number: chance.choice(options)
    if "iteration" in given:
        start, step = int(given["iteration"].get("start", 0)), int(given["iteration"].get("step", 1))
        as_text = kind == "string"
        return lambda chance, number: str(start + step * number) if as_text else start + step * number
    match kind:
        case "record":
            fields = [
                (each["name"], _maker({"type": each["type"], "arg.properties": each.get("arg.properties") or {}}))
                for each in avro["fields"]
            ]
            return lambda chance, number: {name: make(chance, number) for name, make in fields}
        case "array":
            element = _maker(avro["items"])
            return lambda chance, number: [element(chance, number) for _ in range(chance.randint(0, 5))]
        case "map":
            values = _maker(avro["values"])
            return lambda chance, number: {_word(chance): values(chance, number) for _ in range(chance.randint(0, 5))}
        case "enum":
            symbols = list(avro["symbols"])
            return lambda chance, number: chance.choice(symbols)
        case "int" | "long":
            low, high = _range(given, 0, 2**31 - 1 if kind == "int" else 2**53)
            return lambda chance, number: chance.randint(int(low), int(high))
        case "float" | "double":
            low, high = _range(given, 0.0, 1.0)
            return lambda chance, number: chance.uniform(low, high)
        case "boolean":
            return lambda chance, number: chance.random() < float(given.get("odds", 0.5))
        case "string":
            return _text(given)
        case "bytes" | "fixed":
            size = int(avro.get("size", _LENGTH))
            return lambda chance, number: chance.randbytes(size)
        case "null":
            return lambda chance, number: None
    raise ValueError(f"the type {kind[:60]} cannot be generated")


def _range(given: dict[str, Any], low: float, high: float) -> tuple[float, float]:
    found = given.get("range") or {}
    return found.get("min", low), found.get("max", high)


def _text(given: dict[str, Any]) -> Make:
    pattern = given.get("regex")
    if isinstance(pattern, dict):
        pattern = pattern.get("pattern")
    if pattern is None:
        length = given.get("length", _LENGTH)
        low, high = (length.get("min", 1), length.get("max", 20)) if isinstance(length, dict) else (length, length)
        return lambda chance, number: "".join(chance.choices(_LETTERS, k=chance.randint(int(low), int(high))))
    pieces = _pieces(pattern)
    return lambda chance, number: "".join(
        "".join(chance.choices(letters, k=chance.randint(low, high))) for letters, low, high in pieces
    )


def _pieces(pattern: str) -> list[tuple[str, int, int]]:
    """``User_[1-9]{0,1}`` as characters and how often they come. Raises ValueError for other regular expressions."""
    found: list[tuple[str, int, int]] = []
    place = 0
    while place < len(pattern):
        match = _PIECE.match(pattern, place)
        if match is None:
            raise ValueError(f"regex {pattern[:100]}: only plain texts and classes such as [a-z]{{1,5}} are generated")
        if match[4] is not None:
            found.append((match[4], 1, 1))
        else:
            low = int(match[2] or 1)
            found.append((_class(match[1]), low, int(match[3] or low)))
        place = match.end()
    return found


def _class(text: str) -> str:
    ranges = re.sub(r"(.)-(.)", lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), text)
    if not ranges:
        raise ValueError("an empty class of characters")
    return ranges


def _word(chance: Random) -> str:
    return "".join(chance.choices(_LETTERS, k=5))


def _field(name: str, kind: Any, **properties: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind, "arg.properties": properties} if properties else kind}


QUICKSTART_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "orders": {
        "type": "record",
        "name": "orders",
        "namespace": "ksql",
        "key": "orderid",
        "fields": [
            _field("ordertime", "long", range={"min": 1_487_715_775_521, "max": 1_519_273_364_600}),
            _field("orderid", "int", iteration={"start": 0, "step": 1}),
            _field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            _field("orderunits", "double", range={"min": 0.1, "max": 10.0}),
            {
                "name": "address",
                "type": {
                    "type": "record",
                    "name": "address",
                    "fields": [
                        _field("city", "string", regex="City_[1-9][0-9]{0,1}"),
                        _field("state", "string", regex="State_[1-9][0-9]{0,1}"),
                        _field("zipcode", "long", range={"min": 10_000, "max": 99_999}),
                    ],
                },
            },
        ],
    },
    "users": {
        "type": "record",
        "name": "users",
        "namespace": "ksql",
        "key": "userid",
        "fields": [
            _field("registertime", "long", range={"min": 1_487_715_775_521, "max": 1_519_273_364_600}),
            _field("userid", "string", regex="User_[1-9]"),
            _field("regionid", "string", regex="Region_[1-9]"),
            _field("gender", "string", options=["MALE", "FEMALE", "OTHER"]),
        ],
    },
    "pageviews": {
        "type": "record",
        "name": "pageviews",
        "namespace": "ksql",
        "key": "viewtime",
        "fields": [
            _field("viewtime", "long", iteration={"start": 1, "step": 10}),
            _field("userid", "string", regex="User_[1-9]"),
            _field("pageid", "string", regex="Page_[1-9][0-9]{0,1}"),
        ],
    },
    "clickstream": {
        "type": "record",
        "name": "clickstream",
        "namespace": "clickstream",
        "key": "ip",
        "fields": [
            _field("ip", "string", options=["111.152.45.45", "111.203.236.146", "122.145.8.244", "222.245.174.248"]),
            _field("userid", "int", range={"min": 1, "max": 40}),
            _field("time", "long", iteration={"start": _START_MS, "step": 10}),
            _field("request", "string", options=["GET /index.html HTTP/1.1", "GET /images/logo.png HTTP/1.1"]),
            _field("status", "string", options=["200", "302", "404", "405", "406", "407"]),
            _field("bytes", "string", options=["278", "1289", "2048", "4096", "4006", "4196", "14096"]),
        ],
    },
}
