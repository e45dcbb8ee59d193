"""PLAIN (RFC 4616): user and password in one token, from the client to the server."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from millbeck.security.principal import USER_TYPE, Principal
from millbeck.security.sasl.exchange import AuthenticationFailed, Completed, InvalidToken, Work
from millbeck.security.sasl.scram import WRONG_AUTHORIZATION_ID

_PARTS: Final = 3
_WRONG: Final = "Authentication failed: Invalid username or password"


class Passwords(Protocol):
    def check(self, user: str, password: str) -> Completed | Work:
        """Check the password of a user; raises `AuthenticationFailed` if it is wrong."""


class PasswordChecker(Protocol):
    """Code of a deployment that knows the passwords of users, such as by asking a directory."""

    def check(self, user: str, password: str) -> bool:
        """Whether this is the user's password. Called on a thread, of which logins have two: it may wait, and must give
        up by itself. Any exception refuses the login."""


class CheckedPasswords:
    """Asks a `PasswordChecker`; whatever it says but True refuses the login."""

    def __init__(self, checker: PasswordChecker, on_failure: Callable[[Exception], None]) -> None:
        self._checker = checker
        self._on_failure = on_failure

    def check(self, user: str, password: str) -> Work:
        def then(answer: object) -> Completed:
            if isinstance(answer, Exception):
                self._on_failure(answer)
            if answer is not True:
                raise AuthenticationFailed(_WRONG)
            return Completed(principal=Principal(USER_TYPE, user))

        return Work(_ask, (self._checker, user, password), then)


def _ask(checker: PasswordChecker, user: str, password: str) -> Any:
    try:
        return checker.check(user, password)
    except Exception as error:
        return error.with_traceback(None)  # its frames have the password


class ListedPasswords:
    """The users of a JAAS configuration."""

    def __init__(self, by_user: Mapping[str, str]) -> None:
        self._by_user = {user: password.encode() for user, password in by_user.items()}

    def check(self, user: str, password: str) -> Completed:
        expected = self._by_user.get(user)
        # An unknown user costs the same comparison.
        is_equal = hmac.compare_digest(password.encode(), b"" if expected is None else expected)
        if expected is None or not is_equal:
            raise AuthenticationFailed(_WRONG)
        return Completed(principal=Principal(USER_TYPE, user))


class PlainServer:
    """The server's side of one exchange."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self._is_over = False
        self.claimed_user = ""

    def step(self, token: bytes) -> Completed | Work:
        if self._is_over:
            raise InvalidToken("a message after the last one")
        self._is_over = True
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise InvalidToken("Invalid SASL/PLAIN response: not UTF-8") from None
        if len(parts) != _PARTS:
            raise InvalidToken(f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}")
        authorization_id, user, password = parts
        self.claimed_user = user
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        step = self._passwords.check(user, password)
        if authorization_id and authorization_id != user:
            # As in Kafka, a wrong password is reported before a wrong authorization id; not so if the password is
            # checked off the event loop, which this skips.
            raise AuthenticationFailed(WRONG_AUTHORIZATION_ID)
        return step


class PlainClient:
    """The client's side of one exchange."""

    is_complete = False

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def begin(self) -> bytes:
        return self._token

    def step(self, challenge: bytes) -> None:
        self.is_complete = True
