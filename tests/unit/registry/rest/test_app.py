"""The calls of the registry over HTTP, without a network and without a log: their bodies, codes and headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millbeck.registry.election import Identity
from millbeck.registry.rest import app as app_module
from millbeck.registry.rest.app import CALLS
from millbeck.registry.rest.forwarding import Forwarded
from tests.unit.registry.rest.in_memory import CONTENT_TYPE, Client


@pytest.fixture
def client() -> Client:
    return Client()


def record(*fields: Any, name: str = "R") -> Any:
    return {"type": "record", "name": name, "fields": list(fields)}


A_INT = {"name": "a", "type": "int"}
B_OPTIONAL = {"name": "b", "type": ["null", "string"], "default": None}


def test_a_schema_is_registered_once_and_found_everywhere(client: Client) -> None:
    first = client.register("orders-value", "string")
    assert (first.status, first.json["id"], first.headers["content-type"]) == (200, 1, CONTENT_TYPE)
    assert first.headers["x-millbeck-offset"] == "0"
    assert client.register("orders-value", {"type": "string"}).json == first.json
    assert client.register("other", "string").json["id"] == 1
    guid = first.json["guid"]
    version = {"subject": "orders-value", "version": 1, "id": 1, "guid": guid, "schema": '"string"'}
    for name in ("1", "latest", "-1"):
        assert client("GET", f"/subjects/orders-value/versions/{name}").json == version
    assert client("POST", "/subjects/orders-value", {"schema": '"string"'}).json == version
    assert client("GET", "/schemas/ids/1").json == {"schema": '"string"', "guid": guid}
    assert client("GET", "/schemas/ids/1?fetchMaxId=true").json["maxId"] == 1
    assert client("GET", "/schemas/ids/1/schema").body == b'"string"'
    assert client("GET", "/subjects/orders-value/versions/1/schema").body == b'"string"'
    assert client("GET", "/schemas/ids/1/subjects").json == ["orders-value", "other"]
    assert client("GET", "/schemas/ids/1/versions?limit=1").json == [{"subject": "orders-value", "version": 1}]
    assert client("GET", f"/schemas/guids/{guid}").json["schema"] == '"string"'
    assert client("GET", f"/schemas/guids/{guid}/ids").json == [{"context": ".", "id": 1}]
    assert client("GET", "/subjects").json == ["orders-value", "other"]
    assert client("GET", "/subjects?subjectPrefix=or").json == ["orders-value"]
    assert client("GET", "/subjects/orders-value/versions").json == [1]
    assert [each["subject"] for each in client("GET", "/schemas?latestOnly=true").json] == ["orders-value", "other"]


def test_a_plain_request_by_id_is_answered_as_one_that_is_routed(client: Client) -> None:
    client.register("a", "string")
    spellings = (
        "/schemas/ids/1",
        "/schemas/ids/1?x=",
        "/schemas/ids/1/",
        "//schemas/ids/1",
        "/contexts/./schemas/ids/1",
    )
    assert len({client("GET", each).body for each in spellings}) == 1
    assert client("GET", "/schemas/ids/00000000001").status == 200
    for target in ("/subjects/a", "/subjects/a?permanent=true"):
        client("DELETE", target)
    assert client("GET", "/schemas/ids/1").status == 404


ERRORS: dict[str, tuple[str, str, Any, int, str]] = {
    "no such subject": ("GET", "/subjects/x/versions", None, 40401, "Subject 'x' not found."),
    "no such version": ("GET", "/subjects/a/versions/9", None, 40402, "Version 9 not found."),
    "no such id": ("GET", "/schemas/ids/9", None, 40403, "Schema 9 not found"),
    "not this schema": ("POST", "/subjects/a", {"schema": '"long"'}, 40403, "Schema not found"),
    "not deleted softly": ("DELETE", "/subjects/a?permanent=true", None, 40405, "was not deleted first"),
    "a version not deleted softly": (
        "DELETE",
        "/subjects/a/versions/1?permanent=true",
        None,
        40407,
        "not deleted first",
    ),
    "deleted softly": ("DELETE", "/subjects/gone", None, 40404, "soft deleted.Set permanent=true"),
    "a version deleted softly": (
        "DELETE",
        "/subjects/gone/versions/1",
        None,
        40406,
        "soft deleted. Set permanent=true",
    ),
    "no settings": ("GET", "/config/a", None, 40408, "subject-level compatibility"),
    "no mode": ("GET", "/mode/a", None, 40409, "subject-level mode"),
    "incompatible": ("POST", "/subjects/a/versions", {"schema": '"int"'}, 409, "TYPE_MISMATCH"),
    "no schema": ("POST", "/subjects/a/versions", {"schema": "{"}, 42201, "not JSON"),
    "an empty schema": ("POST", "/subjects/a/versions", {}, 42201, "Empty schema"),
    "an unknown type": ("POST", "/subjects/a/versions", {"schema": "x", "schemaType": "XML"}, 42201, "AVRO"),
    "a reference to nothing": (
        "POST",
        "/subjects/a/versions",
        {"schema": '"X"', "references": [{"name": "X", "subject": "x", "version": 1}]},
        42201,
        "register that version first",
    ),
    "no version": ("GET", "/subjects/a/versions/x", None, 42202, "'x' is not a valid version id"),
    "version 0": ("GET", "/subjects/a/versions/0", None, 42202, "not a valid version id"),
    "no level": ("PUT", "/config", {"compatibility": "MOST"}, 42203, "Valid values are"),
    "no mode of that name": ("PUT", "/mode", {"mode": "MOST"}, 42204, "Valid values are"),
    "not while there are schemas": ("PUT", "/mode", {"mode": "IMPORT"}, 42205, "force=true"),
    "not in import mode": ("POST", "/subjects/a/versions", {"schema": '"int"', "id": 7}, 42205, "not in import mode"),
    "a bad subject": ("POST", "/subjects/%0A/versions", {"schema": '"int"'}, 42208, "not a valid subject"),
    "a deep schema": (
        "POST",
        "/subjects/a/versions",
        {"schema": '{"type":"array","items":' * 200 + '"int"' + "}" * 200},
        42209,
        "levels deep",
    ),
    "bad rules": (
        "POST",
        "/subjects/a/versions",
        {"schema": '"int"', "ruleSet": {"domainRules": [{}]}},
        42210,
        "has no name",
    ),
    "a setting of the wrong type": ("PUT", "/config", {"normalize": "yes"}, 422, "normalize must be true or false"),
    "a body that is no object": ("POST", "/subjects/a/versions", [1], 422, "must be a JSON object"),
    "a body that is no JSON": ("POST", "/subjects/a/versions", b"{", 422, "not JSON"),
    "a deep body": ("POST", "/subjects/a/versions", b"[" * 90_000, 422, "not JSON"),
    "references that are no list": (
        "POST",
        "/subjects/a/versions",
        {"schema": '"int"', "references": 1},
        422,
        "not a list",
    ),
    "a large body": ("POST", "/subjects/a/versions", b"x" * 100_001, 413, "the limit is 100000"),
    "no such path": ("GET", "/subject", None, 404, "HTTP 404 Not Found"),
    "no such method": ("PUT", "/subjects", None, 405, "HTTP 405"),
    "associations": ("GET", "/associations/subjects/a", None, 404, "does not support associations"),
    "an id that is no number": ("GET", "/schemas/ids/x", None, 404, "must be a number"),
    "a page that is no number": ("GET", "/subjects?limit=x", None, 422, "must be a number"),
    "settings that are not there": ("DELETE", "/config/a", None, 40401, "no settings of its own"),
    "a mode that is not there": ("DELETE", "/mode/a", None, 40401, "no mode of its own"),
    "metadata of no subject": ("GET", "/subjects/x/metadata?key=k&value=v", None, 40401, "Subject 'x' not found."),
    "a lookup of nothing": ("POST", "/subjects/a", {"schema": ""}, 40403, "Schema not found"),
    "compatible with no version": (
        "POST",
        "/compatibility/subjects/x/versions/1",
        {"schema": '"int"'},
        40402,
        "Version 1 not found.",
    ),
    "an offset nobody has": ("GET", "/subjects", None, 50002, "has not read offset 1000"),
}


@pytest.mark.parametrize(("method", "target", "body", "code", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(client: Client, method: str, target: str, body: Any, code: int, text: str) -> None:
    client.register("a", "string")
    client.register("gone", "string")
    client("DELETE", "/subjects/gone")
    answer = client(method, target, body, {"x-millbeck-offset": "1000"} if code == 50002 else None)
    assert answer.json["error_code"] == code
    assert answer.status == int(str(code)[:3])
    assert text in answer.json["message"]


def test_a_form_is_no_body(client: Client) -> None:
    answer = client("POST", "/subjects/a/versions", b"schema=x", {"content-type": "application/x-www-form-urlencoded"})
    assert (answer.status, CONTENT_TYPE in answer.json["message"]) == (415, True)


def test_compatibility_is_answered_with_messages(client: Client) -> None:
    client.register("a", record(A_INT))
    good = {"schema": json.dumps(record(A_INT, B_OPTIONAL))}
    bad = {"schema": json.dumps(record(A_INT, {"name": "c", "type": "int"}))}
    for target in ("/compatibility/subjects/a/versions/latest", "/compatibility/subjects/a/versions"):
        assert client("POST", target, good).json == {"is_compatible": True}
        answer = client("POST", f"{target}?verbose=true", bad).json
        assert not answer["is_compatible"]
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in answer["messages"][0]
    assert client("POST", "/compatibility/subjects/new/versions", bad).json == {"is_compatible": True}
    assert client("POST", "/compatibility/subjects/new/versions/latest", bad).json == {"is_compatible": True}
    wrong = client("POST", "/compatibility/subjects/new/versions/latest", {"schema": "{"})
    assert wrong.json["error_code"] == 42201


def test_settings_of_subject_context_and_registry(client: Client) -> None:
    assert client("GET", "/config").json == {"compatibilityLevel": "BACKWARD"}
    assert client("PUT", "/config", {"compatibility": "full"}).json == {"compatibility": "FULL"}
    assert client("GET", "/config/a?defaultToGlobal=true").json["compatibilityLevel"] == "FULL"
    client("PUT", "/contexts/.lab/config", {"compatibility": "NONE"})
    assert client("GET", "/config/:.lab:").json == {"compatibilityLevel": "NONE"}
    assert client("GET", "/config/:.lab:a?defaultToGlobal=true").json["compatibilityLevel"] == "NONE"
    client("PUT", "/config/a", {"compatibility": "FORWARD", "normalize": True})
    assert client("DELETE", "/config/a").json == {"compatibilityLevel": "FORWARD", "normalize": True}
    assert client("DELETE", "/config").json == {"compatibilityLevel": "FULL"}
    assert client("PUT", "/mode/a", {"mode": "READONLY"}).json == {"mode": "READONLY"}
    assert client.register("a", "int").json["error_code"] == 42205
    assert client("GET", "/mode/a").json == {"mode": "READONLY"}
    assert client("DELETE", "/mode/a").json == {"mode": "READONLY"}
    assert client("GET", "/mode").json == {"mode": "READWRITE"}


def test_deleting_in_order(client: Client) -> None:
    client("PUT", "/config", {"compatibility": "NONE"})
    for kind in ("int", "long", "string"):
        client.register("a", kind)
    assert client("DELETE", "/subjects/a/versions/2").json == 2
    assert client("GET", "/subjects/a/versions").json == [1, 3]
    assert client("GET", "/subjects/a/versions?deletedAsNegative=true").json == [1, -2, 3]
    assert client("GET", "/subjects/a/versions?deletedOnly=true").json == [2]
    assert client("GET", "/subjects/a/versions/2?deleted=true").json["deleted"] is True
    assert client("DELETE", "/subjects/a").json == [1, 3]
    assert client("GET", "/subjects").json == []
    assert client("GET", "/subjects?deletedOnly=true").json == ["a"]
    assert client("GET", "/schemas/ids/1").json["schema"] == '"int"'
    assert client("DELETE", "/subjects/a?permanent=true").json == [1, 2, 3]
    assert client("GET", "/schemas/ids/1").json["error_code"] == 40403
    assert client.register("a", "bytes").json["id"] == 4


def test_references(client: Client) -> None:
    client.register("customer", record(A_INT, name="Customer"))
    order = record({"name": "c", "type": "Customer"}, name="Order")
    reference = {"name": "Customer", "subject": "customer", "version": -1}
    answer = client.register("order", order, references=[reference])
    assert answer.json["references"] == [{**reference, "version": 1}]
    assert client("GET", "/subjects/customer/versions/1/referencedby").json == [2]
    resolved = client("GET", "/schemas/ids/2?format=resolved").json["schema"]
    assert json.loads(resolved)["fields"][0]["type"]["name"] == "Customer"
    assert client("DELETE", "/subjects/customer").json["error_code"] == 42206


def test_contexts_by_name_and_by_path(client: Client) -> None:
    client.register("a", "int")
    assert client.register(":.lab:a", "string").json["id"] == 1
    assert client("GET", "/contexts").json == [".", ".lab"]
    assert client("GET", "/contexts/lab/subjects/a/versions/1").json["subject"] == ":.lab:a"
    assert client("GET", "/contexts/.lab/schemas/ids/1").json["schema"] == '"string"'
    assert client("GET", "/schemas/ids/1?subject=:.lab:a").json["schema"] == '"string"'
    assert client("GET", "/subjects").json == [":.lab:a", "a"]
    assert client("GET", "/subjects?subjectPrefix=:.lab:").json == [":.lab:a"]
    assert client("GET", "/contexts/.lab/subjects").json == [":.lab:a"]
    assert client("DELETE", "/contexts/.lab").json["error_code"] == 42211
    for target in ("/subjects/:.lab:a", "/subjects/:.lab:a?permanent=true"):
        client("DELETE", target)
    assert client("DELETE", "/contexts/.lab").status == 204
    assert client("GET", "/contexts").json == ["."]


def test_a_subject_may_have_a_slash(client: Client) -> None:
    assert client.register("a/b", "int").status == 200
    assert client("GET", "/subjects/a%2Fb/versions").json == [1]


def test_an_alias_is_its_subject(client: Client) -> None:
    client.register("a", "int")
    client("PUT", "/config/short", {"alias": "a"})
    assert client("GET", "/subjects/short/versions/latest").json["subject"] == "a"
    assert client.register("short", "long").json["version"] == 2
    assert client("GET", "/subjects").json == ["a"]


def test_a_schema_is_referred_to_until_its_referrer_is_deleted(client: Client) -> None:
    client.register("customer", record(A_INT, name="Customer"))
    order = record({"name": "c", "type": "Customer"}, name="Order")
    client.register("order", order, references=[{"name": "Customer", "subject": "customer", "version": 1}])
    assert client("DELETE", "/subjects/customer").json["error_code"] == 42206
    client("DELETE", "/subjects/order")
    assert client("DELETE", "/subjects/customer").json == [1]
    assert client("DELETE", "/subjects/customer?permanent=true").json == [1]
    assert client("GET", "/schemas/ids/2").status == 200


def test_new_schemas_are_checked_unless_it_is_switched_off(client: Client) -> None:
    loose = record({"name": "a", "type": "int", "default": "none"})
    assert "the default of field" in client.register("a", loose).json["message"]
    client("PUT", "/config/a", {"validateNewSchemas": False})
    assert client.register("a", loose).json["version"] == 1


def test_holders_of_an_id_in_one_subject(client: Client) -> None:
    for name in ("a", "b"):
        client.register(name, "int")
    assert client("GET", "/schemas/ids/1/subjects?subject=b").json == ["b"]
    assert client("GET", "/schemas/ids/1/versions?subject=b").json == [{"subject": "b", "version": 1}]
    assert client("GET", "/schemas/ids/1/subjects?limit=0").json == ["a", "b"]


def test_a_long_list_is_made_in_turns(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.registry.rest.schemas._TURN_VERSIONS", 2)
    assert client("GET", "/schemas").json == []
    for number in range(5):
        client.register(f"s{number}", record(name=f"R{number}"))
    client.register("s5", {"type": "int", "note": "\ud800"})
    assert [each["subject"] for each in client("GET", "/schemas").json] == [f"s{number}" for number in range(6)]


def test_head_is_answered_as_get_and_other_methods_are_named(client: Client) -> None:
    for target in ("/", "/subjects", "/health"):
        assert client("HEAD", target).status == client("GET", target).status == 200
    assert client("HEAD", "/nowhere").status == 404
    answer = client("PUT", "/subjects")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


ACCEPTED = {
    "*/*": CONTENT_TYPE,
    "application/*": CONTENT_TYPE,
    "text/html, image/gif, *; q=.2, */*; q=.2": CONTENT_TYPE,
    "application/json": "application/json",
    "application/json; q=0.5, application/vnd.schemaregistry.v1+json": CONTENT_TYPE,
    "application/vnd.schemaregistry.v2+json; q=0.1, application/vnd.schemaregistry+json; q=0.9": (
        "application/vnd.schemaregistry+json"
    ),
    "application/vnd.schemaregistry.v2+json": None,
    "text/*": None,
    "application/json; q=0": None,
}


@pytest.mark.parametrize(("accept", "expected"), ACCEPTED.items(), ids=ACCEPTED.keys())
def test_the_answer_has_the_type_that_the_client_prefers(client: Client, accept: str, expected: str | None) -> None:
    client.register("a", "int")
    for target in ("/subjects", "/schemas/ids/1", "/schemas/ids/1"):
        answer = client("GET", target, headers={"accept": accept})
        assert answer.status == (406 if expected is None else 200)
        assert answer.headers["content-type"] == (expected or CONTENT_TYPE)


def test_normalized_schemas_are_one(client: Client) -> None:
    spellings = [{"type": "int", "y": 1, "x": 2}, {"type": "int", "x": 2, "y": 1}]
    ids = [
        client("POST", f"/subjects/s{index}/versions?normalize=true", {"schema": json.dumps(each)}).json["id"]
        for index, each in enumerate(spellings)
    ]
    assert ids == [1, 1]


def test_metadata_is_found_by_its_properties(client: Client) -> None:
    client.register("a", "int", metadata={"properties": {"major": "1"}})
    assert client("GET", "/subjects/a/metadata?key=major&value=1").json["version"] == 1
    assert client("GET", "/subjects/a/metadata?key=major&value=2").json["error_code"] == 40403


TAGGED = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "confluent:tags": ["CORE"],
    "fields": [
        {"name": "id", "type": "string", "confluent:tags": ["PII", "KEY"]},
        {
            "name": "by",
            "type": {
                "type": "record",
                "name": "By",
                "fields": [{"name": "n", "type": "int", "confluent:tags": ["PII"]}],
            },
        },
    ],
}


def parts_of(answer: Any) -> dict[str, list[str]]:
    return {each["schemaEntity"]["entityPath"]: each["tags"] for each in answer.json["schemaTags"]}


def test_tags_are_found_in_text_and_metadata(client: Client) -> None:
    client.register("a", TAGGED, metadata={"tags": {"shop.Order.id": ["SECRET", "PII"], "**.email": ["PII"]}})
    everything = client("GET", "/schemas/ids/1?findTags=*")
    assert parts_of(everything) == {
        "shop.Order.id": ["SECRET", "PII", "KEY"],
        "**.email": ["PII"],
        "shop.Order": ["CORE"],
        "shop.By.n": ["PII"],
    }
    kinds = {each["schemaEntity"]["entityType"] for each in everything.json["schemaTags"]}
    assert kinds == {"sr_record", "sr_field"}
    assert parts_of(client("GET", "/subjects/a/versions/1?findTags=KEY,CORE")).keys() == {"shop.Order.id", "shop.Order"}
    assert "schemaTags" not in client("GET", "/schemas/ids/1").json
    document = {"title": "T", "type": "object", "properties": {"p": {"type": "string", "confluent:tags": ["PII"]}}}
    client("POST", "/subjects/j/versions", {"schema": json.dumps(document), "schemaType": "JSON"})
    assert parts_of(client("GET", "/schemas/ids/2?findTags=PII")) == {"T.p": ["PII"]}


def test_changing_tags_makes_a_version(client: Client) -> None:
    client.register("a", TAGGED, metadata={"tags": {"shop.Order.id": ["OLD", "PII"]}, "properties": {"team": "x"}})
    entity = {"entityPath": "shop.Order.id", "entityType": "sr_field"}
    rule = {"name": "r", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD", "tags": ["PII"]}
    body = {
        "newVersion": 2,
        "tagsToAdd": [{"schemaEntity": entity, "tags": ["NEW"]}],
        "tagsToRemove": [{"schemaEntity": entity, "tags": ["OLD"]}],
        "rulesToMerge": {"domainRules": [rule]},
    }
    answer = client("POST", "/subjects/a/versions/latest/tags", body)
    assert (answer.status, answer.json["version"], answer.json["id"]) == (200, 2, 2)
    latest = client("GET", "/subjects/a/versions/latest").json
    assert latest["metadata"] == {"tags": {"shop.Order.id": ["PII", "NEW"]}, "properties": {"team": "x"}}
    assert latest["ruleSet"] == {"domainRules": [rule]}
    removal = {"tagsToRemove": [{"schemaEntity": entity, "tags": ["PII", "NEW"]}], "rulesToRemove": ["r"]}
    assert client("POST", "/subjects/a/versions/2/tags", removal).json["metadata"]["tags"] == {}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"newVersion": 7, "tagsToAdd": [{"schemaEntity": {"entityPath": "a"}, "tags": ["X"]}]}, 42202),
        ({"tagsToAdd": {}}, 422),
        ({"tagsToAdd": [{"tags": ["X"]}]}, 422),
        ({"tagsToAdd": [{"schemaEntity": {"entityPath": "a"}, "tags": "X"}]}, 422),
        ({"metadata": []}, 422),
        ({"metadata": {"tags": []}}, 200),
        ({"rulesToMerge": {"domainRules": [{}]}}, 42210),
        ({"rulesToRemove": "r"}, 422),
    ],
)
def test_changes_of_tags_are_checked(client: Client, body: Any, code: int) -> None:
    client.register("a", TAGGED)
    answer = client("POST", "/subjects/a/versions/1/tags", body)
    assert answer.json.get("error_code", 200) == code


def test_subjects_by_their_aliases_are_listed_when_asked(client: Client) -> None:
    client.register("orders", "int")
    client("PUT", "/config/sales-value", {"alias": "orders"})
    assert client("GET", "/schemas?subjectPrefix=sales").json == []
    listed = client("GET", "/schemas?subjectPrefix=sales&aliases=true").json
    assert [each["subject"] for each in listed] == ["orders"]


def test_a_write_is_forwarded_to_the_leader(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def forward(leader: Identity, method: str, target: str, body: bytes, **more: Any) -> Forwarded:
        asked.append((leader.url, method, target, json.loads(body), more["authorization"]))
        return Forwarded(200, b'{"id":7}', 41)

    monkeypatch.setattr(app_module, "forward", forward)
    client.instance.is_leading = False
    credentials = {"authorization": "Basic YTpi"}
    answer = client("POST", "/subjects/a%2Fb/versions?normalize=true", {"schema": '"int"'}, credentials)
    assert (answer.json, answer.headers["x-millbeck-offset"]) == ({"id": 7}, "41")
    target = "/subjects/a%2Fb/versions?normalize=true"
    assert asked == [("http://r1:8081", "POST", target, {"schema": '"int"'}, "Basic YTpi")]
    again = client("POST", "/subjects/a/versions", {"schema": '"int"'}, {"x-millbeck-forwarded": "true"})
    assert again.json["error_code"] == 50004


def test_nothing_is_answered_before_the_log_is_read(client: Client) -> None:
    client.app.service = None
    assert client("GET", "/subjects").json["error_code"] == 50002
    assert client("GET", "/health").status == 503


def test_what_raises_unexpectedly_is_told_without_its_reason(client: Client) -> None:
    client.instance.state = None  # type: ignore[assignment]
    assert client("GET", "/subjects").json == {"error_code": 500, "message": "Internal Server Error"}


def test_health_metrics_and_the_api(client: Client) -> None:
    client.register("a", "int")
    assert client("GET", "/health").json == {
        "status": "ok",
        "leader": "http://r1:8081",
        "is_leading": True,
        "offset": 0,
    }
    text = client("GET", "/metrics").body.decode()
    assert 'kafka_schema_registry_requests_total{call="POST /subjects/{subject}/versions",status="200"} 1' in text
    assert "kafka_schema_registry_registered_count 1" in text
    paths = client("GET", "/openapi.json").json["paths"]
    assert sum(len(each) for each in paths.values()) == len(CALLS)
    assert paths["/schemas/ids/{id}"]["get"]["summary"] == "The schema with an id."


@pytest.mark.parametrize("target", ["/", "/schemas/types", "/v1/metadata/id", "/v1/metadata/version"])
def test_what_clients_ask_first(client: Client, target: str) -> None:
    assert client("GET", target).status == 200
    assert client("GET", target, headers={"accept": "application/json"}).headers["content-type"] == "application/json"
