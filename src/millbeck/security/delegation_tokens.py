"""Delegation tokens (KIP-48): their HMAC, credential, and authorization to renew and describe them.

A token's password is the HMAC of its id under a key that all nodes have, so it is in no record. Anyone with the key can
compute the password of any token.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Collection
from typing import Final, Protocol

from millbeck.security.sasl.scram import Credential
from millbeck.security.sasl.scram_messages import ITERATIONS_MIN, ScramMechanism, salted_password, scram_keys

SECRET_KEY: Final = "delegation.token.secret.key"
_SALT_SIZE: Final = 20


class Token(Protocol):
    @property
    def owner(self) -> str: ...
    @property
    def requester(self) -> str: ...
    @property
    def renewers(self) -> Collection[str]: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def expiration_timestamp(self) -> int: ...


def token_hmac(secret: str, token_id: str) -> bytes:
    """The token's secret, by which it is named in requests to renew and expire it."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def token_password(secret: str, token_id: str) -> str:
    """The password with which a client logs in by SCRAM; the user name is the token's id."""
    return b2a_base64(token_hmac(secret, token_id), newline=False).decode()


def token_credential(secret: str, token_id: str, mechanism: ScramMechanism) -> Credential:
    """The SCRAM credential of a token, the same on every node. It computes PBKDF2, so it must not run on the event
    loop."""
    salt = mechanism.hmac(secret.encode(), b"salt:" + token_id.encode())[:_SALT_SIZE]
    salted = salted_password(mechanism, token_password(secret, token_id), salt, ITERATIONS_MIN)
    keys = scram_keys(mechanism, salted)
    return Credential(salt=salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=ITERATIONS_MIN)


def is_expired(token: Token, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def may_renew(token: Token, principal: str) -> bool:
    """Whether a principal may renew and expire the token: only its owner and renewers, not superusers."""
    return principal in (token.owner, token.requester) or principal in token.renewers
