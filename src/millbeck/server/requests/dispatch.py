"""Dispatch requests to their handlers and turn raised errors into error replies: the only place that does either.

A handler is declared beside its code with `handles` (a function of the decoded request, plain or async, that returns
the response) or `handles_frames` (produce and fetch, which decode the frame themselves). `routes` lists all handlers;
ApiVersions, the protocol page and the tests read that list.

- A plain handler returns its response, or None when it completes its `Call` later. If later requests of the connection
  must wait for that, it calls `Call.hold`.
- No further request of the connection is handled until an async handler has returned.
- An `ApiError` becomes the API's error reply; any other exception is logged, counted and answered UNKNOWN_SERVER_ERROR.
  Malformed requests and unknown APIs or versions close the connection: there is no reply for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from millbeck.kernel.errors import ApiError
from millbeck.server.network.call import Call
from millbeck.server.network.connection import CloseConnection, Connection
from millbeck.server.network.request_metrics import RequestStatistics
from millbeck.server.network.route import API_VERSIONS_KEY, Handler, Route
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.codec import DecodeError
from millbeck.wire.framing import read_request_header

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


class Dispatcher:
    def __init__(
        self,
        broker: Broker,
        routes: Sequence[Route],
        statistics: Callable[[int, str], RequestStatistics],
        fallback: Callable[[], Any],
        forwarded: frozenset[int] = frozenset(),
    ) -> None:
        """``fallback`` builds the version 0 response to an ApiVersions request that is too new.

        ``forwarded`` are the APIs that only the active controller serves; brokers forward them.
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
        """Handle one request of a connection; raises `CloseConnection` when there is no reply for it."""
        try:
            header = read_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"bad request header: {error}") from None
        handler = self.handlers.get(header.api_key)
        if handler is None:
            raise CloseConnection(f"API key {header.api_key} is not supported on this listener")
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
                    f"{handler.name} version {version} is not supported (supported: {handler.min_version} to "
                    f"{handler.max_version})"
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
        quotas = self._broker.quotas
        began_at = 0.0 if quotas is None else connection.now()
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
        if quotas is not None:
            quotas.handled(call, connection.now() - began_at)

    def _handle_message(self, call: Call, frame: memoryview, position: int) -> None:
        handler = call.handler
        decode = handler.decoders.get(call.version)
        if decode is None:
            decode = handler.decoders[call.version] = codec.decoder(handler.request, call.version)
        # Bytes after the request are ignored, as in Kafka: librdkafka sends some (docs/adr/0004).
        request, _ = decode(frame, position)
        call.request = request
        if handler.check_client is not None:
            handler.check_client(call)
        forwarder = self._broker.forwarder if handler.is_forwarded else None
        if forwarder is not None and forwarder.takes(request):
            call.hold()
            self._broker.spawn(forwarder.forward(call, bytes(frame)))
            return
        answer = handler.run(call, request)
        if inspect.isawaitable(answer):
            call.hold()
            finish = self._finish(call, answer) if forwarder is None else forwarder.finish(call, answer, bytes(frame))
            self._broker.spawn(finish)
        elif answer is not None:
            call.reply(answer)

    async def _finish(self, call: Call, answer: Awaitable[Any]) -> None:
        try:
            response = await answer
            if response is not None:
                call.reply(response)
        except ApiError as error:
            call.fail(error)
        except Exception as error:
            call.fail_unexpectedly(error)
