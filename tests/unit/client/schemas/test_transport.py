"""HTTP to a registry: which instance is asked, with what credentials, and what is said when nobody answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from millbeck.client.schemas import transport
from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.settings import RegistryClientConfig
from millbeck.client.schemas.transport import RegistryRefused, Transport


class _Instance(ThreadingHTTPServer):
    answer: tuple[int, Any] = (200, {})

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Instance

    def do_GET(self) -> None:
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        status, content = self.server.answer
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def instance() -> Iterator[_Instance]:
    running = _Instance()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def to(*urls: str, **settings: str) -> Transport:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Transport(RegistryClientConfig.parse({"schema.registry.url": list(urls), **named}))


def test_paths_and_queries_are_quoted(instance: _Instance) -> None:
    client = to(f"{instance.url}/registry/")
    client.call("GET", ["subjects", ":.lab:a/b"], {"normalize": True, "deleted": False, "key": ["a", "b"]})
    client.close()
    assert instance.seen[0][0] == "/registry/subjects/%3A.lab%3Aa%2Fb?normalize=true&key=a&key=b"


def test_credentials_are_sent_and_never_shown(instance: _Instance) -> None:
    basic = to(instance.url, basic_auth_user_info="ann:secret")
    bearer = to(instance.url, bearer_auth_token="secret")
    for client in (basic, bearer):
        client.call("GET", ["subjects"])
        client.close()
    assert [headers["authorization"] for _, headers in instance.seen] == ["Basic YW5uOnNlY3JldA==", "Bearer secret"]
    assert "secret" not in repr(RegistryClientConfig.parse({"schema.registry.url": "x", "bearer.auth.token": "secret"}))


def test_the_next_instance_is_asked_when_one_does_not_answer(instance: _Instance) -> None:
    client = to("http://127.0.0.1:1", instance.url)
    assert client.call("GET", ["subjects"]) == {}
    client.close()


def test_when_nobody_answers_the_setting_is_named(instance: _Instance) -> None:
    with pytest.raises(SchemaError, match=r"127\.0\.0\.1:1.*check schema\.registry\.url"):
        to("http://127.0.0.1:1").call("GET", ["subjects"])
    instance.answer = (503, {})
    with pytest.raises(SchemaError, match="HTTP 503"):
        to(instance.url).call("GET", ["subjects"])


@pytest.mark.parametrize(
    ("status", "content", "kind", "reason"),
    [
        (404, {"error_code": 40403, "message": "Schema 7 not found"}, UnknownSchema, "Schema 7 not found"),
        (409, {"error_code": 409, "message": "incompatible"}, RegistryRefused, "incompatible"),
        (401, {"message": "no"}, RegistryRefused, r"check basic\.auth\.user\.info"),
        (200, b"<html>", SchemaError, "is this the address of a schema registry"),
        (404, {"message": "Not Found"}, RegistryRefused, "Not Found"),
    ],
)
def test_answers_that_are_errors_are_told_apart(
    instance: _Instance, status: int, content: Any, kind: type[Exception], reason: str
) -> None:
    instance.answer = (status, content)
    client = to(instance.url)
    with pytest.raises(kind, match=reason):
        client.call("GET", ["schemas", "ids", "7"])
    client.close()


def test_an_answer_without_end_is_not_read(instance: _Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ANSWER_BYTES_MAX", 100)
    instance.answer = (200, b" " * 1000)
    with pytest.raises(SchemaError, match="longer than 100 bytes"):
        to(instance.url).call("GET", ["subjects"])
