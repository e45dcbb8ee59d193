"""Converters, transforms and predicates answer as Kafka's own classes did (`tests/interop/connect` recorded them)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from millbeck.pipeline.connect.config.definitions import REQUIRED
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue
from millbeck.pipeline.connect.model.numbers import Float32, float_text
from millbeck.pipeline.connect.plugins import Plugin, PluginKind, known_plugins
from tests.unit.pipeline.connect.plain_form import (
    in_order,
    record_form,
    record_from,
    schema_form,
    schema_from,
    value_form,
    value_from,
)

Form = dict[str, Any]

RECORDED = Path(__file__).with_name("kafka_answers.txt")

STRICT = {
    *('{"schema":{"type":"int32"},"payload":"5"}', '{"schema":{"type":"int32"},"payload":1.9}'),
    *('{"schema":{"type":"int8"},"payload":300}', '{"schema":{"type":"int32"},"payload":3000000000}'),
    *('{"schema":{"type":"string"},"payload":5}', '{"schema":{"type":"boolean"},"payload":1}'),
    *('{"schema":{"type":"boolean"},"payload":"true"}', '{"schema":{"type":"double"},"payload":"1.5"}'),
    *('{"schema":{"type":"bytes"},"payload":5}', '{"schema":{"type":"int32","default":"x"},"payload":1}'),
    *('{"schema":{"type":"array","items":{"type":"int32"}},"payload":5}', '{"a":"x"}'),
}
"""JSON that Kafka reads as 0, null, false or other numbers, and that is an error here."""

OTHER_WORDS = (
    "java.lang.IllegalArgumentException",  # the exception stands where the setting's value should be
    "No value specified for static field",  # shows an address
    "Timestamp missing on record",  # shows the whole record
    "Invalid regex",  # the words of Java's compiler
    "for configuration renames: Invalid rename mapping: a:b:c",  # Cast's spec under the name of another setting
    "Structs should be encoded as JSON objects, but found MISSING",  # of nothing at all
    "Failed to parse schema in converter config",  # as of a record, though the setting is wrong
)
"""Parts of Kafka's messages that ours does not repeat, and why."""


@cache
def plugins() -> dict[str, Plugin]:
    return {name: plugin for kind in PluginKind for name, plugin in known_plugins(kind).items()}


def _transform(question: Form, made: Any) -> Form:
    found = made.apply(record_from(question["record"]))
    return {"dropped": True} if found is None else {"record": record_form(found)}


def _predicate(question: Form, made: Any) -> Form:
    return {"is_true": made.test(record_from(question["record"]))}


def _to_bytes(question: Form, made: Any) -> Form:
    schema = schema_from(question["schema"])
    stored = made.to_bytes("t", schema, value_from(schema, question["value"]))
    return {"bytes": None if stored is None else stored.hex()}


def _from_bytes(question: Form, made: Any) -> Form:
    found = made.from_bytes("t", None if question["bytes"] is None else bytes.fromhex(question["bytes"]))
    return {"schema": schema_form(found.schema), "value": value_form(found.schema, found.value)}


def _config(question: Form) -> Form:
    keys = [
        {
            "name": key.name,
            "type": key.kind.name.upper(),
            "required": key.default is REQUIRED,
            "default": key.default_text,
            "importance": key.importance.value,
            "group": key.group,
            "order": key.order,
            "width": key.width.value,
            "display_name": key.display_name or key.name,
        }
        for key in plugins()[question["class"]].config_def
    ]
    return {"keys": keys}


ANSWERS: dict[str, Callable[[Form, Any], Form]] = {
    "transform": _transform,
    "predicate": _predicate,
    "to_bytes": _to_bytes,
    "from_bytes": _from_bytes,
}


def answer(question: Form) -> Form:
    """Ours to a question, in the form of Kafka's."""
    if question["op"] == "config":
        return _config(question)
    plugin = plugins()[question["class"]]
    try:
        is_converter = question["op"].endswith("bytes")
        made = plugin.make(question["config"] if is_converter else plugin.config_def.parse(question["config"]))
        return ANSWERS[question["op"]](question, made)
    except ConnectError as error:
        return {"error": type(error), "message": str(error)}


def comparable(found: Any) -> Any:
    """Kafka's maps have no order, and neither have settings."""
    if isinstance(found, dict):
        if found.keys() == {"map"}:
            return {"map": in_order([comparable(each) for each in found["map"]])}
        if "keys" in found:
            return {"keys": sorted(found["keys"], key=lambda key: str(key["name"]))}
        if found.keys() == {"float32"}:  # before Java 19, some had more digits than they need
            return {"float32": float_text(Float32(float(found["float32"])))}
        return {name: comparable(each) for name, each in found.items()}
    return [comparable(each) for each in found] if isinstance(found, list) else found


def _payload(question: Form) -> str:
    return bytes.fromhex(question.get("bytes") or "").decode(errors="replace")


def _names_a_scalar(question: Form) -> bool:
    found = question.get("record", {})
    is_scalar = found.get("value_schema") == {"type": "string"}
    return "SetSchemaMetadata" in question["class"] and is_scalar


def _is_deliberate(question: Form) -> bool:
    return _payload(question) in STRICT or _names_a_scalar(question)


def recorded() -> list[tuple[Form, Form]]:
    pairs = (line.split("\t") for line in RECORDED.read_text(encoding="utf-8").splitlines())
    return [(json.loads(question), json.loads(answered)) for question, answered in pairs]


def _error_difference(ours: Form, theirs: Form) -> str | None:
    """Kafka's own errors are matched by class, and by message as far as Kafka's goes."""
    expected = {"DataException": InvalidValue, "ConfigException": ConfigError}.get(theirs["error"])
    message = theirs["message"].strip()
    if any(words in message for words in OTHER_WORDS):
        return None
    if expected is None:
        return None  # a defect of Java's runtime, such as a null pointer; ours says what is wrong
    return None if ours["error"] is expected and ours["message"].startswith(message) else "another error"


def difference(question: Form, theirs: Form) -> str | None:
    """None when the answers agree."""
    ours = answer(question)
    if "error" in theirs and "error" in ours:
        found = _error_difference(ours, theirs)
    elif comparable(ours) == comparable(theirs):
        found = None
    else:
        found = "another answer"
    return found and f"{found}: {json.dumps(question, ensure_ascii=False)}\n  ours   {ours}\n  theirs {theirs}"


QUESTIONS = recorded()


def test_there_are_enough_answers_and_of_all_classes() -> None:
    assert len(QUESTIONS) >= 400
    assert {question["class"] for question, _ in QUESTIONS} >= {
        name for name in plugins() if name.startswith("org.apache.kafka.")
    }


@pytest.mark.parametrize("name", sorted({question["class"] for question, _ in QUESTIONS}))
def test_the_answers_are_kafkas(name: str) -> None:
    different = [
        found
        for question, theirs in QUESTIONS
        if question["class"] == name and not _is_deliberate(question) and (found := difference(question, theirs))
    ]
    assert not different, "\n".join(different)


def test_what_kafka_reads_as_something_else_is_an_error() -> None:
    strict = [(question, theirs) for question, theirs in QUESTIONS if _payload(question) in STRICT]
    assert len(strict) == len(STRICT)
    for question, theirs in strict:
        assert "error" not in theirs
        ours = answer(question)
        assert ours.get("error") is InvalidValue, f"{question} {ours}"


def test_the_name_of_a_schema_that_is_no_struct_can_be_set() -> None:
    lenient = [(question, theirs) for question, theirs in QUESTIONS if _names_a_scalar(question)]
    assert len(lenient) == 3
    for question, theirs in lenient:
        assert theirs == {"error": "DataException", "message": "Cannot list fields on non-struct type"}
        assert answer(question)["record"]["value"] == {"string": "text"}
