"""One connection to one broker: `protocol.ConnectionCore` on a socket.

    connection = await Connection.open(environment.network, Address("127.0.0.1", 9092), ConnectionSettings())
    response = await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=30)
    connection.submit(FetchRequest(...), FetchResponse, on_reply, timeout_s=30)     # no task, no future
    connection.close()

Requests are written at once and answered in order. At most ``in_flight_max`` are unanswered: `request` waits until one
more may be sent, `submit` expects the caller to have checked `has_room`. If a caller stops waiting, on timeout or
cancellation, its request stays in flight, and the response is discarded. A request that is not answered within its
timeout, and at least ``patience_s``, closes the connection, since all requests behind it are blocked too; so does an
unexpected frame. When a connection closes, all requests in flight fail, and `closed` holds the reason.

With SASL the connection authenticates before it is returned, and again before its session ends. Meanwhile further
requests are queued and sent afterwards; they count as in flight.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from millbeck.client.addresses import Address
from millbeck.client.apis import call_of
from millbeck.client.diagnosis import peer_description
from millbeck.client.errors import ConnectFailed, ConnectionClosed, Disconnected, ProtocolViolation, RequestTimeout
from millbeck.client.metrics.connections import NodeMeter
from millbeck.client.protocol import ConnectionCore, InFlightRequest, Outcome
from millbeck.client.versions import NodeVersions, VersionNegotiation, identification
from millbeck.kernel.environment import Network
from millbeck.kernel.errors import ApiError
from millbeck.kernel.tls import TlsFailed, TlsFailure, TlsSource
from millbeck.wire.messages.metadata import ApiVersionsResponse

if TYPE_CHECKING:
    from millbeck.client.sasl import SaslCredentials
    from millbeck.security.sasl.exchange import ClientExchange

R = TypeVar("R")

OnReply = Callable[[Outcome], None]
"""Called with the response, or the `ApiError` instead of it."""

FRAME_SIZE_MAX: Final = 0x7FFFFFFF
_NO_DEADLINE_S: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    client_id: str | None = None
    in_flight_max: int = 5
    frame_size_max: int = FRAME_SIZE_MAX
    connect_timeout_s: float = 10.0
    patience_s: float = 0.0
    """The maximum response time of a broker, even if the caller's timeout is shorter."""
    tls: TlsSource | None = None
    sasl: SaslCredentials | None = None


class Connection(asyncio.Protocol):
    """A connection to one broker. Create it with `open`, which also negotiates the API versions."""

    def __init__(self, address: Address, settings: ConnectionSettings, meter: NodeMeter | None = None) -> None:
        self.address = address
        self.settings = settings
        self._meter = meter
        self.versions: NodeVersions | None = None
        self.throttled_until_s = 0.0
        """Loop time until which the broker throttles this connection (throttle_time_ms)."""
        self.last_used_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._core = ConnectionCore(settings.client_id, frame_size_max=settings.frame_size_max)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._reason: ApiError | None = None
        self._tls_failure: TlsFailed | None = None
        self._on_closed: list[Callable[[ApiError], None]] = []
        self._held: list[Callable[[], None]] | None = None
        """Requests queued during a re-authentication, to be sent afterwards."""
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._has_received = False
        """Whether any bytes have arrived; the first ones show whether the peer is a Kafka broker."""
        self._has_served = False
        """Whether the broker has answered at least one request of the caller."""
        self._is_writable = True
        self.on_writable: Callable[[], None] | None = None
        """Called when the socket becomes writable again."""

    @staticmethod
    async def open(
        network: Network,
        address: Address,
        settings: ConnectionSettings,
        *,
        timeout_s: float | None = None,
        meter: NodeMeter | None = None,
    ) -> Connection:
        """Connect, negotiate versions and authenticate; raises `ConnectFailed`, or the broker's error."""
        limit_s = settings.connect_timeout_s if timeout_s is None else timeout_s
        connection: Connection | None = None

        def make() -> Connection:
            nonlocal connection
            connection = Connection(address, settings, meter)
            return connection

        try:
            async with asyncio.timeout(limit_s):
                # Before connecting, because a broker would wait for the authentication while a token is being fetched.
                exchange = None if settings.sasl is None else await settings.sasl.begin(address.host)
                await network.connect(make, host=address.host, port=address.port, tls=settings.tls)
                assert connection is not None
                await connection._negotiate()
                if settings.sasl is not None and exchange is not None:
                    await connection._authenticate(settings.sasl, exchange)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, TimeoutError):
                timeout_ms = round(limit_s * 1000)
                hint = "" if connection is None else connection._silence()
                raise ConnectFailed(f"no connection to {address} within {timeout_ms} ms{hint}") from error
            if isinstance(error, OSError | UnicodeError):
                raise ConnectFailed(f"no connection to {address}: {_reason_of(error, address, settings)}") from error
            # A ConnectFailed already says which kind of server answered.
            if isinstance(error, Disconnected) and not isinstance(error, ConnectFailed) and connection is not None:
                raise ConnectFailed(_closed_early(address, settings, connection)) from error
            raise
        return connection

    def _silence(self) -> str:
        """A hint for a timeout: the server accepted the connection and has sent nothing, as some HTTP servers do."""
        if self._transport is None or self._has_received:
            return ""
        return "; it accepts connections but does not answer ApiVersions: is this the port of a Kafka listener?"

    async def _negotiate(self) -> None:
        negotiation = VersionNegotiation()
        while negotiation.result is None:
            negotiation.step(await self._ask_first(identification(), ApiVersionsResponse, negotiation.version))
        self.versions = negotiation.result
        self._core.ranges = self.versions.ranges

    async def _ask_first(self, message: object, response: type[R], version: int) -> R:
        """Send a request that precedes those of the program, such as ApiVersions; the caller limits the wait."""
        if self._reason is not None:
            raise self._reason
        reply: asyncio.Future[R] = self._loop.create_future()
        call = call_of(type(message))
        exchange = InFlightRequest(call, response, version, _completing(reply), self._loop.time() + _NO_DEADLINE_S)
        exchange.asked_s = self._loop.time()
        self._write(self._core.send(exchange, message))
        return await reply

    # authentication

    async def _authenticate(self, credentials: SaslCredentials, exchange: ClientExchange) -> None:
        from millbeck.client.sasl import authenticate

        self._held = []

        async def ask(message: object, response: type[R], *, version_min: int = 0) -> R:
            _, version = self._core.choose_version(type(message), version_min=version_min)
            return await self._ask_first(message, response, version)

        try:
            lifetime_ms = await authenticate(ask, exchange, credentials, str(self.address))
        finally:
            self._send_held()
        if lifetime_ms > 0 and self._reason is None:
            self._renewal = self._loop.call_later(credentials.renewal_s(lifetime_ms), self._renew, credentials)

    def _renew(self, credentials: SaslCredentials) -> None:
        self._renewing = self._loop.create_task(self._authenticate_again(credentials))

    async def _authenticate_again(self, credentials: SaslCredentials) -> None:
        try:
            async with asyncio.timeout(self.settings.connect_timeout_s):
                # Requests continue while a token is being fetched.
                await self._authenticate(credentials, await credentials.begin(self.address.host))
        except TimeoutError:
            self._end(Disconnected(f"{self.address} did not answer the re-authentication in time"))
        except Exception as error:
            # Requests in flight are retried on a new connection, which shows whether the credentials are still valid.
            self._end(Disconnected(f"{self.address}: re-authentication failed: {error}"))

    def _send_held(self) -> None:
        held, self._held = self._held or (), None
        for send in held:
            send()

    # for callers

    @property
    def is_open(self) -> bool:
        return self._reason is None

    @property
    def closed(self) -> ApiError | None:
        """The reason it was closed; None while it is open."""
        return self._reason

    @property
    def in_flight_count(self) -> int:
        return len(self._core.in_flight)

    def oldest_request(self) -> tuple[str, float] | None:
        """Name and send time (loop time) of the oldest unanswered request."""
        if not self._core.in_flight:
            return None
        exchange = self._core.in_flight[0]
        return exchange.call.name, exchange.asked_s

    @property
    def has_room(self) -> bool:
        """Whether a request may be submitted now."""
        in_flight_count = len(self._core.in_flight) + len(self._held or ())
        return in_flight_count < self.settings.in_flight_max and self._is_writable and self._reason is None

    def on_closed(self, callback: Callable[[ApiError], None]) -> None:
        """Call ``callback`` once after the connection has closed and all requests failed; at once if closed already."""
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
        """Send and wait for the response. Raises `RequestTimeout`, `Disconnected`, `UnsupportedByBroker` or
        `ProtocolViolation`."""
        deadline_s = self._loop.time() + timeout_s
        await self._wait_for_room(deadline_s)
        if deadline_s <= self._loop.time():
            raise RequestTimeout(f"the timeout expired before the request could be sent to {self.address}")
        reply: asyncio.Future[R] = self._loop.create_future()
        self.submit(
            message,
            response,
            _completing(reply),
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
        """Send; ``on_reply`` is called once, and synchronously only if the connection is closed already.

        Raises `UnsupportedByBroker` without calling it.
        """
        if self._reason is not None:
            on_reply(self._reason)
            return
        call, version = self._core.choose_version(type(message), version_max, version_min)
        if self._held is not None:
            self._held.append(
                partial(self._submit_held, message, response, on_reply, self._loop.time() + timeout_s, version)
            )
            return
        now_s = self._loop.time()
        exchange = InFlightRequest(
            call, response, version, on_reply, now_s + timeout_s, now_s + self.settings.patience_s
        )
        exchange.asked_s = now_s
        frame = self._core.send(exchange, message)
        self.last_used_s = now_s
        self._write(frame)
        self._watch(exchange.deadline_s)

    def _submit_held(
        self, message: object, response: type[Any], on_reply: OnReply, deadline_s: float, version: int
    ) -> None:
        try:
            timeout_s = max(deadline_s - self._loop.time(), 0.0)
            self.submit(message, response, on_reply, timeout_s=timeout_s, version_max=version, version_min=version)
        except ApiError as error:
            on_reply(error)

    def send_no_response(self, message: object, *, version_max: int | None = None) -> None:
        """Send a request that the broker does not answer (Produce with acks 0)."""
        if self._reason is not None:
            raise self._reason
        call, version = self._core.choose_version(type(message), version_max)
        if self._held is not None:
            self._held.append(partial(self._send_held_no_response, message, version))
            return
        self.last_used_s = self._loop.time()
        self._write(self._core.frame(call, version, message))

    def _send_held_no_response(self, message: object, version: int) -> None:
        if self._reason is None:
            self.send_no_response(message, version_max=version)

    def close(self, reason: ApiError | None = None) -> None:
        """Close the connection now; requests in flight fail with ``reason``."""
        self._end(reason or ConnectionClosed(f"the connection to {self.address} was closed"))

    # waiting

    async def _wait_for_room(self, deadline_s: float) -> None:
        while self._reason is None:
            delay_s = self.throttled_until_s - self._loop.time()
            if delay_s > 0:
                if self.throttled_until_s > deadline_s:
                    raise RequestTimeout(f"{self.address} throttles this client for longer than the request's timeout")
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
        # asyncio may run a timer early by up to the clock's resolution.
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
                self._end(Disconnected(f"{self.address} did not answer {name} in time; closing the connection"))
                return
        if self._core.in_flight and self._reason is None:
            self._watch(min(exchange.deadline_s for exchange in self._core.in_flight))

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        meter = self._meter
        now_s = self._loop.time()
        if meter is not None:
            meter.received(len(data), now_s)
        if not self._has_received:
            self._has_received = True
            words = peer_description(data)
            if words is not None:
                self._end(ConnectFailed(f"no connection to {self.address}: {words}"))
                return
        try:
            for exchange, outcome in self._core.receive(data):
                throttle_time_ms = getattr(outcome, "throttle_time_ms", 0)
                if throttle_time_ms > 0:
                    self.throttled_until_s = now_s + throttle_time_ms / 1000
                if meter is not None:
                    meter.answered(exchange.asked_s, now_s)
                exchange.on_reply(outcome)
                self._has_served = self.versions is not None
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
        if isinstance(error, TlsFailed):
            self._tls_failure = error
        hint = ""
        if not self._has_served and self.versions is not None and self.settings.sasl is None:
            hint = "; if the broker requires SASL, set security.protocol to SASL_PLAINTEXT or SASL_SSL"
        self._end(Disconnected(f"{self.address} closed the connection{f': {error}' if error else ''}{hint}"))

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        if self._meter is not None:
            self._meter.sent(len(frame), self._loop.time())
        self._transport.write(frame)

    def _end(self, reason: ApiError) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._renewal is not None:
            self._renewal.cancel()
        if self._renewing is not None and self._renewing is not asyncio.current_task():
            self._renewing.cancel()
        if self._transport is not None:
            self._transport.abort()
        for exchange in self._core.abandon():
            exchange.on_reply(reason)
        self._send_held()
        while self._waiters:
            self._wake_waiter()
        callbacks, self._on_closed = self._on_closed, []
        for callback in callbacks:
            callback(reason)


def _closed_early(address: Address, settings: ConnectionSettings, connection: Connection | None) -> str:
    failure = None if connection is None else connection._tls_failure
    if failure is not None:
        # With TLS 1.3 a client has completed its handshake before the broker checks the client's certificate.
        hint = "; does it require a client certificate (ssl.keystore.location)?"
        return f"no connection to {address}: {failure}{hint if 'certificate' in str(failure) else ''}"
    if connection is not None and connection.versions is not None:
        return f"{address} closed the connection during SASL authentication"
    hint = "" if settings.tls is not None else "; if the broker requires TLS, set security.protocol=SSL"
    return f"{address} closed the connection before answering ApiVersions{hint}"


def _reason_of(error: OSError | UnicodeError, address: Address, settings: ConnectionSettings) -> str:
    if isinstance(error, UnicodeError):
        return f"{address.host[:100]!r} is not a valid host name"
    if isinstance(error, socket.gaierror):
        return f"the name {address.host} does not resolve on this machine ({error.strerror or error})"
    if isinstance(error, TlsFailed):
        is_maybe_plain = error.failure in (TlsFailure.NOT_TLS, TlsFailure.DISCONNECTED)
        return f"{error}{'; does the broker use TLS on this port?' if is_maybe_plain else ''}"
    if not isinstance(error, ConnectionError):
        return error.strerror or str(error)
    # asyncio's message repeats the address; only the reason is needed.
    reason = "it was closed" if error.errno is None else os.strerror(error.errno).lower()
    is_refused = isinstance(error, ConnectionRefusedError)
    return (
        reason
        if is_refused or settings.tls is None
        else f"{reason} during the TLS handshake; does the broker use TLS on this port?"
    )


def _ignore(_: Outcome) -> None:
    """Discard the response of a request whose caller has stopped waiting."""


def _completing(reply: asyncio.Future[Any]) -> OnReply:
    def complete(outcome: Outcome) -> None:
        if reply.done():
            return
        if isinstance(outcome, ApiError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    return complete
