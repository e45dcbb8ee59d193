"""The ASGI application: bodies, types, answers, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from millbeck.pipeline.connect.rest.answers import Decision
from millbeck.pipeline.connect.rest.app import BODY_BYTES_MAX, ConnectApp
from millbeck.pipeline.connect.rest.forwarding import Forwarded, ForwardedRequest
from tests.unit.pipeline.connect.rest.world import World

SINK = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}


class Answered:
    def __init__(self, messages: list[dict[str, Any]]) -> None:
        start, *parts = messages
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.content = b"".join(part.get("body", b"") for part in parts)

    @property
    def json(self) -> Any:
        return json.loads(self.content)


def ask(
    app: ConnectApp,
    method: str,
    target: str,
    content: bytes | None = None,
    content_type: str | None = "application/json",
) -> Answered:
    path, _, query = target.partition("?")
    headers = [(b"host", b"worker:8083")]
    if content is not None and content_type is not None:
        headers.append((b"content-type", content_type.encode()))
    scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "server": ("worker", 8083),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content or b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return Answered(sent)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def app(world: World) -> ConnectApp:
    return ConnectApp(world, world.routes)


def test_a_connector_is_created_and_found_where_the_answer_says(app: ConnectApp) -> None:
    body = json.dumps({"name": "a/b", "config": SINK}).encode()
    created = ask(app, "POST", "/connectors", body)
    assert (created.status, created.headers["content-type"]) == (201, "application/json")
    assert created.headers["location"] == "http://worker:8083/connectors/a/b"
    assert ask(app, "GET", "/connectors/a%2Fb").json["config"]["topics"] == "lines"
    paused = ask(app, "PUT", "/connectors/a%2Fb/pause")
    assert (paused.status, paused.content, "content-type" in paused.headers) == (202, b"", False)
    listed = ask(app, "GET", "/connectors?expand=status&expand=info").json
    assert listed["a/b"]["status"]["connector"]["state"] == "PAUSED"
    assert listed["a/b"]["info"]["type"] == "sink"


def test_offsets_of_a_group_are_asked_of_the_backend(app: ConnectApp, world: World) -> None:
    ask(app, "POST", "/connectors", json.dumps({"name": "s", "config": SINK}).encode())
    world.groups["connect-s"] = {("lines", 0): 7}
    assert ask(app, "GET", "/connectors/s/offsets").json["offsets"][0]["offset"] == {"kafka_offset": 7}


BAD = {
    "not JSON": (b"{", "application/json", 400, "the body is not JSON"),
    "not UTF-8": (b'"\xff"', "application/json", 400, "the body is not JSON"),
    "deep": (b"[" * 100_000, "application/json", 400, "the body is not JSON"),
    "a form": (b"name=a", "application/x-www-form-urlencoded", 415, "HTTP 415 Unsupported Media Type"),
    "too long": (b" " * (BODY_BYTES_MAX + 1), "application/json", 413, "longer than"),
}


@pytest.mark.parametrize(("content", "kind", "status", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_body_is_refused(app: ConnectApp, content: bytes, kind: str, status: int, message: str) -> None:
    answered = ask(app, "POST", "/connectors", content, kind)
    assert answered.status == status
    assert answered.json["error_code"] == status
    assert message in answered.json["message"]


def test_json_may_be_sent_with_a_character_set_and_without_a_type(app: ConnectApp) -> None:
    body = json.dumps({"name": "s", "config": SINK}).encode()
    assert ask(app, "POST", "/connectors", body, "application/json; charset=utf-8").status == 201
    assert ask(app, "DELETE", "/connectors/s").status == 204
    assert ask(app, "POST", "/connectors", body, None).status == 201


def test_too_many_parameters_are_refused(app: ConnectApp) -> None:
    assert ask(app, "GET", "/connectors?" + "&".join(f"a{number}=1" for number in range(200))).status == 400


def test_nothing_is_answered_before_the_state_is_read(world: World) -> None:
    starting = ConnectApp(world)
    assert ask(starting, "GET", "/health").json == {"error_code": 503, "message": "Worker is still starting up."}
    assert ask(starting, "GET", "/connectors").status == 503


def test_what_the_backend_refuses_is_the_answer(app: ConnectApp) -> None:
    stopped = {"name": "s", "config": SINK, "initial_state": "STOPPED"}
    ask(app, "POST", "/connectors", json.dumps(stopped).encode())
    change = {"partition": {"kafka_topic": "unwritable", "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
    answered = ask(app, "PATCH", "/connectors/s/offsets", json.dumps({"offsets": [change]}).encode())
    assert answered.json == {"error_code": 500, "message": "brokers refuse the offsets"}


def test_an_unexpected_error_shows_nothing_of_itself(world: World) -> None:
    class Broken(World):
        async def perform(self, decision: Decision) -> None:
            raise ValueError("password=secret")

    answered = ask(
        ConnectApp(Broken(), world.routes), "POST", "/connectors", json.dumps({"name": "s", "config": SINK}).encode()
    )
    assert answered.status == 500
    assert b"secret" not in answered.content


def test_what_another_worker_has_to_do_is_sent_on_with_its_answer(world: World) -> None:
    asked: list[tuple[str, ForwardedRequest]] = []

    class Follower(World):
        def elsewhere(self, decision: Decision) -> str | None:
            return "http://leader:8083/" if decision.configs else None

        async def forward(self, url: str, request: ForwardedRequest) -> Forwarded:
            asked.append((url, request))
            return Forwarded(201, b'{"name":"s"}', "/connectors/s")

    app = ConnectApp(Follower(), world.routes)
    content = json.dumps({"name": "s", "config": SINK}).encode()
    answered = ask(app, "POST", "/connectors?expand=a%20b", content)
    assert (answered.status, answered.json) == (201, {"name": "s"})
    assert asked == [("http://leader:8083/", ForwardedRequest("POST", "/connectors?expand=a%20b", content))]
    assert ask(app, "GET", "/connectors").status == 200
    assert not world.cluster.configs.connectors


def test_what_the_connector_finds_is_an_error_at_its_key(app: ConnectApp) -> None:
    target = "/connector-plugins/FileStreamSink/config/validate"
    content = json.dumps({"name": "s", **SINK, "file": "/nowhere/f"}).encode()
    answered = ask(app, "PUT", target, content)
    assert answered.json["error_count"] == 1
    (found,) = [each["value"] for each in answered.json["configs"] if each["value"]["name"] == "file"]
    assert found["errors"] == [
        "Invalid value /nowhere/f for configuration file: there is no directory /nowhere: make it"
    ]
    # What is wrong already is answered without asking it.
    content = json.dumps({"name": "s", **SINK, "file": "/nowhere/f", "tasks.max": "0"}).encode()
    assert "nowhere:" not in str(ask(app, "PUT", target, content).json)
