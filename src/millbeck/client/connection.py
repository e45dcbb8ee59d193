"""One connection to one broker: `protocol.ConnectionCore` on a socket.

    connection = await Connection.open(environment.network, Address("127.0.0.1", 9092), ConnectionSettings())
    response = await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=30)
    connection.submit(FetchRequest(...), FetchResponse, on_reply, timeout_s=30)     # no task, no future
    connection.close()

Requests are written at once and answered in order. At most ``in_flight_max`` are unanswered: `request` waits for room,
`submit` expects the caller to have looked at `has_room`. A caller that stops waiting, because its time is up or it was
cancelled, leaves its request in flight, and the answer is dropped. A request that is not answered within its timeout,
and at least within ``patience_s``, ends the whole connection, since everything behind it waits as well; so does
anything that is not the answer expected. However a connection ends, every exchange ends with it, and `closed` carries
the reason.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from millbeck.client.addresses import Address
from millbeck.client.apis import call_of
from millbeck.client.errors import ConnectFailed, ConnectionClosed, Disconnected, ProtocolViolation, RequestTimeout
from millbeck.client.protocol import ConnectionCore, Exchange, Outcome
from millbeck.client.versions import Negotiation, NodeVersions, identification
from millbeck.kernel.environment import Network
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.api_versions import ApiVersionsResponse

if TYPE_CHECKING:
    import ssl

R = TypeVar("R")

OnReply = Callable[[Outcome], None]
"""Gets the response, or the `ApiError` that took its place."""

FRAME_SIZE_MAX: Final = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    client_id: str | None = None
    in_flight_max: int = 5
    frame_size_max: int = FRAME_SIZE_MAX
    connect_timeout_s: float = 10.0
    patience_s: float = 0.0
    """How long a broker may take for a request, however soon its caller gives up."""
    tls: ssl.SSLContext | None = None


class Connection(asyncio.Protocol):
    """Use `open`; when it returns, versions are negotiated."""

    def __init__(self, address: Address, settings: ConnectionSettings) -> None:
        self.address = address
        self.settings = settings
        self.versions: NodeVersions | None = None
        self.throttled_until_s = 0.0
        """Loop time before which the broker asked not to be sent more."""
        self.last_used_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._core = ConnectionCore(settings.client_id, frame_size_max=settings.frame_size_max)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._reason: ApiError | None = None
        self._on_closed: list[Callable[[ApiError], None]] = []
        self._is_writable = True
        self.on_writable: Callable[[], None] | None = None
        """Called when the socket takes data again after it had not."""

    @staticmethod
    async def open(network: Network, address: Address, settings: ConnectionSettings) -> Connection:
        """Connect and negotiate; raises `ConnectFailed`, or what the broker answered."""
        connection: Connection | None = None

        def make() -> Connection:
            nonlocal connection
            connection = Connection(address, settings)
            return connection

        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                await network.connect(make, host=address.host, port=address.port, tls=settings.tls)
                assert connection is not None
                await connection._negotiate()
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, TimeoutError):
                timeout_ms = round(settings.connect_timeout_s * 1000)
                raise ConnectFailed(f"no connection to {address} within {timeout_ms} ms") from error
            if isinstance(error, OSError):
                raise ConnectFailed(f"no connection to {address}: {_reason_of(error, settings)}") from error
            if isinstance(error, Disconnected):
                hint = "" if settings.tls is not None else "; if it wants TLS, set security.protocol=SSL"
                raise ConnectFailed(f"{address} ended the connection before it said its versions{hint}") from error
            raise
        return connection

    async def _negotiate(self) -> None:
        negotiation = Negotiation()
        while negotiation.result is None:
            request = identification()
            reply: asyncio.Future[ApiVersionsResponse] = self._loop.create_future()
            exchange = Exchange(
                call_of(type(request)),
                ApiVersionsResponse,
                negotiation.version,
                _settling(reply),
                self._loop.time() + 1e9,
            )
            self._write(self._core.send(exchange, request))
            negotiation.step(await reply)
        self.versions = negotiation.result
        self._core.ranges = self.versions.ranges

    # what callers ask

    @property
    def is_open(self) -> bool:
        return self._reason is None

    @property
    def closed(self) -> ApiError | None:
        """Why it is closed; None while it is open."""
        return self._reason

    @property
    def in_flight_count(self) -> int:
        return len(self._core.in_flight)

    def oldest_question(self) -> tuple[str, float] | None:
        """Name and time of the request that has been waiting for its answer longest, in the loop's time."""
        if not self._core.in_flight:
            return None
        exchange = self._core.in_flight[0]
        return exchange.call.name, exchange.asked_s

    @property
    def has_room(self) -> bool:
        """Whether a request may be submitted now."""
        in_flight_count = len(self._core.in_flight)
        return in_flight_count < self.settings.in_flight_max and self._is_writable and self._reason is None

    def on_closed(self, callback: Callable[[ApiError], None]) -> None:
        """Call back once when the connection has ended, after every exchange has; at once if it has already."""
        if self._reason is not None:
            callback(self._reason)
        else:
            self._on_closed.append(callback)

    def version_of(self, request: type[Any], version_max: int | None = None, version_min: int | None = None) -> int:
        """The version a request would be sent with; raises `UnsupportedByBroker`."""
        return self._core.choose_version(request, version_max, version_min)[1]

    async def request(
        self,
        message: object,
        response: type[R],
        *,
        timeout_s: float,
        version_max: int | None = None,
        version_min: int | None = None,
    ) -> R:
        """Send and wait. Raises `RequestTimeout`, `Disconnected`, `UnsupportedByBroker` or `ProtocolViolation`."""
        deadline_s = self._loop.time() + timeout_s
        await self._wait_for_room(deadline_s)
        if deadline_s <= self._loop.time():
            raise RequestTimeout(f"there was no time left to ask {self.address}")
        reply: asyncio.Future[R] = self._loop.create_future()
        self.submit(
            message,
            response,
            _settling(reply),
            timeout_s=deadline_s - self._loop.time(),
            version_max=version_max,
            version_min=version_min,
        )
        return await reply

    def submit(
        self,
        message: object,
        response: type[Any],
        on_reply: OnReply,
        *,
        timeout_s: float,
        version_max: int | None = None,
        version_min: int | None = None,
    ) -> None:
        """Send; ``on_reply`` is called once, never from inside this call unless the connection has ended already.

        Raises `UnsupportedByBroker`, and then does not call it.
        """
        if self._reason is not None:
            on_reply(self._reason)
            return
        call, version = self._core.choose_version(type(message), version_max, version_min)
        now_s = self._loop.time()
        exchange = Exchange(call, response, version, on_reply, now_s + timeout_s, now_s + self.settings.patience_s)
        exchange.asked_s = now_s
        frame = self._core.send(exchange, message)
        self.last_used_s = now_s
        self._write(frame)
        self._watch(exchange.deadline_s)

    def send_unanswered(self, message: object, *, version_max: int | None = None) -> None:
        """Send a request that the broker does not answer (Produce with acks 0)."""
        if self._reason is not None:
            raise self._reason
        call, version = self._core.choose_version(type(message), version_max)
        self.last_used_s = self._loop.time()
        self._write(self._core.frame(call, version, message))

    def close(self, reason: ApiError | None = None) -> None:
        """End the connection now; what is in flight ends with ``reason``."""
        self._end(reason or ConnectionClosed(f"the connection to {self.address} was closed"))

    # waiting

    async def _wait_for_room(self, deadline_s: float) -> None:
        while self._reason is None:
            delay_s = self.throttled_until_s - self._loop.time()
            if delay_s > 0:
                if self.throttled_until_s > deadline_s:
                    raise RequestTimeout(f"{self.address} asked to wait longer than the request's timeout")
                await asyncio.sleep(delay_s)
            elif self.has_room:
                return
            else:
                await self._wait_for_turn(deadline_s)
        raise self._reason

    async def _wait_for_turn(self, deadline_s: float) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(turn)
        try:
            async with asyncio.timeout_at(deadline_s):
                await turn
        except TimeoutError as error:
            raise RequestTimeout(f"{self.in_flight_count} requests to {self.address} are unanswered") from error
        finally:
            if turn in self._waiters:
                self._waiters.remove(turn)

    def _wake_waiter(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _watch(self, deadline_s: float) -> None:
        if self._timer is None or self._timer.when() > deadline_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        # The loop may run a timer up to its clock's resolution early.
        now_s = self._loop.time() + 1e-6
        for exchange in list(self._core.in_flight):
            if exchange.deadline_s > now_s:
                continue
            name = exchange.call.name
            on_reply, exchange.on_reply = exchange.on_reply, _ignore
            is_hopeless = exchange.limit_s <= now_s
            exchange.deadline_s = exchange.limit_s
            on_reply(RequestTimeout(f"{self.address} did not answer {name} in time"))
            if is_hopeless:
                self._end(Disconnected(f"{self.address} did not answer {name} in time; the connection was given up"))
                return
        if self._core.in_flight and self._reason is None:
            self._watch(min(exchange.deadline_s for exchange in self._core.in_flight))

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            for exchange, outcome in self._core.receive(data):
                throttle_time_ms = getattr(outcome, "throttle_time_ms", 0)
                if throttle_time_ms > 0:
                    self.throttled_until_s = self._loop.time() + throttle_time_ms / 1000
                exchange.on_reply(outcome)
                if self._waiters:
                    self._wake_waiter()
        except ProtocolViolation as error:
            self._end(error)

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        self._wake_waiter()
        if self.on_writable is not None:
            self.on_writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(Disconnected(f"{self.address} ended the connection{f': {error}' if error else ''}"))

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    def _end(self, reason: ApiError) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        for exchange in self._core.abandon():
            exchange.on_reply(reason)
        while self._waiters:
            self._wake_waiter()
        callbacks, self._on_closed = self._on_closed, []
        for callback in callbacks:
            callback(reason)


def _reason_of(error: OSError, settings: ConnectionSettings) -> str:
    if not isinstance(error, ConnectionError):
        return error.strerror or str(error)
    # asyncio's text repeats the address; what matters is the reason.
    reason = "it was closed" if error.errno is None else os.strerror(error.errno).lower()
    is_refused = isinstance(error, ConnectionRefusedError)
    return reason if is_refused or settings.tls is None else f"{reason} during the TLS handshake; does it speak TLS?"


def _ignore(_: Outcome) -> None:
    """The answer to a question that nobody waits for any more."""


def _settling(reply: asyncio.Future[Any]) -> OnReply:
    def settle(outcome: Outcome) -> None:
        if reply.done():
            return
        if isinstance(outcome, ApiError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    return settle
