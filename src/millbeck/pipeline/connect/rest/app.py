"""The ASGI application: HTTP to requests, and decisions to answers.

Needs starlette. Bodies are bounded, and an answer is sent only when the backend has done what it depends on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from millbeck.pipeline.connect.rest.answers import NO_BODY, Decision, GroupOffset, Request, RestError, bad_request
from millbeck.pipeline.connect.rest.routes import GroupRead, Routes

log = logging.getLogger(__name__)

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_JSON: Final = "application/json"
_PARAMETERS_MAX: Final = 100
_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class Backend(Protocol):
    """Does what decisions say. Raises `RestError`."""

    async def perform(self, decision: Decision) -> None:
        """Write the records and wait until they are read back."""

    async def committed(self, group: str) -> Iterable[GroupOffset]:
        """The committed offsets of a consumer group."""


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
        except RestError as error:
            decision = error.decision()
        except ClientDisconnect:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            decision = RestError(500, "an unexpected error; the worker's log has it").decision()
        await _response(decision, scope)(scope, receive, send)

    async def _decision(self, http: HttpRequest) -> Decision:
        body = await _body(http)
        if self.routes is None:
            message = "Worker is still starting up." if http.url.path == "/health" else "the worker is starting"
            raise RestError(503, message)
        outcome = self.routes.respond(_request(http, body))
        if isinstance(outcome, GroupRead):
            return outcome.answered(await self._backend.committed(outcome.group))
        if outcome.status < 300:
            await self._backend.perform(outcome)
        return outcome


def _request(http: HttpRequest, body: Any) -> Request:
    try:
        found = parse_qs(http.url.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise bad_request(f"more than {_PARAMETERS_MAX} parameters") from None
    path = http.scope.get("raw_path") or http.scope["path"].encode()
    query = {name: tuple(values) for name, values in found.items()}
    return Request(method=http.method, path=path.partition(b"?")[0].decode("latin-1"), query=query, body=body)


async def _body(http: HttpRequest) -> Any:
    """The JSON of the body; None when there is none."""
    content = bytearray()
    async for part in http.stream():
        content += part
        if len(content) > BODY_BYTES_MAX:
            raise RestError(413, f"the body is longer than {BODY_BYTES_MAX} bytes")
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
