"""The HTTP sink before a service of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors.web.sink import HttpSink
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import BYTES_SCHEMA, STRING_SCHEMA
from tests.unit.pipeline.connect.connectors.listed_records import made, sink_record, written


class Service:
    """Notes requests, and answers with the statuses that it is told, then with 200."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.refuses = b"\0"
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                service.requests.append((self.command, self.path, dict(self.headers), body))
                status = service.answers.pop(0) if service.answers else 200
                status = 422 if service.refuses in body else status
                self.send_response(status)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"text")

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()


def sink(url: str, **settings: str) -> HttpSink:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    found: HttpSink = made(HttpSink, {"http.api.url": url} | given)
    return found


def record(offset: int, value: Any = None, **other: Any) -> SinkRecord:
    return sink_record(offset, None, {"id": offset} if value is None else value, **other)


def test_each_record_is_a_request_with_a_key_of_its_own(service: Service) -> None:
    writer = sink(service.url + "/${topic}/${key}?x=1", headers="X-Shop: a:b|X-Two:2", request_method="put")
    written(writer, [record(5, key=(STRING_SCHEMA, "a/b")), record(6)])
    writer.close()
    assert [(method, path, body) for method, path, _, body in service.requests] == [
        ("PUT", "/events/orders/a%2Fb?x=1", b'{"id":5}'),
        ("PUT", "/events/orders/?x=1", b'{"id":6}'),
    ]
    headers = service.requests[0][2]
    assert (headers["Idempotency-Key"], headers["X-Shop"], headers["X-Two"]) == ("orders-0-5", "a:b", "2")
    assert headers["Content-Type"] == "application/json"


def test_batches_are_of_one_partition_and_repeat_their_key(service: Service) -> None:
    records = [record(n) for n in range(5)] + [record(0, partition=1)]
    for _ in range(2):
        written(sink(service.url, batch_max_size="2"), records)
    seen = [(headers["Idempotency-Key"], json.loads(body)) for _, _, headers, body in service.requests]
    assert seen[:4] == [
        ("orders-0-0-1", [{"id": 0}, {"id": 1}]),
        ("orders-0-2-3", [{"id": 2}, {"id": 3}]),
        ("orders-0-4", [{"id": 4}]),
        ("orders-1-0", [{"id": 0}]),
    ]
    assert seen[4:] == seen[:4]


def test_other_forms_of_batches(service: Service) -> None:
    lines = {"batch_max_size": "3", "batch_json_as_array": "false", "batch_separator": ";", "batch_prefix": "<"}
    written(sink(service.url, **lines), [record(0), record(1)])
    texts = [sink_record(0, STRING_SCHEMA, "naïve"), sink_record(1, BYTES_SCHEMA, b"\x00\xff")]
    written(sink(service.url, request_body_format="string", idempotency_key_header=""), texts)
    assert [body for _, _, _, body in service.requests] == [b'<{"id":0};{"id":1}', "naïve".encode(), b"\x00\xff"]
    assert "Idempotency-Key" not in service.requests[1][2]


def test_what_the_service_refuses_is_found_in_its_batch(service: Service) -> None:
    service.refuses = b'"id":2'
    listed = written(sink(service.url, batch_max_size="10"), [record(n) for n in range(4)])
    assert [(offset, "422: text" in text) for offset, text in listed.rejected] == [(2, True)]
    assert [body for _, _, _, body in service.requests[1:]] == [b'[{"id":%d}]' % n for n in range(4)]
    with pytest.raises(InvalidValue, match="answered 422"):
        written(sink(service.url), [record(2)], tolerates=False)


@pytest.mark.parametrize(
    ("status", "kind"), [(503, RetriableError), (429, RetriableError), (401, ConnectError), (302, ConnectError)]
)
def test_an_outage_is_retried_and_a_refusal_lasts(service: Service, status: int, kind: type[Exception]) -> None:
    service.answers = [200, status]
    with pytest.raises(ConnectError, match=str(status)) as caught:
        written(sink(service.url), [record(0), record(1), record(2)])
    assert type(caught.value) is kind
    assert len(service.requests) == 2


def test_nobody_answers(service: Service) -> None:
    with pytest.raises(RetriableError, match="does not answer"):
        written(sink("http://127.0.0.1:1/"), [record(0)])


def test_null_values(service: Service) -> None:
    null = sink_record(1, None, None, key=(STRING_SCHEMA, "k"))
    written(sink(service.url), [record(0), null])
    assert len(service.requests) == 1
    written(sink(service.url + "/${key}", behavior_on_null_values="delete"), [record(0), null, record(2)])
    assert [(method, path) for method, path, _, _ in service.requests[1:]] == [
        ("POST", "/events/"), ("DELETE", "/events/k"), ("POST", "/events/")]  # fmt: skip
    assert written(sink(service.url, behavior_on_null_values="fail"), [null]).rejected


def test_credentials(service: Service) -> None:
    written(sink(service.url, auth_type="basic", connection_user="u", connection_password="p"), [record(0)])
    written(sink(service.url, auth_type="BEARER", bearer_token="t"), [record(0)])
    assert [headers["Authorization"] for _, _, headers, _ in service.requests] == ["Basic dTpw", "Bearer t"]


def test_mistakes_are_found_at_their_settings() -> None:
    settings: dict[str, str | None] = {
        "name": "n",
        "connector.class": "HttpSink",
        "topics": "t",
        "http.api.url": "ftp://x",
        "retry.on.status.codes": "many",
        "headers": "no colon",
    }
    found = validated(settings)
    for name in ("http.api.url", "retry.on.status.codes", "headers"):
        assert found.entry(name).value.errors, name
