"""Our declarations say what Kafka's own schema files say, also where bytes do not show it: defaults, ignorable, null.

The files are those that kafka-python ships, at the level of Kafka 4.3, for the messages of clients.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from millbeck.wire.schema import Array, Field, Primitive, Versions, parse_versions, schema_of

_KAFKA_PYTHON = find_spec("kafka")
assert _KAFKA_PYTHON is not None
assert _KAFKA_PYTHON.origin is not None
RESOURCES = Path(_KAFKA_PYTHON.origin).parent / "protocol" / "schemas" / "resources"
DATA = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
MESSAGES = [
    cls
    for cls in [cls for api in APIS.values() for cls in (api.request, api.response)] + list(DATA)
    if (RESOURCES / f"{cls.__name__}.json").is_file()
]


def _load(name: str) -> dict[str, Any]:
    text = (RESOURCES / f"{name}.json").read_text()
    loaded: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return loaded


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _default(theirs: dict[str, Any], ours: Field) -> Any:
    """What Kafka's generator makes of the default, written or not."""
    text = theirs.get("default")
    if text is None or isinstance(ours.type, Array) or not isinstance(ours.type, Primitive):
        return None if text == "null" else ours.make_default()
    if text == "null":
        return None
    if ours.type.name == "boolean":
        return str(text).lower() == "true"
    if ours.type.name == "string":
        return text
    if ours.type.name == "float64":
        return float(text)
    return int(str(text), 0) if text != "" else ours.type.default


def _type_name(field: Field) -> str:
    element = field.type.element if isinstance(field.type, Array) else field.type
    name = element.name if isinstance(element, Primitive) else "struct"
    return ("[]" if isinstance(field.type, Array) else "") + name


def _compare(cls: type[Any], theirs: list[dict[str, Any]], common: dict[str, Any], versions: Versions) -> None:
    ours = {field.name: field for field in schema_of(cls).fields}
    expected = [
        field
        for field in theirs
        if any(version in parse_versions(field["versions"]) for version in range(versions.low, versions.high + 1))
    ]
    assert list(ours) == [_snake(field["name"]) for field in expected], cls.__name__
    for field in expected:
        _compare_field(cls.__name__, ours[_snake(field["name"])], field, common, versions)


def _compare_field(owner: str, ours: Field, theirs: dict[str, Any], common: dict[str, Any], versions: Versions) -> None:
    where = f"{owner}.{ours.name}"
    element = theirs["type"].removeprefix("[]")
    is_struct = element[0].isupper()
    expected_type = "struct" if is_struct else {"bool": "boolean"}.get(element, element)
    assert _type_name(ours) == ("[]" if theirs["type"].startswith("[]") else "") + expected_type, where
    present = parse_versions(theirs["versions"])
    nullable = parse_versions(theirs.get("nullableVersions", "none"))
    tagged = parse_versions(theirs.get("taggedVersions", "none"))
    for version in range(versions.low, versions.high + 1):
        assert (version in ours.versions) == (version in present), f"{where} v{version}"
        if version in present:
            assert (version in ours.nullable) == (version in nullable), f"{where} v{version}"
            assert (version in ours.tagged) == (version in tagged), f"{where} v{version}"
        else:
            assert ours.ignorable == bool(theirs.get("ignorable")), f"{where} v{version}"
    assert ours.tag == theirs.get("tag"), where
    assert ours.make_default() == _default(theirs, ours), where
    assert ours.flexible is None, where
    if is_struct:
        inside = Versions(max(versions.low, present.low), min(versions.high, present.high))
        struct = ours.type.element if isinstance(ours.type, Array) else ours.type
        assert isinstance(struct, type)
        _compare(struct, theirs.get("fields") or common[element], common, inside)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_declarations_say_what_kafkas_files_say(cls: type[Any]) -> None:
    theirs = _load(cls.__name__)
    schema = schema_of(cls)
    versions = parse_versions(theirs["validVersions"])
    assert schema.versions == versions
    assert schema.flexible == parse_versions(theirs["flexibleVersions"])
    assert schema.api_key == theirs.get("apiKey")
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", ())}
    _compare(cls, theirs["fields"], common, schema.versions)


def test_most_messages_have_a_file_to_compare_with() -> None:
    assert len(MESSAGES) > 100
