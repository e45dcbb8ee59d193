"""The SASL authentication of one connection (KIP-43, KIP-152, KIP-368) as a state machine over its first frames.

    INITIAL --ApiVersions--> HANDSHAKE --SaslHandshake--> EXCHANGE --last token--> COMPLETE
       |                                                     ^
       +--------------------SaslHandshake--------------------+

ApiVersions is optional and answered once. After SaslHandshake version 0 the client sends bare tokens, after version 1
SaslAuthenticate requests. Anything else ends the connection, with a reply where Kafka sends one. When a session
expires, the client authenticates again on the same connection, with the same mechanism and as the same principal: this
is a new `Authentication` for the session, which starts at SaslHandshake.

`receive` and `resumed` return one `Effect` each; the caller performs it before it passes on the next frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeVar

from millbeck.kernel.errors import ApiError, IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from millbeck.kernel.names import is_software_name
from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import (
    GSSAPI,
    AuthenticationFailed,
    Challenge,
    Completed,
    InvalidToken,
    ServerExchange,
    Step,
    Wait,
    Work,
)
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.errors import DecodeError
from millbeck.wire.framing import RequestHeader, read_request_header
from millbeck.wire.messages.authentication import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
REAUTHENTICATION_INTERVAL_MS: Final = 1000
"""The minimum time between two re-authentications, as in Kafka."""
_KERBEROS_TOKEN: Final = 0x60
_NAMED_SINCE: Final = 3
_SHOWN_LENGTH_MAX: Final = 40

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A mechanism enabled on a listener."""

    begin: Callable[[], ServerExchange]
    reauthenticate_ms: int = 0
    """``connections.max.reauth.ms``; 0 means that a session expires only with its credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An authenticated connection, until it authenticates again."""

    principal: Principal
    mechanism: str
    expires_ms: int | None
    """The time in milliseconds of the monotonic clock; None means never."""
    lifetime_ms: int
    """The session lifetime sent to the client; 0 means unlimited."""
    renewed_ms: int | None = None
    """The time at which the last re-authentication began, on the monotonic clock; None before the first."""
    login: str = ""
    """The user name of the client, or the id of its delegation token."""

    def is_expired(self, now_ms: int) -> bool:
        return self.expires_ms is not None and now_ms >= self.expires_ms

    def may_renew(self, now_ms: int) -> bool:
        """Whether a SaslHandshake begins a re-authentication: only if the session expires, and not too soon after the
        last one began."""
        if self.expires_ms is None:
            return False
        return self.renewed_ms is None or now_ms - self.renewed_ms >= REAUTHENTICATION_INTERVAL_MS


# effects


@dataclass(frozen=True, slots=True)
class AnswerApiVersions:
    """Answer this frame like any ApiVersions request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Send a response, or a bare token; ``session`` is set when it completes the authentication."""

    header: RequestHeader | None
    content: Any = field(repr=False)
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Authentication failed: send the response, if any, after Kafka's delay, and close the connection."""

    reason: str
    header: RequestHeader | None = None
    content: Any = field(default=None, repr=False)
    error: ApiError | None = None
    """Answer with the error reply of the request's API, instead of ``content``."""
    mechanism: str = ""
    user: str = ""
    """The user name that the client has sent, if any."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection without a reply."""

    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run work off the event loop, or wait, and pass the result to `Authentication.resumed`; ``header`` is the
    request's."""

    work: Work | Wait
    header: RequestHeader | None


Effect = AnswerApiVersions | Answer | Fail | Close | Run


class AuthenticationState(Enum):
    INITIAL = auto()
    HANDSHAKE = auto()
    EXCHANGE = auto()
    WRONG_MECHANISM = auto()
    COMPLETE = auto()
    FAILED = auto()


class Authentication:
    def __init__(
        self, mechanisms: Mapping[str, Mechanism], *, renewed: Session | None = None, began_ms: int | None = None
    ) -> None:
        """``renewed`` is the session that is re-authenticated from ``began_ms`` on, if any."""
        self._mechanisms = mechanisms
        self._renewed = renewed
        self._began_ms = began_ms
        self.state = AuthenticationState.INITIAL if renewed is None else AuthenticationState.HANDSHAKE
        self.expects_bare_tokens = False
        """Whether frames are tokens without a request header."""
        self._mechanism = ""
        self._exchange: ServerExchange | None = None
        self._pending: RequestHeader | None = None

    def receive(self, frame: bytes, now_ms: int, wall_ms: int) -> Effect:
        """Process the next frame, without its length prefix."""
        effect = self._receive(frame, now_ms, wall_ms)
        if isinstance(effect, Fail | Close):
            self.state = AuthenticationState.FAILED
        return effect

    def resumed(self, work: Work | Wait, result: Any, now_ms: int, wall_ms: int) -> Effect:
        """Process the result of the work of a `Run`."""
        assert self.state is AuthenticationState.EXCHANGE
        effect = self._advance(self._pending, lambda: work.then(result), now_ms, wall_ms)
        if isinstance(effect, Fail):
            self.state = AuthenticationState.FAILED
        return effect

    def refused(self, header: RequestHeader | None, reason: str) -> Fail:
        """Fail an authentication that is complete: the client has no principal here, or another one than before."""
        self.state = AuthenticationState.FAILED
        return self._invalid(header, reason)

    def _receive(self, frame: bytes, now_ms: int, wall_ms: int) -> Effect:
        match self.state:
            case AuthenticationState.INITIAL | AuthenticationState.HANDSHAKE:
                return self._before_exchange(frame, now_ms, wall_ms)
            case AuthenticationState.EXCHANGE if self.expects_bare_tokens:
                return self._token(None, frame, now_ms, wall_ms)
            case AuthenticationState.EXCHANGE:
                return self._authenticate(frame, now_ms, wall_ms)
            case AuthenticationState.WRONG_MECHANISM:
                assert self._renewed is not None
                return Fail(
                    reason=f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
                    f"re-authentication of mechanism '{self._renewed.mechanism}'"
                )
            case _:
                return Close(f"a frame after the authentication is {self.state.name.lower()}")

    def _before_exchange(self, frame: bytes, now_ms: int, wall_ms: int) -> Effect:
        try:
            header = read_request_header(frame)
        except DecodeError as error:
            if (
                self.state is AuthenticationState.INITIAL
                and frame[:1] == bytes([_KERBEROS_TOKEN])
                and GSSAPI in self._mechanisms
            ):
                # A client of Kafka 0.9 begins with a token and without a handshake.
                self.expects_bare_tokens = True
                self._begin(GSSAPI)
                return self._token(None, frame, now_ms, wall_ms)
            return Close(f"expected a SASL handshake: {error}")
        if header.api_key == SASL_HANDSHAKE:
            return self._handshake(header, frame)
        if header.api_key == API_VERSIONS and self.state is AuthenticationState.INITIAL:
            return self._api_versions(header, frame)
        return Close(f"Unexpected Kafka request of type {APIS[header.api_key].name} during SASL handshake.")

    def _api_versions(self, header: RequestHeader, frame: bytes) -> Effect:
        """Answer ApiVersions; after an error response the client may repeat it."""
        api = APIS[API_VERSIONS]
        if 0 <= header.api_version <= api.max_version:
            try:
                request = _decode(ApiVersionsRequest, header, frame)
            except DecodeError as error:
                return Close(f"malformed ApiVersions request: {error}")
            is_named = header.api_version >= _NAMED_SINCE
            if not is_named or all(
                is_software_name(name) for name in (request.client_software_name, request.client_software_version)
            ):
                self.state = AuthenticationState.HANDSHAKE
        return AnswerApiVersions()

    def _handshake(self, header: RequestHeader, frame: bytes) -> Effect:
        if header.api_version > APIS[SASL_HANDSHAKE].max_version or header.api_version < 0:
            return Close(f"SaslHandshake version {header.api_version} is not supported")
        try:
            name = _decode(SaslHandshakeRequest, header, frame).mechanism
        except DecodeError as error:
            return Close(f"malformed SaslHandshake request: {error}")
        response = SaslHandshakeResponse(mechanisms=list(self._mechanisms))
        if name not in self._mechanisms:
            response.error_code = UnsupportedSaslMechanism.code
            shown = name[:_SHOWN_LENGTH_MAX]
            return Fail(reason=f"Unsupported SASL mechanism {shown}", header=header, content=response)
        self.expects_bare_tokens = header.api_version == 0
        self._begin(name)
        if self._renewed is not None and name != self._renewed.mechanism:
            self.state = AuthenticationState.WRONG_MECHANISM
        return Answer(header=header, content=response)

    def _begin(self, mechanism: str) -> None:
        self._mechanism = mechanism
        self._exchange = self._mechanisms[mechanism].begin()
        self.state = AuthenticationState.EXCHANGE

    def _authenticate(self, frame: bytes, now_ms: int, wall_ms: int) -> Effect:
        try:
            header = read_request_header(frame)
        except DecodeError as error:
            return Close(f"expected SaslAuthenticate: {error}")
        api = APIS[header.api_key]
        if not api.min_version <= header.api_version <= api.max_version:
            return Close(f"Version {header.api_version} is not supported for apiKey {api.name}")
        if header.api_key != SASL_AUTHENTICATE:
            text = f"Unexpected Kafka request of type {api.name} during SASL authentication."
            return Fail(reason=text, header=header, error=IllegalSaslState(text))
        try:
            token = _decode(SaslAuthenticateRequest, header, frame).auth_bytes
        except DecodeError as error:
            return Close(f"malformed SaslAuthenticate request: {error}")
        return self._token(header, token, now_ms, wall_ms)

    def _token(self, header: RequestHeader | None, token: bytes, now_ms: int, wall_ms: int) -> Effect:
        exchange = self._exchange
        assert exchange is not None
        return self._advance(header, lambda: exchange.step(token), now_ms, wall_ms)

    def _advance(self, header: RequestHeader | None, step: Callable[[], Step], now_ms: int, wall_ms: int) -> Effect:
        try:
            taken = step()
            if isinstance(taken, Work | Wait):
                self._pending = header
                return Run(taken, header)
            if isinstance(taken, Challenge):
                return self._answer(header, taken.token, None)
            return self._answer(header, taken.token, self._complete(taken, now_ms, wall_ms))
        except AuthenticationFailed as error:
            return self._failed(header, str(error), error.reason)
        except InvalidToken as error:
            return self._invalid(header, str(error))

    def _invalid(self, header: RequestHeader | None, reason: str) -> Fail:
        text = (
            f"Authentication failed during {'authentication' if self._renewed is None else 're-authentication'} "
            f"due to invalid credentials with SASL mechanism {self._mechanism}"
        )
        return self._failed(header, text, f"{text}: {reason}")

    def _complete(self, completed: Completed, now_ms: int, wall_ms: int) -> Session:
        before = None if self._renewed is None else self._renewed.principal
        principal = completed.principal
        # As in Kafka: a token may be followed by its owner's password, and the reverse.
        if before is not None and (before.type, before.name) != (principal.type, principal.name):
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                f"{principal.type}.{principal.name}"
            )
        limits = []
        if completed.expires_at_ms is not None:
            limits.append(max(completed.expires_at_ms - wall_ms, 0))
        reauthenticate_ms = self._mechanisms[self._mechanism].reauthenticate_ms
        if reauthenticate_ms > 0:
            limits.append(reauthenticate_ms)
        self.state = AuthenticationState.COMPLETE
        return Session(
            principal=principal,
            mechanism=self._mechanism,
            expires_ms=now_ms + min(limits) if limits else None,
            lifetime_ms=min(limits, default=0),
            renewed_ms=self._began_ms,
            login=self._claimed_user,
        )

    @staticmethod
    def _answer(header: RequestHeader | None, token: bytes, session: Session | None) -> Answer:
        if header is None:
            return Answer(header=None, content=token, session=session)
        lifetime_ms = 0 if session is None else session.lifetime_ms
        response = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return Answer(header=header, content=response, session=session)

    def _failed(self, header: RequestHeader | None, text: str, reason: str) -> Fail:
        """Fail the authentication; a bare token gets no response."""
        response = None
        if header is not None:
            response = SaslAuthenticateResponse(error_code=SaslAuthenticationFailed.code, error_message=text)
        return Fail(reason=reason, header=header, content=response, mechanism=self._mechanism, user=self._claimed_user)

    @property
    def _claimed_user(self) -> str:
        """The user name that the client has sent; empty before that, and with token mechanisms."""
        user: str = getattr(self._exchange, "claimed_user", "")
        return user


def _decode(message: type[R], header: RequestHeader, frame: bytes) -> R:
    decoded: tuple[R, int] = codec.decoder(message, header.api_version)(frame, header.body_position)
    return decoded[0]
