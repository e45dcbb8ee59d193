"""A registry started on the topic of Confluent's registry: every id and version answers, and what is deleted stays so.

The records are those that its documentation and its releases show: keys with magic 0 (with another order of members
too) and 1, soft deletes as values and as DELETE_SUBJECT, permanent ones as tombstones, a context, references, settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from millbeck.client.schemas.log_records import LogRecord
from millbeck.registry.state import RegistryState
from tests.unit.registry.rest.in_memory import Client

CUSTOMER = '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"name","type":"string"}]}'
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"by","type":"shop.Customer"}]}'
PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  string id = 1;\n}\n'


def old_key(subject: str, version: int) -> str:
    return f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":0}}'


def older_key(subject: str, version: int) -> str:
    return f'{{"magic":0,"keytype":"SCHEMA","subject":"{subject}","version":{version}}}'


def new_key(subject: str, version: int) -> str:
    return f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'


def value(subject: str, version: int, schema_id: int, text: str, **more: Any) -> str:
    deleted = more.pop("deleted", False)
    members = {"subject": subject, "version": version, "id": schema_id, **more, "schema": text, "deleted": deleted}
    return json.dumps(members, separators=(",", ":"))


LOG: tuple[tuple[str, str | None], ...] = (
    ('{"keytype":"NOOP","magic":0}', None),
    (older_key("customers-value", 1), value("customers-value", 1, 1, CUSTOMER)),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
    (old_key("orders-value", 1), value("orders-value", 1, 2, '"string"')),
    (new_key("orders-value", 2), value("orders-value", 2, 3, '"bytes"', md5Bytes="abc", ts=1700000000000)),
    (
        new_key("sales-value", 1),
        value(
            "sales-value",
            1,
            4,
            ORDER,
            references=[{"name": "shop.Customer", "subject": "customers-value", "version": 1}],
        ),
    ),
    (new_key("proto-value", 1), value("proto-value", 1, 5, PROTO, schemaType="PROTOBUF")),
    (old_key("gone-value", 1), value("gone-value", 1, 6, '"long"')),
    ('{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}', '{"subject":"gone-value","version":1}'),
    (old_key("gone-value", 1), value("gone-value", 1, 6, '"long"', deleted=True)),
    (new_key("dead-value", 1), value("dead-value", 1, 7, '"double"')),
    (new_key("dead-value", 1), value("dead-value", 1, 7, '"double"', deleted=True)),
    (new_key("dead-value", 1), None),
    ('{"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}', '{"tenant":"default","context":".lab"}'),
    (new_key(":.lab:orders-value", 1), value(":.lab:orders-value", 1, 1, '"int"')),
    ('{"keytype":"MODE","subject":"proto-value","magic":0}', '{"mode":"READONLY"}'),
    ('{"keytype":"CONFIG","subject":"orders-value","magic":0}', '{"compatibilityLevel":"NONE"}'),
    (new_key("orders-value", 1), value("orders-value", 1, 2, '"string"')),
)
"""The last record has version 1 of orders-value under another form of its key."""


def started_on(log: Iterable[tuple[bytes, bytes | None]]) -> Client:
    client = Client()
    state = client.instance.state
    for key, content in log:
        client.instance.log.append(LogRecord(key, content))
        state.replay(key, content)
    # What a leader writes before it answers.
    for record in [*state.leftover_tombstones(), *state.missing_id_floor_records()]:
        client.instance.log.append(record)
        state.replay(*record)
    return client


def compacted(client: Client) -> list[tuple[bytes, bytes | None]]:
    """What compaction leaves when tombstones are old: the last value of each key's bytes."""
    last = dict(client.instance.log)
    return [(key, content) for key, content in last.items() if content is not None]


@pytest.fixture
def client() -> Client:
    return started_on((key.encode(), None if content is None else content.encode()) for key, content in LOG)


def test_every_id_and_version_answers(client: Client) -> None:
    expected = {1: CUSTOMER, 2: '"string"', 3: '"bytes"', 4: ORDER, 5: PROTO, 6: '"long"'}
    for schema_id, text in expected.items():
        assert client("GET", f"/schemas/ids/{schema_id}").json["schema"] == text
    assert client("GET", "/schemas/ids/1?subject=:.lab:orders-value").json["schema"] == '"int"'
    assert client("GET", "/schemas/ids/7").json["error_code"] == 40403
    assert client("GET", "/subjects/orders-value/versions").json == [1, 2]
    assert client("GET", "/subjects/gone-value/versions").json["error_code"] == 40401
    assert client("GET", "/subjects/gone-value/versions?deleted=true").json == [1]
    assert client("GET", "/subjects/customers-value/versions/1/referencedby").json == [4]
    assert client("GET", "/contexts").json == [".", ".lab"]
    assert client("GET", "/config").json["compatibilityLevel"] == "FULL"
    assert client("GET", "/mode/proto-value").json == {"mode": "READONLY"}
    assert client("GET", "/subjects/proto-value/versions/1").json["schemaType"] == "PROTOBUF"


def test_it_goes_on_where_the_other_ended(client: Client) -> None:
    assert client.register("orders-value", "string").json["id"] == 2
    assert client.register("new-value", "float").json["id"] == 8
    assert client.register("proto-value", "int").json["error_code"] == 42205


def test_what_is_permanently_deleted_stays_deleted_after_compaction(client: Client) -> None:
    for subject in ("orders-value", "gone-value", "sales-value"):
        if subject != "gone-value":
            assert client("DELETE", f"/subjects/{subject}").status == 200
        assert client("DELETE", f"/subjects/{subject}?permanent=true").status == 200
    again = started_on(compacted(client))
    listed = again("GET", "/subjects?deleted=true").json
    assert listed == [":.lab:orders-value", "customers-value", "proto-value"]
    for schema_id in (2, 3, 4, 6):
        assert again("GET", f"/schemas/ids/{schema_id}").json["error_code"] == 40403
    assert again.instance.state.image() == client.instance.state.image()


def test_the_topic_may_be_given_back(client: Client) -> None:
    """Each value that was there before is there as it was, members that are not known here included."""
    client.register("orders-value", "int")
    written = dict(client.instance.log)
    for key, content in dict(LOG).items():
        assert written[key.encode()] == (None if content is None else content.encode())
    client("DELETE", "/subjects/orders-value/versions/2")
    kept = json.loads(dict(client.instance.log)[new_key("orders-value", 2).encode()] or b"")
    assert (kept["md5Bytes"], kept["ts"], kept["deleted"]) == ("abc", 1700000000000, True)


def test_a_state_has_no_problems_with_any_of_it(client: Client) -> None:
    state: RegistryState = client.instance.state
    assert (state.unreadable_count, state.problems) == (0, [])
