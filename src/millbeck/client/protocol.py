"""One connection without its socket: numbering requests, keeping them in order, reading the answers.

A broker answers the requests of a connection in the order they came, so an answer always belongs to the oldest request
in flight; its correlation id must say the same, or the two sides have lost each other and the connection is useless.
Requests that get no answer (Produce with acks 0) are numbered but never in flight.

Nothing here waits or reads a clock. The driver, `connection`, writes the frames this makes and feeds it what arrives:

    frame = core.send(exchange, message)          # registers the exchange as in flight
    for exchange, outcome in core.receive(data):  # outcome: the decoded response, or the error of reading it
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
"""What an exchange ends with: a decoded response, or an `ApiError`."""

_CORRELATION_ID_MAX: Final = 0x7FFFFFFF
_UNSUPPORTED_VERSION: Final = UnsupportedVersion.code.to_bytes(2, "big")


class Exchange:
    """One request in flight and who waits for its answer."""

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
        """Called exactly once."""
        self.deadline_s = deadline_s
        """How long its caller waits."""
        self.limit_s = max(limit_s, deadline_s)
        """How long the connection may take for it before it is given up."""
        self.asked_s = 0.0
        self.correlation_id = -1

    def __repr__(self) -> str:
        return f"<{self.call.name} v{self.version} #{self.correlation_id}>"


class ConnectionCore:
    """The state of one connection."""

    __slots__ = ("_client_id", "_correlation_id", "_frames", "in_flight", "ranges")

    def __init__(self, client_id: str | None, *, frame_size_max: int, correlation_id: int = 0) -> None:
        self._client_id = None if client_id is None else client_id.encode()
        self._correlation_id = correlation_id
        self._frames = FrameReader(frame_size_max)
        self.in_flight: deque[Exchange] = deque()
        self.ranges: Mapping[int, tuple[int, int]] = {}
        """The broker's version ranges by API key, once they are known."""

    def choose_version(
        self, request: type[Any], version_max: int | None = None, version_min: int | None = None
    ) -> tuple[Call, int]:
        """Raises `UnsupportedByBroker`."""
        call = call_of(request)
        return call, choose_version(call, self.ranges, version_max, version_min)

    def send(self, exchange: Exchange, message: object) -> bytes:
        """The frame to write; the exchange is in flight from here on. Raises as `frame` does."""
        frame = self.frame(exchange.call, exchange.version, message)
        exchange.correlation_id = self._correlation_id
        self.in_flight.append(exchange)
        return frame

    def frame(self, call: Call, version: int, message: object) -> bytes:
        """The frame of a request that nobody answers; raises `UnsupportedByBroker` for what this version lacks."""
        try:
            body = encoder(call.request, version)(message)
        except EncodeError as error:
            raise UnsupportedByBroker(f"{call.name} version {version} cannot say this: {error}") from error
        self._correlation_id = self._correlation_id + 1 & _CORRELATION_ID_MAX
        return request_prefix(call, version, self._correlation_id, self._client_id, len(body)) + body

    def receive(self, data: bytes) -> Iterator[tuple[Exchange, Outcome]]:
        """The exchanges that ``data`` completes, in order. Raises `ProtocolViolation` when the stream is lost.

        An answer that cannot be decoded is the outcome of its exchange alone: the frames around it are intact.
        """
        try:
            frames = self._frames.receive(data)
        except DecodeError as error:
            raise ProtocolViolation(str(error)) from error
        for frame in frames:
            yield self._answer(frame)

    def _answer(self, frame: bytes) -> tuple[Exchange, Outcome]:
        try:
            correlation_id = correlation_id_of(frame)
        except DecodeError as error:
            raise ProtocolViolation(str(error)) from error
        if not self.in_flight:
            raise ProtocolViolation(f"answer {correlation_id} to no request")
        exchange = self.in_flight[0]
        if exchange.correlation_id != correlation_id:
            raise ProtocolViolation(f"answer {correlation_id} where {exchange!r} was next")
        self.in_flight.popleft()
        return exchange, _decode(exchange, frame)

    def abandon(self) -> list[Exchange]:
        """Everything in flight, which will not be answered any more; nothing is afterwards."""
        abandoned = list(self.in_flight)
        self.in_flight.clear()
        return abandoned


def _decode(exchange: Exchange, frame: bytes) -> Outcome:
    call, version = exchange.call, exchange.version
    try:
        position = body_position(call, version, frame)
        if call.key == API_VERSIONS and frame[position : position + 2] == _UNSUPPORTED_VERSION:
            # A broker that does not know the version asked with answers in the oldest one.
            version = 0
        return decoder(exchange.response, version)(frame, position)[0]
    except DecodeError as error:
        return _unreadable(exchange, error)


def _unreadable(exchange: Exchange, error: DecodeError) -> ApiError:
    violation = ProtocolViolation(f"the answer to {exchange!r} cannot be read: {error}")
    violation.__cause__ = error
    return violation
