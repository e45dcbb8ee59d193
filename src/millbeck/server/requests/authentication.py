"""Authenticate the connections of a listener with SASL, before any of their requests reach the dispatcher.

The state machine is `security.sasl.authentication`; here its effects are performed. A `ConnectionAuthentication`
handles the frames of each new connection, and hands over to the dispatcher when the client is authenticated, so later
requests have no additional cost. If sessions expire, it stays in between to check the expiry time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.audit.events import AuditKind, event_of
from millbeck.security.principal import NoPrincipal
from millbeck.security.sasl.authentication import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Answer,
    AnswerApiVersions,
    Authentication,
    Close,
    Effect,
    Fail,
    Mechanism,
    Run,
    Session,
)
from millbeck.security.sasl.exchange import Wait, Work
from millbeck.server.network.call import Call
from millbeck.server.network.connection import CloseConnection, Connection
from millbeck.server.network.request_metrics import AuthenticationStatistics
from millbeck.server.requests.mechanisms import mechanisms_of

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.requests.dispatch import Dispatcher
    from millbeck.server.requests.token_keys import TokenKeys
    from millbeck.wire.framing import RequestHeader

WORKERS_MAX: Final = 2
_LENGTH: Final = Struct(">i")
_API_KEY: Final = Struct(">h")

log = logging.getLogger(__name__)


class AuthenticationWork:
    """Shared by all authentications of a node: threads for slow steps, at most two at a time, and the keys that verify
    tokens."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._places = asyncio.Semaphore(WORKERS_MAX)
        self.token_keys: TokenKeys | None = None

    async def run(self, work: Work | Wait, connection: Connection) -> Any:
        """The result of a slow step; None if the connection was lost before it began."""
        if isinstance(work, Wait):
            # Other connections await the same future: the end of this connection must not cancel it.
            return await asyncio.shield(work.until)
        async with self._places:
            # Clients that connect and leave must not keep the threads busy.
            return None if connection.is_lost else await self._broker.in_thread(work.job, *work.arguments)

    def needed_token_keys(self) -> TokenKeys:
        if self.token_keys is None:
            from millbeck.server.requests.token_keys import TokenKeys

            self.token_keys = TokenKeys(self._broker)
        return self.token_keys

    def reload(self) -> None:
        """Read the keys of tokens again, which are outside of the configuration."""
        if self.token_keys is not None:
            self.token_keys.want()


class SaslListener:
    """The authentication of one listener's clients."""

    def __init__(self, broker: Broker, dispatcher: Dispatcher, name: str, work: AuthenticationWork) -> None:
        self.broker = broker
        self.dispatcher = dispatcher
        self.name = name
        self.work = work
        self.statistics = AuthenticationStatistics()
        self._configured: object = None
        self._mechanisms: Mapping[str, Mechanism] = {}
        self._frame_bytes_max = 0
        self._warnings: tuple[str, ...] = ()
        self._plugins: dict[str, Any] = {}
        self._configure()

    @property
    def frame_bytes_max(self) -> int:
        return self._frame_bytes_max

    @property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The mechanisms of the current configuration; an unusable dynamic config is ignored."""
        if self._configured is not self.broker.config.dynamic:
            try:
                self._configure()
            except InvalidConfig as error:
                self._configured = self.broker.config.dynamic
                log.error("listener %s keeps its current authentication: %s", self.name, error.message)
        return self._mechanisms

    def _configure(self) -> None:
        config = self.broker.config
        settings = config.sasl(self.name)
        self._mechanisms = mechanisms_of(self.broker, settings, self.work.needed_token_keys, self._plugins)
        oauth = next((each.oauth for each in settings.mechanisms.values() if each.oauth is not None), None)
        warnings = () if oauth is None else tuple(oauth.warnings())
        if warnings != self._warnings:
            self._warnings = warnings
            for warning in warnings:
                log.warning("listener %s: %s", self.name, warning)
        self._frame_bytes_max = settings.receive_bytes_max
        self._configured = config.dynamic

    def begin(self, connection: Connection) -> ConnectionAuthentication:
        return ConnectionAuthentication(self)


class ConnectionAuthentication:
    """Handles the frames of one connection until it is authenticated, and afterwards while its session may expire."""

    __slots__ = ("_listener", "_running", "_session")

    def __init__(self, listener: SaslListener) -> None:
        self._listener = listener
        self._running: Authentication | None = Authentication(listener.mechanisms)
        self._session: Session | None = None

    def handle(self, connection: Connection, frame: memoryview) -> None:
        if self._running is None and not self._is_reauthentication(connection, frame):
            self._listener.dispatcher.handle(connection, frame)
            return
        running = self._running
        assert running is not None
        try:
            effect = running.receive(bytes(frame), *self._clocks())
        except Exception as error:
            self._listener.broker.report(error, f"authentication of {connection.peer_host}")
            raise CloseConnection("an unexpected error during authentication") from None
        match effect:
            case AnswerApiVersions():
                self._listener.dispatcher.handle(connection, frame)
            case Close():
                raise CloseConnection(effect.reason)
            case Answer() | Fail() | Run():
                self._perform(connection, self._call(connection, effect.header), effect)
        if running.expects_bare_tokens and self._running is not None:
            connection.expect_frames(0)

    def _is_reauthentication(self, connection: Connection, frame: memoryview) -> bool:
        """Whether this frame begins a re-authentication. Closes the connection if the session has expired."""
        session = self._session
        assert session is not None
        # Not the time at which the frame arrived: it may have been kept behind a request that waited.
        now_ms = int(connection.now() * 1000)
        if _API_KEY.unpack_from(frame)[0] == SASL_HANDSHAKE and session.may_renew(now_ms):
            self._running = Authentication(self._listener.mechanisms, renewed=session, began_ms=now_ms)
            return True
        if session.is_expired(now_ms):
            self._listener.statistics.expired += 1
            raise CloseConnection("the session has expired, and the client did not authenticate again")
        return False

    # effects

    def _perform(self, connection: Connection, call: Call, effect: Effect) -> None:
        if isinstance(effect, Run):
            call.hold()
            self._listener.broker.spawn(self._work(connection, call, effect))
        elif isinstance(effect, Fail):
            self._failed(connection, call, effect)
        else:
            assert isinstance(effect, Answer)
            if effect.session is not None:
                try:
                    self._completed(connection, effect.session)
                except NoPrincipal as error:
                    assert self._running is not None
                    self._failed(connection, call, self._running.refused(effect.header, str(error)))
                    return
            if effect.header is None:
                call.complete((_LENGTH.pack(len(effect.content)), effect.content))
            else:
                call.reply(effect.content)

    async def _work(self, connection: Connection, call: Call, run: Run) -> None:
        try:
            result = await self._listener.work.run(run.work, connection)
            if connection.is_lost:
                return
            assert self._running is not None
            self._perform(connection, call, self._running.resumed(run.work, result, *self._clocks()))
        except Exception as error:
            self._listener.broker.report(error, f"authentication of {connection.peer_host}")
            connection.close("an unexpected error during authentication")

    def _completed(self, connection: Connection, session: Session) -> None:
        """Raises `NoPrincipal` if the listener's builder gives none, or another one than before."""
        principal = connection.principal_for(session.principal, mechanism=session.mechanism, login=session.login)
        if self._session is not None and principal.text != connection.principal.text:
            raise NoPrincipal(f"the principal changed from {connection.principal} to {principal}")
        statistics = self._listener.statistics
        if self._session is None:
            statistics.succeeded += 1
        else:
            statistics.reauthentication_succeeded += 1
        self._audit(connection, AuditKind.LOGIN, session.mechanism, principal=principal.text)
        self._running = None
        self._session = connection.session = session
        dispatcher = self._listener.dispatcher
        connection.authenticated(principal, dispatcher if session.expires_ms is None else self)
        revocation = self._listener.broker.revocation
        if revocation is not None and not revocation.is_valid(self._listener.name, session):
            # Deleted between the client's first message and its last one.
            revocation.end(connection, session)

    def _failed(self, connection: Connection, call: Call, failure: Fail) -> None:
        """Send the error response and close the connection after a delay, to slow down password guessing."""
        statistics = self._listener.statistics
        if self._session is None:
            statistics.failed += 1
        else:
            statistics.reauthentication_failed += 1
        self._audit(connection, AuditKind.LOGIN_FAILED, failure.mechanism, user=failure.user, reason=failure.reason)
        log.info("Failed authentication with /%s (%s)", connection.peer_host, ascii(failure.reason)[1:-1])
        call.hold()
        broker = self._listener.broker

        def answer() -> None:
            if connection.is_lost:
                return
            if failure.content is None and failure.error is None:
                connection.close("authentication failed")
                return
            if failure.error is not None:
                call.fail(failure.error)
            else:
                call.reply(failure.content)
            connection.close_when_answered()

        broker.deadlines.after(broker.config.socket.connection_failed_authentication_delay_ms, answer)

    # helpers

    def _audit(self, connection: Connection, kind: AuditKind, mechanism: str, **who: str) -> None:
        audit = self._listener.broker.audit
        if audit is not None:
            again = "" if self._session is None else "again"
            audit.record(
                event_of(
                    kind,
                    host=connection.peer_host,
                    listener=self._listener.name,
                    mechanism=mechanism,
                    session=again,
                    **who,
                )
            )

    def _call(self, connection: Connection, header: RequestHeader | None) -> Call:
        listener = self._listener
        key = SASL_AUTHENTICATE if header is None else header.api_key
        handler = listener.dispatcher.handlers.get(key)
        if handler is None:
            raise CloseConnection(f"API key {key} is not supported on this listener")
        version, correlation_id, client_id = 0, 0, None
        if header is not None:
            version, correlation_id, client_id = header.api_version, header.correlation_id, header.client_id
        call = Call(listener.broker, connection, handler, version, correlation_id, client_id, connection.active_at)
        connection.enqueue(call)
        return call

    def _clocks(self) -> tuple[int, int]:
        clock = self._listener.broker.environment.clock
        return int(clock.monotonic() * 1000), clock.wall_ms()
