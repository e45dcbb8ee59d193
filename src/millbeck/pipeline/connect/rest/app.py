"""The ASGI application: HTTP to requests, and decisions to answers.

Needs starlette. Bodies are bounded, and an answer is sent only when the backend has done what it depends on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.rest.answers import NO_BODY, Decision, GroupOffset, Request, RestError, bad_request
from millbeck.pipeline.connect.rest.forwarding import FORWARDED_HEADER, Forwarded, ForwardedRequest
from millbeck.pipeline.connect.rest.routes import Checked, GroupRead, Routes

log = logging.getLogger(__name__)

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_PARAMETERS_MAX: Final = 100
_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class Backend(Protocol):
    """Does what decisions say. Raises `RestError`."""

    async def perform(self, decision: Decision) -> None:
        """Write the records and wait until they are read back."""

    async def problems(self, settings: Mapping[str, str]) -> Iterable[SettingProblem]:
        """What a connector finds wrong with its settings in the other system."""

    async def committed(self, group: str) -> Iterable[GroupOffset]:
        """The committed offsets of a consumer group."""

    def elsewhere(self, decision: Decision) -> str | None:
        """The address of the worker that has to do what a decision says; None for this one."""

    async def forward(self, url: str, request: ForwardedRequest) -> Forwarded:
        """Ask another worker."""

    def metrics(self) -> str:
        """The worker's metrics in Prometheus' format."""


class ConnectApp:
    """The application. ``routes`` is None until the state topics are read."""

    def __init__(self, backend: Backend, routes: Routes | None = None) -> None:
        self._backend = backend
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            decision = await self._decision(HttpRequest(scope, receive))
        except _Answered as answered:
            await answered.response(scope, receive, send)
            return
        except RestError as error:
            decision = error.decision()
        except ClientDisconnect:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            decision = RestError(500, "an unexpected error; the worker's log has it").decision()
        await _response(decision, scope)(scope, receive, send)

    async def _decision(self, http: HttpRequest) -> Decision:
        content = await _content(http)
        body = _parsed(http, content)
        if self.routes is None:
            message = "Worker is still starting up." if http.url.path == "/health" else "the worker is starting"
            raise RestError(503, message)
        if http.url.path == "/metrics" and http.method == "GET":
            raise _Answered(Response(self._backend.metrics(), 200, media_type=_METRICS))
        outcome = self.routes.respond(_request(http, body))
        if isinstance(outcome, GroupRead):
            return outcome.answered(await self._backend.committed(outcome.group))
        if isinstance(outcome, Checked):
            return outcome.answered(await self._backend.problems(outcome.settings))
        if outcome.status < 300:
            url = self._backend.elsewhere(outcome)
            if url is not None:
                await self._forward(url, http, content)
            await self._backend.perform(outcome)
        return outcome

    async def _forward(self, url: str, http: HttpRequest, content: bytes) -> None:
        """Answer with what the worker that has to do it answers, which is raised."""
        if FORWARDED_HEADER in http.headers:
            # Two workers take each other for the one; the group has not settled yet.
            raise RestError(
                409,
                "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
            )
        target = _target(http)
        found = await self._backend.forward(url, ForwardedRequest(http.method, target, content))
        headers = {} if found.location is None else {"location": found.location}
        raise _Answered(Response(found.body or None, found.status, headers, _JSON if found.body else None))


class _Answered(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def _target(http: HttpRequest) -> str:
    path: bytes = http.scope.get("raw_path") or http.scope["path"].encode()
    query: bytes = http.scope["query_string"]
    return (path.partition(b"?")[0] + (b"?" + query if query else b"")).decode("latin-1")


def _request(http: HttpRequest, body: Any) -> Request:
    try:
        found = parse_qs(http.url.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise bad_request(f"more than {_PARAMETERS_MAX} parameters") from None
    path = http.scope.get("raw_path") or http.scope["path"].encode()
    query = {name: tuple(values) for name, values in found.items()}
    return Request(method=http.method, path=path.partition(b"?")[0].decode("latin-1"), query=query, body=body)


async def _content(http: HttpRequest) -> bytes:
    content = bytearray()
    async for part in http.stream():
        content += part
        if len(content) > BODY_BYTES_MAX:
            raise RestError(413, f"the body is longer than {BODY_BYTES_MAX} bytes")
    return bytes(content)


def _parsed(http: HttpRequest, content: bytes) -> Any:
    """The JSON of the body; None when there is none."""
    if http.method not in _WITH_BODY or not content:
        return None
    if http.headers.get("content-type", _JSON).partition(";")[0].strip().lower() != _JSON:
        raise RestError(415, "HTTP 415 Unsupported Media Type")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {str(error)[:200]}") from None


def _response(decision: Decision, scope: Scope) -> Response:
    headers: dict[str, str] = {}
    if decision.location is not None:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        headers["location"] = f"{scope['scheme']}://{host}{decision.location}"
    if decision.body is NO_BODY:
        return Response(None, decision.status, headers)
    return Response(json.dumps(decision.body, separators=(",", ":")), decision.status, headers, _JSON)
