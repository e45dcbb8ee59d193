"""The calls of Confluent's public API reference and tutorial, in one conversation: what each answers.

A step is a line of curl: method, path, body; then the status and what the answer has: all of it, or of an object some
members.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("jsonschema_rs")

from tests.unit.registry.rest.in_memory import CONTENT_TYPE, Client

STRING = {"schema": '{"type": "string"}'}
FIELDS = [{"name": "orderId", "type": "string"}, {"name": "customerId", "type": "string"}]
FIELDS.append({"name": "amount", "type": "double"})
ORDER: dict[str, Any] = {"type": "record", "name": "Order", "fields": FIELDS}
COUPON = {"name": "couponCode", "type": ["null", "string"], "default": None}
COUPONED = {**ORDER, "fields": [*ORDER["fields"], COUPON]}
REQUIRED = {**ORDER, "fields": [*ORDER["fields"], {"name": "region", "type": "string"}]}
CUSTOMER = {"type": "record", "name": "Customer", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
REFERRING = {"type": "record", "name": "Sale", "namespace": "shop", "fields": [{"name": "by", "type": "shop.Customer"}]}
PROTO = 'syntax = "proto3"; package shop; message Order { string id = 1; }'
DOCUMENT = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
RULES = {
    "domainRules": [
        {"name": "checkId", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "size(message.orderId) > 0"}
    ]
}


def avro(schema: Any, **more: Any) -> dict[str, Any]:
    return {"schema": json.dumps(schema), **more}


class Step(NamedTuple):
    method: str
    target: str
    body: Any = None
    status: int = 200
    answer: Any = None


TUTORIAL = [
    Step("GET", "/", answer={}),
    Step("GET", "/schemas/types", answer=["AVRO", "PROTOBUF", "JSON"]),
    Step("GET", "/subjects", answer=[]),
    Step("GET", "/config", answer={"compatibilityLevel": "BACKWARD"}),
    Step("GET", "/mode", answer={"mode": "READWRITE"}),
    Step("POST", "/subjects/Kafka-key/versions", STRING, answer={"id": 1}),
    Step("POST", "/subjects/Kafka-value/versions", STRING, answer={"id": 1}),
    Step("GET", "/subjects", answer=["Kafka-key", "Kafka-value"]),
    Step("GET", "/schemas/ids/1", answer={"schema": '"string"'}),
    Step("GET", "/schemas/ids/1/schema", answer="string"),
    Step(
        "GET",
        "/schemas/ids/1/versions",
        answer=[{"subject": "Kafka-key", "version": 1}, {"subject": "Kafka-value", "version": 1}],
    ),
    Step("GET", "/schemas/ids/1/subjects", answer=["Kafka-key", "Kafka-value"]),
    Step("GET", "/schemas/ids/99", status=404, answer={"error_code": 40403}),
    Step("GET", "/subjects/Kafka-value/versions", answer=[1]),
    Step(
        "GET",
        "/subjects/Kafka-value/versions/1",
        answer={"subject": "Kafka-value", "id": 1, "version": 1, "schema": '"string"'},
    ),
    Step("GET", "/subjects/Kafka-value/versions/latest", answer={"version": 1}),
    Step("GET", "/subjects/Kafka-value/versions/latest/schema", answer="string"),
    Step("GET", "/subjects/Kafka-value/versions/2", status=404, answer={"error_code": 40402}),
    Step("GET", "/subjects/Kafka-value/versions/0", status=422, answer={"error_code": 42202}),
    Step("POST", "/subjects/Kafka-value", STRING, answer={"subject": "Kafka-value", "version": 1, "id": 1}),
    Step("POST", "/subjects/nobody", STRING, status=404, answer={"error_code": 40401}),
    Step("POST", "/subjects/Kafka-value", avro("long"), status=404, answer={"error_code": 40403}),
    Step("POST", "/subjects/bad/versions", {"schema": "{"}, status=422, answer={"error_code": 42201}),
    Step("POST", "/compatibility/subjects/Kafka-value/versions/latest", STRING, answer={"is_compatible": True}),
    Step("POST", "/compatibility/subjects/Kafka-value/versions/1", avro("long"), answer={"is_compatible": False}),
    Step("POST", "/compatibility/subjects/Kafka-value/versions", STRING, answer={"is_compatible": True}),
    Step("POST", "/compatibility/subjects/Kafka-value/versions/9", STRING, status=404, answer={"error_code": 40402}),
    Step("PUT", "/config", {"compatibility": "NONE"}, answer={"compatibility": "NONE"}),
    Step("PUT", "/config/Kafka-value", {"compatibility": "BACKWARD"}, answer={"compatibility": "BACKWARD"}),
    Step("GET", "/config/Kafka-value", answer={"compatibilityLevel": "BACKWARD"}),
    Step("GET", "/config/Kafka-key", status=404, answer={"error_code": 40408}),
    Step("GET", "/config/Kafka-key?defaultToGlobal=true", answer={"compatibilityLevel": "NONE"}),
    Step("PUT", "/config/Kafka-value", {"compatibility": "SOME"}, status=422, answer={"error_code": 42203}),
    Step("DELETE", "/config/Kafka-value", answer={"compatibilityLevel": "BACKWARD"}),
    Step("PUT", "/config", {"compatibility": "BACKWARD"}, answer={"compatibility": "BACKWARD"}),
    Step("DELETE", "/subjects/Kafka-value/versions/1", answer=1),
    Step("DELETE", "/subjects/Kafka-value/versions/1?permanent=true", answer=1),
    Step("DELETE", "/subjects/Kafka-key", answer=[1]),
    Step("GET", "/subjects?deleted=true", answer=["Kafka-key"]),
    Step("GET", "/subjects?deletedOnly=true", answer=["Kafka-key"]),
    Step("DELETE", "/subjects/Kafka-key", status=404, answer={"error_code": 40404}),
    Step("DELETE", "/subjects/Kafka-key?permanent=true", answer=[1]),
    Step("DELETE", "/subjects/Kafka-key?permanent=true", status=404, answer={"error_code": 40401}),
    Step("GET", "/subjects", answer=[]),
]
EVOLUTION = [
    Step("POST", "/subjects/orders-value/versions", avro(ORDER), answer={"id": 2}),
    Step("POST", "/subjects/orders-value/versions", avro(ORDER), answer={"id": 2}),
    Step(
        "POST", "/compatibility/subjects/orders-value/versions/latest", avro(COUPONED), answer={"is_compatible": True}
    ),
    Step("POST", "/subjects/orders-value/versions", avro(COUPONED), answer={"id": 3}),
    Step(
        "POST",
        "/compatibility/subjects/orders-value/versions/latest?verbose=true",
        avro(REQUIRED),
        answer={"is_compatible": False},
    ),
    Step("POST", "/subjects/orders-value/versions", avro(REQUIRED), status=409, answer={"error_code": 409}),
    Step("POST", "/subjects/orders-value/versions", avro(ORDER), answer={"id": 2}),
    Step("GET", "/subjects/orders-value/versions", answer=[1, 2]),
    Step("GET", "/schemas?subjectPrefix=orders&latestOnly=true", answer=[{"subject": "orders-value", "version": 2}]),
    Step("GET", "/subjects?subjectPrefix=ord", answer=["orders-value"]),
    Step("GET", "/subjects/orders-value/versions?offset=1&limit=1", answer=[2]),
    Step("DELETE", "/subjects/orders-value/versions/2", answer=2),
    Step("GET", "/subjects/orders-value/versions?deleted=true", answer=[1, 2]),
    Step("GET", "/subjects/orders-value/versions?deletedAsNegative=true", answer=[1, -2]),
    Step("GET", "/subjects/orders-value/versions/2", status=404, answer={"error_code": 40402}),
    Step("GET", "/subjects/orders-value/versions/2?deleted=true", answer={"id": 3}),
    Step("GET", "/schemas/ids/3", answer={}),
    Step("DELETE", "/subjects/orders-value/versions/2", status=404, answer={"error_code": 40406}),
    Step("DELETE", "/subjects/orders-value/versions/1?permanent=true", status=404, answer={"error_code": 40407}),
    Step("POST", "/subjects/orders-value/versions", avro(COUPONED), answer={"id": 3, "version": 3}),
]
TYPES_AND_REFERENCES = [
    Step("POST", "/subjects/customer/versions", avro(CUSTOMER), answer={"id": 4}),
    Step(
        "POST",
        "/subjects/sales-value/versions",
        avro(REFERRING, references=[{"name": "shop.Customer", "subject": "customer", "version": 1}]),
        answer={"id": 5},
    ),
    Step("GET", "/subjects/customer/versions/1/referencedby", answer=[5]),
    Step("DELETE", "/subjects/customer/versions/1", status=422, answer={"error_code": 42206}),
    Step("GET", "/schemas/ids/5?format=resolved", answer={}),
    Step("POST", "/subjects/proto-value/versions", {"schemaType": "PROTOBUF", "schema": PROTO}, answer={"id": 6}),
    Step("GET", "/schemas/ids/6", answer={"schemaType": "PROTOBUF", "schema": PROTO}),
    Step("GET", "/schemas/ids/6?format=serialized", answer={"schemaType": "PROTOBUF"}),
    Step(
        "POST",
        "/subjects/json-value/versions",
        {"schemaType": "JSON", "schema": json.dumps(DOCUMENT)},
        answer={"id": 7},
    ),
    Step("GET", "/subjects/json-value/versions/latest", answer={"schemaType": "JSON", "id": 7}),
    Step(
        "POST",
        "/subjects/x/versions",
        {"schemaType": "XML", "schema": "<a/>"},
        status=422,
        answer={"error_code": 42201},
    ),
]
MODES_AND_CONTEXTS = [
    Step("PUT", "/mode", {"mode": "READONLY"}, answer={"mode": "READONLY"}),
    Step("POST", "/subjects/x/versions", STRING, status=422, answer={"error_code": 42205}),
    Step("PUT", "/mode", {"mode": "READWRITE"}, answer={"mode": "READWRITE"}),
    Step("GET", "/mode/orders-value", status=404, answer={"error_code": 40409}),
    Step("PUT", "/mode/imported", {"mode": "IMPORT"}, answer={"mode": "IMPORT"}),
    Step("POST", "/subjects/imported/versions", {**avro("bytes"), "id": 100, "version": 5}, answer={"id": 100}),
    Step("GET", "/subjects/imported/versions", answer=[5]),
    Step("DELETE", "/mode/imported", answer={"mode": "IMPORT"}),
    Step("PUT", "/mode/orders-value", {"mode": "SOME"}, status=422, answer={"error_code": 42204}),
    Step("POST", "/subjects/:.lab:orders-value/versions", avro(ORDER), answer={"id": 1}),
    Step("GET", "/contexts", answer=[".", ".lab"]),
    Step("GET", "/contexts/.lab/subjects", answer=[":.lab:orders-value"]),
    Step("GET", "/subjects?subjectPrefix=:.lab:", answer=[":.lab:orders-value"]),
    Step("GET", "/schemas/ids/1?subject=:.lab:", answer={}),
    Step("GET", "/contexts/.lab/subjects/orders-value/versions/latest", answer={"id": 1}),
]
CONTRACTS = [
    Step(
        "POST",
        "/subjects/contract-value/versions",
        avro(ORDER, metadata={"properties": {"owner": "shop"}}, ruleSet=RULES),
        answer={"metadata": {"properties": {"owner": "shop"}}},
    ),
    Step("GET", "/subjects/contract-value/versions/latest", answer={"ruleSet": RULES}),
    Step("GET", "/subjects/contract-value/metadata?key=owner&value=shop", answer={"version": 1}),
    Step("GET", "/subjects/contract-value/metadata?key=owner&value=nobody", status=404, answer={"error_code": 40403}),
    Step(
        "PUT", "/config/contract-value", {"normalize": True, "compatibilityGroup": "major"}, answer={"normalize": True}
    ),
    Step("PUT", "/config/contract", {"alias": "contract-value"}, answer={"alias": "contract-value"}),
    Step("GET", "/subjects/contract/versions/latest", answer={"subject": "contract-value"}),
    Step(
        "GET",
        "/v1/metadata/id",
        answer={"scope": {"path": [], "clusters": {"schema-registry-cluster": "schema-registry"}}},
    ),
    Step("GET", "/v1/metadata/version", answer={}),
    Step("GET", "/associations/subjects/x", status=404, answer={"error_code": 404}),
    Step("GET", "/nowhere", status=404, answer={"error_code": 404}),
    Step("PATCH", "/subjects", status=405, answer={"error_code": 405}),
]
CONVERSATION = [*TUTORIAL, *EVOLUTION, *TYPES_AND_REFERENCES, *MODES_AND_CONTEXTS, *CONTRACTS]


def _has(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(name in found and found[name] == expected[name] for name in expected)
    if isinstance(expected, list) and expected and isinstance(expected[0], dict):
        return len(found) == len(expected) and all(_has(one, other) for one, other in zip(found, expected, strict=True))
    return bool(found == expected)


def test_the_conversation_is_answered_as_the_reference_says() -> None:
    client = Client()
    for step in CONVERSATION:
        answered = client(step.method, step.target, step.body)
        assert answered.status == step.status, (step, answered.body)
        assert _has(answered.json, step.answer), (step, answered.body)
        assert answered.headers["content-type"] == CONTENT_TYPE
        if step.status >= 400:
            assert list(answered.json) == ["error_code", "message"]


def test_the_conversation_has_more_than_eighty_calls() -> None:
    assert len(CONVERSATION) > 80


def test_a_schema_that_is_not_wrapped_is_refused_with_what_is_missing() -> None:
    answered = Client()("POST", "/subjects/orders-value/versions", COUPONED)
    assert (answered.status, answered.json["error_code"]) == (422, 42201)
    assert "the body needs a member schema" in answered.json["message"]
