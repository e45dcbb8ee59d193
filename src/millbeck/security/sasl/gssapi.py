"""GSSAPI (RFC 4752): Kerberos tickets; the exchange on both sides, without a security layer of its own.

    client: token of the GSS-API --> server; token <-- server; …until both sides are complete
    server: wrapped (layers that it offers: none) --> client; wrapped (layer chosen, authorization id) <-- client

The principal is made from the name that Kerberos has authenticated. The authorization id is not used, as in Kafka:
some clients send the name of the service in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from millbeck.kernel.kerberos import KerberosContext, KerberosFailed
from millbeck.security.kerberos_names import NoKerberosRule
from millbeck.security.principal import USER_TYPE, Principal
from millbeck.security.sasl.exchange import CannotLogIn, Challenge, ClientWork, Completed, InvalidToken, Work

NO_LAYER: Final = 1
_OFFER: Final = bytes([NO_LAYER, 0, 0, 0])
"""The only layer is none; then the message size is 0."""
_OFFER_SIZE: Final = len(_OFFER)
_TOKENS_MAX: Final = 8
"""Kerberos needs one or two tokens of the GSS-API."""

Begin = Callable[[], KerberosContext]


def _attempt(job: Callable[..., Any], *arguments: Any) -> Any:
    """Run a job on a thread; what Kerberos refuses is its result."""
    try:
        return job(*arguments)
    except KerberosFailed as failure:
        return failure


def _next_token(context: KerberosContext | None, begin: Begin, token: bytes) -> tuple[KerberosContext, bytes, bytes]:
    """One token further; returns the context, the next token, and the server's offer if it can be sent now."""
    context = begin() if context is None else context
    answer = context.step(token)
    return context, answer, context.wrap(_OFFER) if context.is_complete and not answer else b""


class GssapiServer:
    """The server's side of one exchange."""

    def __init__(self, accept: Begin, short_name: Callable[[str], str]) -> None:
        """``short_name`` maps the client's name; it raises `NoKerberosRule`."""
        self._accept = accept
        self._short_name = short_name
        self._context: KerberosContext | None = None
        self._count = 0
        self._has_offered = False
        self._is_over = False
        self.claimed_user = ""

    def step(self, token: bytes) -> Work:
        self._count += 1
        if self._is_over or self._count > _TOKENS_MAX:
            raise InvalidToken("a message after the last one")
        context = self._context
        if context is None or not context.is_complete:
            if not token:
                raise InvalidToken("an empty token")
            return Work(_attempt, (_next_token, context, self._accept, token), self._accepted)
        if self._has_offered:
            self._is_over = True
            return Work(_attempt, (context.unwrap, token), self._chosen)
        if token:
            raise InvalidToken("expected an empty message after the last token")
        self._has_offered = True
        return Work(_attempt, (context.wrap, _OFFER), self._offered)

    def _accepted(self, result: tuple[KerberosContext, bytes, bytes] | KerberosFailed) -> Challenge:
        self._context, answer, offer = _checked(result)
        if self._context.is_complete:
            self.claimed_user = self._context.client
        if offer:
            self._has_offered = True
        return Challenge(answer or offer)

    @staticmethod
    def _offered(result: bytes | KerberosFailed) -> Challenge:
        return Challenge(_checked(result))

    def _chosen(self, result: bytes | KerberosFailed) -> Completed:
        chosen: bytes = _checked(result)
        if len(chosen) < _OFFER_SIZE or chosen[0] != NO_LAYER:
            raise InvalidToken("the client chose a security layer that was not offered")
        try:
            name = self._short_name(self.claimed_user)
        except NoKerberosRule as error:
            raise InvalidToken(str(error)) from None
        return Completed(principal=Principal(USER_TYPE, name))


def _checked(result: Any) -> Any:
    if isinstance(result, KerberosFailed):
        raise InvalidToken(str(result))
    return result


class GssapiClient:
    """The client's side of one exchange; Kerberos authenticates the server as well."""

    def __init__(self, initiate: Begin) -> None:
        self._initiate = initiate
        self._context: KerberosContext | None = None
        self._has_chosen = False
        self.is_complete = False

    def begin(self) -> ClientWork:
        return ClientWork(_attempt, (self._step, b""), self._token)

    def step(self, challenge: bytes) -> ClientWork | None:
        if self._has_chosen:
            self.is_complete = True
            return None
        return ClientWork(_attempt, (self._step, challenge), self._token)

    def _step(self, challenge: bytes) -> bytes:
        """Answer a challenge, on a thread."""
        context = self._context
        if context is None:
            context = self._context = self._initiate()
        if not context.is_complete:
            return context.step(challenge)
        offered = context.unwrap(challenge)
        if len(offered) != _OFFER_SIZE or not offered[0] & NO_LAYER:
            raise KerberosFailed("the server demands a security layer of SASL: use security.protocol=SASL_SSL instead")
        self._has_chosen = True
        return context.wrap(_OFFER + context.client.encode())

    @staticmethod
    def _token(result: bytes | KerberosFailed) -> bytes:
        if isinstance(result, KerberosFailed):
            raise CannotLogIn(str(result))
        return result
