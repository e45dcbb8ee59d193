"""The interfaces of SASL mechanisms: one exchange of tokens, on the server's side and on the client's.

A `ServerExchange` gets the client's tokens one after the other and answers each with a `Challenge`, the last one with
`Completed`. Steps that are too slow for the event loop are returned as `Work`, and their result is passed back. So
every step stays synchronous, and the simulator runs the same code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from millbeck.security.principal import Principal

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"


class AuthenticationFailed(Exception):
    """Authentication failed. The client gets this text; the log also has the reason."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = f"{text}: {reason}" if reason else text


class InvalidToken(Exception):
    """Authentication failed; the message is only logged, and the client gets a message without the reason."""


class CannotLogIn(Exception):
    """On the client's side: the credentials cannot be used, or do not fit the server."""


class ServerNotTrusted(Exception):
    """On the client's side: the server's response is wrong, so it may not be the expected broker."""


@dataclass(frozen=True, slots=True)
class Challenge:
    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The client is authenticated; ``token`` is the server's last."""

    principal: Principal
    token: bytes = field(default=b"", repr=False)
    expires_at_ms: int | None = None
    """Wall clock time at which the credential expires."""


@dataclass(frozen=True, slots=True)
class Work:
    """A pure function to run off the event loop; ``then`` gets its result and returns the step."""

    job: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    then: Callable[[Any], Challenge | Completed]


@dataclass(frozen=True, slots=True)
class Wait:
    """Something to wait for that needs no CPU time, such as an answer from another server; ``then`` gets its result and
    returns the step."""

    until: Awaitable[Any] = field(repr=False)
    then: Callable[[Any], Step]


Step = Challenge | Completed | Work | Wait


class ServerExchange(Protocol):
    def step(self, token: bytes) -> Step:
        """Answer the client's next token; raises `AuthenticationFailed` or `InvalidToken`."""


class ClientExchange(Protocol):
    """The client's side; `begin` and `step` return the next token."""

    @property
    def is_complete(self) -> bool:
        """Whether the exchange is complete, including the server's proof if the mechanism has one."""

    def begin(self) -> bytes | ClientWork: ...

    def step(self, challenge: bytes) -> bytes | ClientWork | None:
        """Answer the server's challenge; returns None when there is nothing more to send.

        Raises `AuthenticationFailed`, `CannotLogIn` or `ServerNotTrusted`.
        """


@dataclass(frozen=True, slots=True)
class ClientWork:
    """Like `Work`, for a client: ``then`` returns the next token."""

    job: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    then: Callable[[Any], bytes]
