"""The protocol state of one connection, without I/O: numbers requests, matches responses, decodes them.

A broker answers the requests of a connection in order, so a response always belongs to the oldest request in flight;
its correlation id must match, otherwise the stream is out of sync and the connection is unusable. Requests without a
response (Produce with acks=0) get a correlation id but are never in flight.

Nothing here does I/O or reads a clock. The driver, `connection`, writes the frames and passes received bytes:

    frame = core.send(exchange, message)          # registers the exchange as in flight
    for exchange, outcome in core.receive(data):  # outcome: the decoded response, or the error of decoding it
        ...
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from millbeck.client.apis import API_VERSIONS, Call, body_position, call_of, correlation_id_of, request_prefix
from millbeck.client.errors import ProtocolViolation, UnsupportedByBroker
from millbeck.client.frames import FrameReader
from millbeck.client.versions import choose_version
from millbeck.kernel.errors import ApiError, UnsupportedVersion
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.errors import DecodeError, EncodeError

Outcome = Any
"""The result of a request: a decoded response, or an `ApiError`."""

_CORRELATION_ID_MAX: Final = 0x7FFFFFFF
_UNSUPPORTED_VERSION: Final = UnsupportedVersion.code.to_bytes(2, "big")


class InFlightRequest:
    """A request in flight and the callback for its response."""

    __slots__ = ("asked_s", "call", "correlation_id", "deadline_s", "limit_s", "on_reply", "response", "version")

    def __init__(
        self,
        call: Call,
        response: type[Any],
        version: int,
        on_reply: Callable[[Outcome], None],
        deadline_s: float,
        limit_s: float = 0.0,
    ) -> None:
        self.call = call
        self.response = response
        self.version = version
        self.on_reply = on_reply
        """The callback for the result, called exactly once."""
        self.deadline_s = deadline_s
        """The time at which the caller stops waiting."""
        self.limit_s = max(limit_s, deadline_s)
        """The time at which the connection is closed."""
        self.asked_s = 0.0
        self.correlation_id = -1

    def __repr__(self) -> str:
        return f"<{self.call.name} v{self.version} #{self.correlation_id}>"


class ConnectionCore:
    """The protocol state of one connection."""

    __slots__ = ("_client_id", "_correlation_id", "_frames", "in_flight", "ranges")

    def __init__(self, client_id: str | None, *, frame_size_max: int, correlation_id: int = 0) -> None:
        self._client_id = None if client_id is None else client_id.encode()
        self._correlation_id = correlation_id
        self._frames = FrameReader(frame_size_max)
        self.in_flight: deque[InFlightRequest] = deque()
        self.ranges: Mapping[int, tuple[int, int]] = {}
        """The broker's version ranges by API key, once negotiated."""

    def choose_version(
        self, request: type[Any], version_max: int | None = None, version_min: int | None = None
    ) -> tuple[Call, int]:
        """The version to use; raises `UnsupportedByBroker`."""
        call = call_of(request)
        return call, choose_version(call, self.ranges, version_max, version_min)

    def send(self, exchange: InFlightRequest, message: object) -> bytes:
        """The frame to write; registers the exchange as in flight. Raises as `frame` does."""
        frame = self.frame(exchange.call, exchange.version, message)
        exchange.correlation_id = self._correlation_id
        self.in_flight.append(exchange)
        return frame

    def frame(self, call: Call, version: int, message: object) -> bytes:
        """The frame of a request; raises `UnsupportedByBroker` if this version lacks a field that is set."""
        try:
            body = encoder(call.request, version)(message)
        except EncodeError as error:
            raise UnsupportedByBroker(f"{call.name} version {version} lacks a field of the request: {error}") from error
        self._correlation_id = self._correlation_id + 1 & _CORRELATION_ID_MAX
        return request_prefix(call, version, self._correlation_id, self._client_id, len(body)) + body

    def receive(self, data: bytes) -> Iterator[tuple[InFlightRequest, Outcome]]:
        """The exchanges completed by ``data``, in order. Raises `ProtocolViolation` if the stream is out of sync.

        A response that cannot be decoded fails its own exchange only: frame boundaries are intact.
        """
        try:
            frames = self._frames.receive(data)
        except DecodeError as error:
            raise ProtocolViolation(str(error)) from error
        for frame in frames:
            yield self._answer(frame)

    def _answer(self, frame: bytes) -> tuple[InFlightRequest, Outcome]:
        try:
            correlation_id = correlation_id_of(frame)
        except DecodeError as error:
            raise ProtocolViolation(str(error)) from error
        if not self.in_flight:
            raise ProtocolViolation(f"response {correlation_id} without a request in flight")
        exchange = self.in_flight[0]
        if exchange.correlation_id != correlation_id:
            raise ProtocolViolation(f"response {correlation_id}, but {exchange!r} was expected")
        self.in_flight.popleft()
        return exchange, _decode(exchange, frame)

    def abandon(self) -> list[InFlightRequest]:
        """All exchanges in flight, which will not be answered; none is in flight afterwards."""
        abandoned = list(self.in_flight)
        self.in_flight.clear()
        return abandoned


def _decode(exchange: InFlightRequest, frame: bytes) -> Outcome:
    call, version = exchange.call, exchange.version
    try:
        position = body_position(call, version, frame)
        if call.key == API_VERSIONS and frame[position : position + 2] == _UNSUPPORTED_VERSION:
            # A broker that does not support the requested ApiVersions version answers in version 0.
            version = 0
        return decoder(exchange.response, version)(frame, position)[0]
    except DecodeError as error:
        return _unreadable(exchange, error)


def _unreadable(exchange: InFlightRequest, error: DecodeError) -> ApiError:
    violation = ProtocolViolation(f"the response to {exchange!r} cannot be decoded: {error}")
    violation.__cause__ = error
    return violation
