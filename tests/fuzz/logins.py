"""Logins that go wrong somewhere: an honest dialogue of each mechanism, hostile from one of its messages on."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from millbeck.security.sasl.exchange import ClientWork
from millbeck.security.sasl.oauthbearer import OauthClient
from millbeck.security.sasl.plain import PlainClient
from millbeck.security.sasl.scram import SaltedPasswords, ScramClient
from millbeck.security.sasl.scram_messages import BY_NAME
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.messages.metadata import ApiVersionsRequest

USER = "alice"
PASSWORD = "the secret of alice"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
BYTES = (0, 1, 0x2C, 0x3D, 0x41, 0x5B, 0x60, 0x7F, 0x80, 0xFF)
_DERIVED = {name: SaltedPasswords() for name in BY_NAME}


def request(message: Any, version: int) -> bytes:
    """A request without its length."""
    key = next(key for key, api in APIS.items() if api.request is type(message))
    body = codec.encoder(type(message), version)(message)
    return request_prefix(key, version, 7, "fuzz", len(body))[4:] + body


class HostileLogin:
    """The client's side of one login; `next_frame` gets the token of the server's last reply."""

    def __init__(self, dice: random.Random, token: Callable[[], str], *, is_honest: bool = False) -> None:
        self._dice = dice
        self.mechanism = dice.choice(MECHANISMS)
        self.is_bare = dice.random() < 0.3
        """Whether tokens are sent without a request header, as after SaslHandshake version 0."""
        self._exchange = self._made(token)
        self._honest_count = 99 if is_honest else dice.choice((0, 1, 1, 2, 2, 3, 3, 4))
        self._sent_count = 0
        self._skips_versions = dice.random() < 0.5

    def _made(self, token: Callable[[], str]) -> Any:
        if self.mechanism == "PLAIN":
            return PlainClient(USER, PASSWORD)
        if self.mechanism == "OAUTHBEARER":
            return OauthClient(token(), {"traceId": "123"} if self._dice.random() < 0.3 else {})
        return ScramClient(BY_NAME[self.mechanism], USER, PASSWORD, "nonce", derived=_DERIVED[self.mechanism])

    @property
    def expects_token(self) -> bool:
        """Whether the reply to the last frame has a token."""
        return self._sent_count > 2

    def next_frame(self, reply: bytes | None) -> bytes | None:
        """The next frame, without its length; None when the honest client has nothing more to send."""
        self._sent_count += 1
        if self._sent_count == 1 and self._skips_versions:
            self._sent_count = 2
        is_hostile = self._sent_count > self._honest_count
        if self._sent_count == 1:
            return self._changed(request(ApiVersionsRequest("fuzz", "1"), 3), is_hostile)
        if self._sent_count == 2:
            return self._changed(request(SaslHandshakeRequest(self.mechanism), 0 if self.is_bare else 1), is_hostile)
        token = self._token(reply)
        if token is None:
            return None
        is_inside = is_hostile and self._dice.random() < 0.7
        token = self._changed(token, is_inside)
        if self.is_bare:
            return self._changed(token, is_hostile and not is_inside)
        return self._changed(request(SaslAuthenticateRequest(token), 2), is_hostile and not is_inside)

    def _token(self, reply: bytes | None) -> bytes | None:
        if reply is None or self._sent_count == 3:
            token: bytes = self._exchange.begin()
            return token
        try:
            step = self._exchange.step(reply)
            if isinstance(step, ClientWork):
                step = step.then(step.job(*step.arguments))
        except Exception:  # the honest part of the client gives up, the hostile part goes on
            return self._dice.randbytes(40)
        found: bytes | None = step
        return found

    def _changed(self, data: bytes, is_hostile: bool) -> bytes:
        if not is_hostile:
            return data
        dice, changed = self._dice, bytearray(data)
        kind = dice.randrange(10)
        if kind == 0:
            return dice.randbytes(dice.randrange(0, 3000))
        if kind == 1:
            return bytes(changed[: dice.randrange(len(changed) + 1)])
        if kind == 2:
            return bytes(changed) * dice.randrange(2, 40)
        if kind == 3:
            position = dice.randrange(len(changed) + 1)
            changed[position:position] = bytes([dice.choice(BYTES)]) * dice.choice((1, 2, 200, 20_000))
            return bytes(changed)
        if kind == 4:
            changed[:2] = struct.pack(">h", dice.choice((*APIS, -1, 0x6082, 32767)))
            return bytes(changed)
        for _ in range(dice.choice((1, 1, 1, 2, 8))):
            if changed:
                changed[dice.randrange(len(changed))] = dice.choice((*BYTES, dice.randrange(256)))
        return bytes(changed)
