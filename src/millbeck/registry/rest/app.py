"""The ASGI application: routes requests, forwards writes to the leader, and sends responses.

Paths are matched by their undecoded segments, since a subject may have a slash in it. ``/contexts/.lab/subjects/a`` is
``/subjects/:.lab:a``. A request by id without parameters, the most frequent one, is answered before routing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from millbeck.client.schemas.log_records import Json, encode_json
from millbeck.kernel.errors import ApiError
from millbeck.registry.access import EVERYBODY, User
from millbeck.registry.errors import RegistryError, StoreTimeout, UnknownLeader
from millbeck.registry.instance import NotLeader
from millbeck.registry.rest import schemas, settings, subjects
from millbeck.registry.rest.authentication import Guard, Refused
from millbeck.registry.rest.calls import Answer, Call
from millbeck.registry.rest.forwarding import CONTENT_TYPE, FORWARDED_HEADER, OFFSET_HEADER, forward
from millbeck.registry.rest.metrics import Metrics
from millbeck.registry.rest.openapi import openapi
from millbeck.registry.rest.permissions import check_permission
from millbeck.registry.rest.requests import Request, schema_members
from millbeck.registry.roles import Role
from millbeck.registry.service import SchemaService
from millbeck.registry.subjects import DEFAULT_CONTEXT, normal_context

log = logging.getLogger(__name__)

CALLS: Final = (*schemas.CALLS.declared, *subjects.CALLS.declared, *settings.CALLS.declared)
SEEN_SECONDS: Final = 1.0
"""The maximum time for which a read waits for its required offset."""
_HEALTH: Final = "/health"
_START_LOOK_SECONDS: Final = 0.02
_JSON: Final = "application/json"
_ANSWERED: Final = (CONTENT_TYPE, "application/vnd.schemaregistry+json", _JSON)
"""The content types of answers, the preferred one first."""
_ACCEPTED: Final = (*_ANSWERED, "application/octet-stream")
_READING: Final = ("GET", "HEAD")
"""The methods of calls that read; the server leaves out the body of an answer to HEAD."""
_TYPES_MAX: Final = 20
_BY_ID: Final = b"/schemas/ids/"
_ID_DIGITS_MAX: Final = 10
_DISCARDED_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much of a body that is too large is read and dropped, so that its client gets an answer rather than a reset."""


class HttpError(Exception):
    """An error of HTTP itself."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status} {reason}")
        self.status = status
        self.headers = headers


class RegistryApp:
    def __init__(
        self, *, body_bytes_max: int = 4 * 1024 * 1024, forward_timeout_s: float = 30.0, start_timeout_s: float = 0.0
    ) -> None:
        """Requests that arrive before the log is read wait for at most ``start_timeout_s``."""
        self.service: SchemaService | None = None
        """The service; None while the log is being read at start."""
        self.metrics = Metrics(self)
        self.last_request_s = 0.0
        self._body_bytes_max = body_bytes_max
        self._forward_timeout_s = forward_timeout_s
        self._start_timeout_s = start_timeout_s
        self.guard: Guard | None = None
        """Authenticates requests; None if there are no limits on who may do what."""
        self.peer_tls: ssl.SSLContext | None = None
        """The TLS of connections to other instances; None means the default."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.last_request_s = asyncio.get_running_loop().time()
        response = await self._response(scope, receive)
        await response(scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive) -> Response:
        user = EVERYBODY
        if self.guard is not None and scope["path"] != _HEALTH:
            try:
                user = await self.guard.admit(scope)
            except Refused as refused:
                self.metrics.count("refused", refused.status)
                return _error(refused.status, refused.status, str(refused), dict([refused.header]))
        response = self._by_id(scope) if user.may(Role.READ, "") else None
        return response or await self._respond(HttpRequest(scope, receive), user)

    # by id

    def _by_id(self, scope: Scope) -> Response | None:
        """The answer to a plain request for a schema that exists; any other request is routed."""
        path: bytes = scope.get("raw_path") or b""
        if self.service is None or scope["method"] != "GET" or scope["query_string"] or not path.startswith(_BY_ID):
            return None
        number = path[len(_BY_ID) :]
        if not number.isdigit() or len(number) > _ID_DIGITS_MAX:
            return None
        if not all(_is_usual_header(name, value) for name, value in scope["headers"]):
            return None
        version = self.service.state.by_id(DEFAULT_CONTEXT, int(number))
        if version is None:
            return None
        self.metrics.count("GET /schemas/ids/{id}", 200)
        return Response(encode_json(schema_members(version)), media_type=CONTENT_TYPE)

    # any call

    async def _respond(self, http: HttpRequest, user: User) -> Response:
        route = ""
        try:
            if http.method in _READING and (own := self._own(http.url.path)) is not None:
                return own
            call, variables, context = _find(http.method, _path(http))
            route = f"{call.method} {call.path}"
            media_type = _media_type(http.headers.get("accept", ""))
            answer = await self._answer(http, user, call, variables, context)
            response = _response(media_type, answer)
        except HttpError as error:
            response = _error(error.status, error.status, str(error), error.headers)
        except RegistryError as error:
            response = _error(error.status, error.code, error.message)
        except (ApiError, ClientDisconnect) as error:
            response = _error(500, 50001, f"the log does not answer: {error}")
        except Exception:
            log.exception("an unexpected error in %s", route or "routing")
            response = _error(500, 500, "Internal Server Error")
        self.metrics.count(route or "unknown", response.status_code)
        return response

    async def _answer(
        self, http: HttpRequest, user: User, call: Call, variables: dict[str, str], context: str
    ) -> Response | Answer:
        service = await self._started_service()
        raw_body = await self._body(http) if call.body is not None or http.method == "POST" else b""
        await self._wait_for_offset(http, service)
        request = Request(service, variables, http.url.query, raw_body, context, user)
        check_permission(call, request)
        try:
            return await call.handler(request)
        except NotLeader as error:
            if FORWARDED_HEADER in http.headers:
                raise UnknownLeader("the leader has changed; try again") from None
            return await self._forward(http, error, raw_body, service)

    async def _started_service(self) -> SchemaService:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._start_timeout_s
        while self.service is None:
            if loop.time() >= end_s:
                raise StoreTimeout("the registry has not read its log yet; try again")
            await asyncio.sleep(_START_LOOK_SECONDS)
        return self.service

    async def _wait_for_offset(self, http: HttpRequest, service: SchemaService) -> None:
        wanted = http.headers.get(OFFSET_HEADER, "")
        if not wanted.isascii() or not wanted.isdecimal() or len(wanted) > 18:
            return
        if not await service.instance.has_seen(int(wanted), SEEN_SECONDS):
            raise StoreTimeout(f"this instance has not read offset {wanted} yet; try again")

    async def _forward(self, http: HttpRequest, error: NotLeader, body: bytes, service: SchemaService) -> Response:
        target = _path(http) + (f"?{http.url.query}" if http.url.query else "")
        found = await forward(
            error.leader,
            http.method,
            target,
            body,
            authorization=http.headers.get("authorization", ""),
            tls=self.peer_tls,
            timeout_s=self._forward_timeout_s,
        )
        headers = {}
        if found.offset is not None:
            headers[OFFSET_HEADER] = str(found.offset)
            # A client that has written through this instance must read its own write here.
            await service.instance.has_seen(found.offset, SEEN_SECONDS)
        return Response(found.body, status_code=found.status, media_type=CONTENT_TYPE, headers=headers)

    async def _body(self, http: HttpRequest) -> bytes:
        content_type = http.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type and content_type not in _ACCEPTED:
            raise HttpError(415, f"Unsupported Media Type: send Content-Type: {CONTENT_TYPE}")
        body = bytearray()
        size = 0
        async for chunk in http.stream():
            size += len(chunk)
            if size <= self._body_bytes_max:
                body += chunk
            elif size > self._body_bytes_max + _DISCARDED_BYTES_MAX:
                break
        if size > self._body_bytes_max:
            raise HttpError(413, f"Request Entity Too Large: the limit is {self._body_bytes_max} bytes")
        return bytes(body)

    # paths outside of the registry's API

    def _own(self, path: str) -> Response | None:
        match path:
            case "/openapi.json":
                return Response(json.dumps(openapi(CALLS)), media_type=_JSON)
            case "/metrics":
                return Response(self.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
            case _ if path == _HEALTH:
                return self._health()
        return None

    def _health(self) -> Response:
        if self.service is None:
            return Response('{"status":"starting"}', status_code=503, media_type=_JSON)
        instance = self.service.instance
        members: Json = {
            "status": "ok" if instance.failure is None else "failed",
            "leader": None if instance.leader is None else instance.leader.url,
            "is_leading": instance.is_leading,
            "offset": instance.offset,
        }
        return Response(encode_json(members), status_code=200 if instance.failure is None else 503, media_type=_JSON)


def _path(http: HttpRequest) -> str:
    raw = http.scope.get("raw_path")
    return raw.decode("latin-1") if raw else quote(http.url.path)


def _find(method: str, path: str, calls: Iterable[Call] = CALLS) -> tuple[Call, dict[str, str], str]:
    """The call for a path, the path's variables, and its context prefix."""
    segments = [segment for segment in path.split("/") if segment]
    if segments[:1] == ["associations"]:
        raise HttpError(404, "Not Found: this registry does not support associations of subjects")
    context = DEFAULT_CONTEXT
    if segments[:1] == ["contexts"] and len(segments) > 2:
        context, segments = normal_context(unquote(segments[1])), segments[2:]
    found = [call for call in calls if _matches(call, segments)]
    for call in found:
        if call.method == ("GET" if method in _READING else method):
            pairs = zip(call.segments, segments, strict=True)
            return call, {name[1:-1]: unquote(each) for name, each in pairs if name.startswith("{")}, context
    if found:
        raise HttpError(405, "Method Not Allowed", {"allow": ", ".join(call.method for call in found)})
    raise HttpError(404, "Not Found")


def _matches(call: Call, segments: list[str]) -> bool:
    if len(call.segments) != len(segments):
        return False
    return all(name.startswith("{") or name == each for name, each in zip(call.segments, segments, strict=True))


def _is_usual_header(name: bytes, value: bytes) -> bool:
    """Whether a request with this header gets the same answer as one without headers."""
    if name == b"accept":
        return value.lstrip().startswith((CONTENT_TYPE.encode(), b"*/*"))
    return name != OFFSET_HEADER.encode()


def _media_type(accept: str) -> str:
    """The content type of the answer to a client that accepts these types; raises `HttpError` if there is none."""
    ranked: list[tuple[float, int, str]] = []
    for position, item in enumerate(accept.split(",")[:_TYPES_MAX]):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = next((_weight(each[2:]) for each in parameters if each.startswith("q=")), 1.0)
        kinds = _ANSWERED if name in ("", "*", "*/*", "application/*") else (name,)
        ranked += [(-weight, position, each) for each in kinds[:1] if each in _ANSWERED and weight > 0]
    if not ranked:
        raise HttpError(406, f"Not Acceptable: accept {CONTENT_TYPE}")
    return min(ranked)[2]


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _response(media_type: str, answer: Response | Answer) -> Response:
    if isinstance(answer, Response):
        return answer
    headers = {} if answer.offset is None else {OFFSET_HEADER: str(answer.offset)}
    if answer.text is not None:
        body = answer.text.encode("utf-8", "replace")
        return Response(body, status_code=200 if body else 204, media_type=media_type, headers=headers)
    return Response(encode_json(answer.content), media_type=media_type, headers=headers)


def _error(status: int, code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    body = encode_json({"error_code": code, "message": message})
    return Response(body, status_code=status, media_type=CONTENT_TYPE, headers=headers)
