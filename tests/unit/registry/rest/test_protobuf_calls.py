"""Protobuf through the calls of the registry: references, forms, lookups by descriptor, verdicts."""

from __future__ import annotations

import base64

import pytest

pytest.importorskip("google.protobuf")

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.unit.registry.rest.in_memory import Client

CUSTOMER = 'syntax = "proto3";\npackage shop;\n\nmessage Customer {\n  string name = 1; // shown\n}\n'
ORDER = """syntax = "proto3";
package shop;
import "shop/customer.proto";
message Order { string id = 1; Customer customer = 2; }
"""


def given(text: str, *references: tuple[str, str, int]) -> dict[str, object]:
    listed = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
    return {"schemaType": "PROTOBUF", "schema": text, "references": listed}


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_schema_with_a_reference_is_kept_as_sent_and_found_in_every_form(client: Client) -> None:
    assert client("POST", "/subjects/customer/versions", given(CUSTOMER)).json["id"] == 1
    order = given(ORDER, ("shop/customer.proto", "customer", 1))
    assert client("POST", "/subjects/orders-value/versions", order).json["id"] == 2
    version = client("GET", "/subjects/orders-value/versions/latest").json
    assert (version["schemaType"], version["schema"]) == ("PROTOBUF", ORDER)
    assert version["references"] == order["references"]
    serialized = client("GET", "/schemas/ids/2?format=serialized").json["schema"]
    file = FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [each.name for each in file.message_type[0].field] == ["id", "customer"]
    assert list(file.dependency) == ["shop/customer.proto"]
    again = {**order, "schema": serialized}
    assert client("POST", "/subjects/orders-value", again).json["version"] == 1
    assert client("POST", "/subjects/orders-value/versions", again).json["id"] == 2
    relaid = {**order, "schema": ORDER.replace("; ", ";\n\t")}
    assert client("POST", "/subjects/orders-value/versions", relaid).json["id"] == 2
    assert client("GET", "/subjects/customer/versions/1/referencedby").json == [2]


def test_normalized_schemas_of_another_order_are_one(client: Client) -> None:
    one = given('syntax = "proto3"; message M { string b = 2; int32 a = 1; }')
    two = given('syntax = "proto3"; message M { int32 a = 1; string b = 2; }')
    first = client("POST", "/subjects/m/versions?normalize=true", one).json
    assert client("POST", "/subjects/m/versions?normalize=true", two).json == first
    assert first["schema"].splitlines()[1:3] == ["message M {", "  int32 a = 1;"]


def test_an_incompatible_schema_is_refused_with_rule_path_and_remedy(client: Client) -> None:
    client("POST", "/subjects/m/versions", given('syntax = "proto3"; message M { int32 a = 1; }'))
    changed = given('syntax = "proto3"; message M { string a = 1; }')
    refused = client("POST", "/subjects/m/versions", changed)
    assert (refused.status, refused.json["error_code"]) == (409, 409)
    verdict = client("POST", "/compatibility/subjects/m/versions/latest?verbose=true", changed).json
    assert verdict["is_compatible"] is False
    assert verdict["messages"][0].startswith(
        "{errorType:'FIELD_SCALAR_KIND_CHANGED', description:'the field a is string"
    )
    assert "path:'#/M/1'" in verdict["messages"][0]


def test_another_type_is_another_schema(client: Client) -> None:
    client("POST", "/subjects/m/versions", {"schema": '"string"'})
    refused = client("POST", "/subjects/m/versions", given('syntax = "proto3"; message M {}'))
    assert (refused.status, "TYPE_CHANGED" in refused.json["message"]) == (409, True)
    assert client("PUT", "/config/m", {"compatibility": "NONE"}).status == 200
    assert client("POST", "/subjects/m/versions", given('syntax = "proto3"; message M {}')).json["version"] == 2


def test_what_protoc_refuses_is_refused_with_its_reason(client: Client) -> None:
    refused = client("POST", "/subjects/m/versions", given('syntax = "proto3"; message M { Missing a = 1; }'))
    assert (refused.status, refused.json["error_code"]) == (422, 42201)
    assert '"Missing" is not defined' in refused.json["message"]
