"""JSON Schema through the calls of the registry: references, forms, policies, verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from tests.unit.registry.rest.in_memory import Client

STRING = {"type": "string"}


def given(schema: Any, *references: tuple[str, str, int]) -> dict[str, object]:
    listed = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
    return {"schemaType": "JSON", "schema": json.dumps(schema), "references": listed}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_schema_with_a_reference_is_registered_and_resolved(client: Client) -> None:
    assert client("POST", "/subjects/customer/versions", given(opened(name=STRING))).json["id"] == 1
    order = given(opened(customer={"$ref": "customer.json"}), ("customer.json", "customer", 1))
    assert client("POST", "/subjects/orders-value/versions", order).json["id"] == 2
    version = client("GET", "/subjects/orders-value/versions/latest").json
    assert version["schemaType"] == "JSON"
    assert version["schema"] == '{"type":"object","properties":{"customer":{"$ref":"customer.json"}}}'
    resolved = json.loads(client("GET", "/schemas/ids/2?format=resolved").json["schema"])
    assert [each["properties"] for each in resolved["definitions"].values()] == [{"name": STRING}]
    assert client("POST", "/subjects/orders-value", order).json["version"] == 1


def test_members_in_another_order_are_one_schema_when_normalized(client: Client) -> None:
    one, two = given({"type": "string", "maxLength": 3}), given({"maxLength": 3, "type": "string"})
    first = client("POST", "/subjects/m/versions", one).json["id"]
    assert client("POST", "/subjects/m?normalize=true", two).json["id"] == first
    assert client("POST", "/subjects/m", two).status == 404


def test_the_policy_of_the_subject_decides_on_undeclared_properties(client: Client) -> None:
    client("POST", "/subjects/m/versions", given(opened(a=STRING)))
    more = given(opened(a=STRING, b=STRING))
    refused = client("POST", "/subjects/m/versions", more)
    assert (refused.status, "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL" in refused.json["message"]) == (409, True)
    assert "compatibilityPolicy to LENIENT" in refused.json["message"]
    changed = client("PUT", "/config/m", {"compatibility": "FULL", "compatibilityPolicy": "LENIENT"})
    assert changed.json["compatibilityPolicy"] == "LENIENT"
    assert client("POST", "/subjects/m/versions", more).json["version"] == 2


def test_the_types_are_all_three(client: Client) -> None:
    assert sorted(client("GET", "/schemas/types").json) == ["AVRO", "JSON", "PROTOBUF"]


def test_what_is_no_schema_is_refused_with_its_place(client: Client) -> None:
    refused = client("POST", "/subjects/m/versions", given({"properties": {"a": {"type": "strin"}}}))
    assert (refused.status, refused.json["error_code"]) == (422, 42201)
    assert "at /properties/a/type" in refused.json["message"]
