"""OAUTHBEARER (RFC 7628): a token in the client's first message; the exchange on both sides.

    n,,^Aauth=Bearer <token>^A[name=value^A…]^A

A refused token is answered with a JSON object as an ordinary challenge; the client then sends ``^A``, and the server
answers that authentication has failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.security.oauth.claims import AcceptedToken
from millbeck.security.oauth.jwt import TokenRefused
from millbeck.security.oauth.validation import AwaitKeys, TokenValidator
from millbeck.security.principal import USER_TYPE, Principal
from millbeck.security.sasl.exchange import (
    AuthenticationFailed,
    Challenge,
    Completed,
    InvalidToken,
    Wait,
)

INVALID_TOKEN: Final = '{"status":"invalid_token"}'
EXTENSIONS_MAX: Final = 100
"""Far more than clients send; without the limit, a message of half a megabyte could have a hundred thousand values."""
_SEPARATOR: Final = "\x01"
_AUTH: Final = "auth"
_SCHEME: Final = "bearer"
_HEADER: Final = re.compile(r"n,(?:a=((?:[^=,\x00\x01]|=2C|=3D)+))?,")
_AUTHORIZATION: Final = re.compile(r"([A-Za-z0-9_]+) +([-_.A-Za-z0-9]+)")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFirst:
    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


def client_first_text(token: str, extensions: Mapping[str, str]) -> str:
    listed = "".join(f"{_SEPARATOR}{name}={value}" for name, value in extensions.items())
    return f"n,,{_SEPARATOR}{_AUTH}=Bearer {token}{listed}{_SEPARATOR}{_SEPARATOR}"


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Check extensions; raises ValueError for invalid names or values."""
    for name, value in extensions.items():
        if name == _AUTH:
            raise ValueError(f"{_AUTH} is not the name of an extension")
        if not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError("extensions have names of letters, and values of printable ASCII characters")


def parse_client_first(data: bytes) -> ClientFirst:
    """Parse the client's first message. Raises `InvalidToken`."""
    if data.count(_SEPARATOR.encode()) > EXTENSIONS_MAX:
        raise InvalidToken(f"Invalid OAUTHBEARER client first message: more than {EXTENSIONS_MAX} values")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidToken("Invalid OAUTHBEARER client first message: not UTF-8") from None
    header, *pairs = text.split(_SEPARATOR)
    matched = _HEADER.fullmatch(header)
    if matched is None or len(pairs) < 2 or pairs[-2:] != ["", ""]:
        raise InvalidToken("Invalid OAUTHBEARER client first message")
    values: dict[str, str] = {}
    for pair in pairs[:-2]:
        name, equals, value = pair.partition("=")
        if not equals or name in values or not _EXTENSION_NAME.fullmatch(name):
            raise InvalidToken("Invalid OAUTHBEARER client first message: expected names with values, each once")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise InvalidToken("Invalid OAUTHBEARER client first message: a value has unprintable characters")
        values[name] = value
    authorization = values.pop(_AUTH, None)
    if authorization is None:
        raise InvalidToken("Invalid OAUTHBEARER client first message: 'auth' not specified")
    parts = _AUTHORIZATION.fullmatch(authorization)
    if parts is None or parts[1].lower() != _SCHEME:
        raise InvalidToken("Invalid scheme in OAUTHBEARER client first message")
    named = (matched[1] or "").replace("=2C", ",").replace("=3D", "=")
    return ClientFirst(token=parts[2], authorization_id=named, extensions=values)


class OauthServer:
    """The server's side of one exchange."""

    def __init__(self, tokens: TokenValidator) -> None:
        self._tokens = tokens
        self._is_over = False
        self._refusal: str | None = None

    def step(self, token: bytes) -> Challenge | Completed | Wait:
        if self._refusal is not None and token == _SEPARATOR.encode():
            raise AuthenticationFailed(INVALID_TOKEN, self._refusal)
        if self._is_over:
            raise InvalidToken("a message after the last one")
        self._is_over = True
        first = parse_client_first(token)
        return self._answer(first, lambda: self._tokens.check(first.token))

    def _answer(
        self, first: ClientFirst, decide: Callable[[], AcceptedToken | AwaitKeys]
    ) -> Challenge | Completed | Wait:
        try:
            decided = decide()
        except TokenRefused as error:
            self._refusal = str(error)
            return Challenge(INVALID_TOKEN.encode())
        if isinstance(decided, AwaitKeys):
            then = decided.then
            return Wait(decided.fetch, lambda _: self._answer(first, then))
        if first.authorization_id and first.authorization_id != decided.subject:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is "
                f"different from the token's principal name ({decided.subject})"
            )
        return Completed(principal=Principal(USER_TYPE, decided.subject), expires_at_ms=decided.expires_at_ms)


class OauthClient:
    """The client's side of one exchange."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._first = client_first_text(token, extensions)
        self.is_complete = False

    def begin(self) -> bytes:
        return self._first.encode()

    def step(self, challenge: bytes) -> bytes | None:
        if not challenge:
            self.is_complete = True
            return None
        # The server has sent the reason, and fails the authentication when it gets this message.
        return _SEPARATOR.encode()
