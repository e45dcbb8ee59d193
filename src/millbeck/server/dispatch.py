"""From a frame to its handler, and from a raised error to its reply: the only place that translates either.

A handler is declared beside its code with `handles` (a function of the decoded request, plain or async, that returns
the response) or `handles_frames` (produce and fetch, which read the frame themselves). ``handlers/__init__.py`` lists
them all; ApiVersions, the protocol page and the tests read that list.

- A plain handler returns its response, or None when it will answer its `Call` later; it holds the call if it must.
- An async handler holds the connection until it returns.
- An `ApiError` becomes the API's error reply; any other exception is logged, counted and answered
  UNKNOWN_SERVER_ERROR. Bytes that do not decode, an unknown API or version end the connection: no reply fits them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from millbeck.kernel.errors import ApiError, NotController
from millbeck.server.call import Call
from millbeck.server.connection import CloseConnection, Connection
from millbeck.server.request_metrics import RequestTimes
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.codec import DecodeError
from millbeck.wire.framing import read_request_header

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

API_VERSIONS_KEY: Final = 18
TIMED_EVERY: Final = 16
"""Of how many produce and fetch requests one has the times of its stages taken."""

ErrorReply = Callable[[Any, int, ApiError], Any]
"""``(request or None, version, error) -> response``; None when the API cannot say it."""


class Route:
    """A handler as its module declares it."""

    __slots__ = ("advertised_min", "api_key", "error_reply", "max_version", "min_version", "reads_frames", "run")

    def __init__(
        self,
        api_key: int,
        run: Callable[..., Any],
        *,
        reads_frames: bool,
        error_reply: ErrorReply,
        max_version: int | None,
        advertised_min: int | None,
    ) -> None:
        api = APIS[api_key]
        self.api_key = api_key
        self.run = run
        self.reads_frames = reads_frames
        self.error_reply = error_reply
        self.min_version = api.min_version
        self.max_version = api.max_version if max_version is None else max_version
        self.advertised_min = self.min_version if advertised_min is None else advertised_min

    def with_unstable_versions(self) -> Route:
        """The same with every version that is declared."""
        return Route(
            self.api_key,
            self.run,
            reads_frames=self.reads_frames,
            error_reply=self.error_reply,
            max_version=None,
            advertised_min=self.advertised_min,
        )


def top_level_error(response: type) -> ErrorReply:
    """The error reply of an API whose response has ``error_code`` (and perhaps ``error_message``) at the top."""

    def reply(request: Any, version: int, error: ApiError) -> Any:
        answer = response()
        answer.error_code = error.code
        if hasattr(answer, "error_message"):
            answer.error_message = str(error) or None
        return answer

    return reply


def handles(
    api_key: int, *, error_reply: ErrorReply | None = None, max_version: int | None = None
) -> Callable[[Callable[[Call, Any], Any]], Route]:
    """Declare a handler of decoded requests: ``(call, request) -> response``, plain or async."""

    def declare(run: Callable[[Call, Any], Any]) -> Route:
        return Route(
            api_key,
            run,
            reads_frames=False,
            error_reply=error_reply or top_level_error(APIS[api_key].response),
            max_version=max_version,
            advertised_min=None,
        )

    return declare


def handles_frames(
    api_key: int, *, error_reply: ErrorReply, advertised_min: int | None = None
) -> Callable[[Callable[[Call, memoryview, int], None]], Route]:
    """Declare a handler that decodes its own frame from a position on and answers the call itself."""

    def declare(run: Callable[[Call, memoryview, int], None]) -> Route:
        return Route(
            api_key, run, reads_frames=True, error_reply=error_reply, max_version=None, advertised_min=advertised_min
        )

    return declare


class Statistics(Protocol):
    def finished(self, seconds: float) -> None: ...

    def failed(self, code: int) -> None: ...

    def timed(self, received_at: float, started_at: float, weight: int) -> RequestTimes: ...


class Handler:
    """A route in one node, with its statistics and its decoders at hand."""

    __slots__ = (
        "api_key",
        "decoders",
        "error_reply",
        "is_forwarded",
        "max_version",
        "min_version",
        "name",
        "reads_frames",
        "request",
        "response",
        "run",
        "statistics",
        "timed_every",
        "until_timed",
    )

    def __init__(self, route: Route, statistics: Statistics, *, is_forwarded: bool) -> None:
        api = APIS[route.api_key]
        self.is_forwarded = is_forwarded
        self.api_key = route.api_key
        self.name = api.name
        self.request = api.request
        self.response = api.response
        self.run = route.run
        self.reads_frames = route.reads_frames
        self.error_reply = route.error_reply
        self.min_version = route.min_version
        self.max_version = route.max_version
        self.statistics = statistics
        # Of the two that come by the hundred thousand a second, some stand for all.
        self.timed_every = TIMED_EVERY if route.reads_frames else 1
        self.until_timed = 0
        self.decoders: dict[int, Callable[..., tuple[Any, int]]] = {}


class Dispatcher:
    def __init__(
        self,
        broker: Broker,
        routes: Sequence[Route],
        statistics: Callable[[int, str], Statistics],
        fallback: Callable[[], Any],
        forwarded: frozenset[int] = frozenset(),
    ) -> None:
        """``fallback`` makes the version 0 answer to an ApiVersions request that is too new.

        ``forwarded`` are the APIs that the active controller serves, wherever the client asks for them.
        """
        self._broker = broker
        self._fallback = fallback
        self.handlers = {
            route.api_key: Handler(
                route,
                statistics(route.api_key, APIS[route.api_key].name),
                is_forwarded=route.api_key in forwarded,
            )
            for route in routes
        }

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Handle one request of a connection; raises `CloseConnection` for what has no reply."""
        try:
            header = read_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"bad request header: {error}") from None
        handler = self.handlers.get(header.api_key)
        if handler is None:
            raise CloseConnection(f"API key {header.api_key} is not served here")
        version = header.api_version
        call = Call(
            self._broker,
            connection,
            handler,
            version,
            header.correlation_id,
            header.client_id,
            connection.active_at,
        )
        if not handler.min_version <= version <= handler.max_version:
            if header.api_key != API_VERSIONS_KEY:
                raise CloseConnection(
                    f"{handler.name} version {version} is not served "
                    f"(versions {handler.min_version} to {handler.max_version} are)"
                )
            call.version = 0
            connection.enqueue(call)
            call.reply(self._fallback())
            return
        connection.enqueue(call)
        if handler.until_timed:
            handler.until_timed -= 1
        else:
            handler.until_timed = handler.timed_every - 1
            call.times = handler.statistics.timed(call.received_at, connection.now(), handler.timed_every)
        try:
            if handler.reads_frames:
                handler.run(call, frame, header.body_position)
            else:
                self._handle_message(call, frame, header.body_position)
        except DecodeError as error:
            raise CloseConnection(f"malformed {handler.name} version {version}: {error}") from None
        except ApiError as error:
            call.fail(error)
        except CloseConnection:
            raise
        except Exception as error:
            call.fail_unexpectedly(error)
        if call.times is not None:
            call.times.handled(connection.now())

    def _handle_message(self, call: Call, frame: memoryview, position: int) -> None:
        handler = call.handler
        decode = handler.decoders.get(call.version)
        if decode is None:
            decode = handler.decoders[call.version] = codec.decoder(handler.request, call.version)
        # What follows the request is not looked at, as in Kafka: librdkafka sends such bytes (docs/adr/0004).
        request, _ = decode(frame, position)
        call.request = request
        kept = bytes(frame) if handler.is_forwarded else None
        if kept is not None and self._broker.forwarder.is_needed:
            call.hold()
            self._broker.spawn(self._broker.forwarder.forward(call, kept))
            return
        answer = handler.run(call, request)
        if inspect.isawaitable(answer):
            call.hold()
            self._broker.spawn(self._finish(call, answer, kept))
        elif answer is not None:
            call.reply(answer)

    async def _finish(self, call: Call, answer: Awaitable[Any], kept: bytes | None) -> None:
        try:
            response = await answer
            if response is not None:
                call.reply(response)
        except NotController as error:
            # Another node has become the active controller while we were at it.
            if kept is None:
                call.fail(error)
            else:
                await self._broker.forwarder.forward(call, kept)
        except ApiError as error:
            call.fail(error)
        except Exception as error:
            call.fail_unexpectedly(error)
