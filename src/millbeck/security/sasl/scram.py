"""SCRAM-SHA-256 and SCRAM-SHA-512: the exchange on the server's side and on the client's.

The server stores two keys instead of the password, and proves that it has them. An unknown user gets a salt derived
from the name (`decoy_credential`) and fails like a wrong password: no response reveals which users exist.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from millbeck.security.principal import USER_TYPE, Principal
from millbeck.security.sasl.exchange import (
    AuthenticationFailed,
    Challenge,
    ClientWork,
    Completed,
    InvalidToken,
    ServerNotTrusted,
    Work,
)
from millbeck.security.sasl.scram_messages import (
    ITERATIONS_MIN,
    TOKEN_AUTHENTICATION,
    ClientFirst,
    ScramKeys,
    ScramMechanism,
    ServerFirst,
    client_proof,
    encode,
    escaped,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
    salted_password,
    scram_keys,
    server_first_text,
    xor,
)

WRONG_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""The maximum iterations that a client computes for a server: about half a second."""
_NO_BINDING: Final = b"n,,"
_SALT_SIZE: Final = 20


class StoredCredential(Protocol):
    @property
    def salt(self) -> bytes: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The credential of a user or a delegation token."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownUser:
    """A credential, and the principal of a client that proves it."""

    credential: StoredCredential
    principal: Principal
    expires_at_ms: int | None = None


class ScramUsers(Protocol):
    """The source of a listener's credentials."""

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser | None:
        """The credential of a user of the cluster."""

    def token(self, mechanism: ScramMechanism, token_id: str) -> KnownUser | Work | None:
        """The credential of a delegation token; `Work` derives it and returns a `KnownUser`."""

    @property
    def strongest(self) -> ScramMechanism:
        """The strongest mechanism for which a user of the cluster has a credential."""

    def decoy(self, mechanism: ScramMechanism, name: str) -> StoredCredential:
        """A fake credential for an unknown user, the same on every node; no password matches it."""


def decoy_credential(
    mechanism: ScramMechanism, name: str, *, secret: bytes, like: StoredCredential | None
) -> Credential:
    """A credential derived from the user name, with the iterations of a real one."""
    salt_size = _SALT_SIZE if like is None else len(like.salt)
    salt = (mechanism.hmac(secret, b"salt:" + name.encode()) * (salt_size // mechanism.key_size + 1))[:salt_size]
    key = mechanism.hmac(secret, b"key:" + name.encode())
    iterations = ITERATIONS_MIN if like is None else like.iterations
    return Credential(salt=salt, stored_key=key, server_key=key, iterations=iterations)


class ScramServer:
    """The server's side of one exchange."""

    def __init__(self, mechanism: ScramMechanism, users: ScramUsers, nonce: Callable[[], str]) -> None:
        self._mechanism = mechanism
        self._users = users
        self._nonce = nonce
        self._first: ClientFirst | None = None
        self._sent = ""
        self._full_nonce = ""
        self._known: KnownUser | None = None
        self._credential: StoredCredential | None = None
        self._is_over = False
        self.claimed_user = ""

    def step(self, token: bytes) -> Challenge | Completed | Work:
        if self._is_over:
            raise InvalidToken("a message after the last one")
        if self._first is None:
            return self._client_first(token)
        self._is_over = True
        return self._client_final(token)

    def _client_first(self, token: bytes) -> Challenge | Work:
        first = self._first = parse_client_first(token)
        self.claimed_user = first.user
        if first.authorization_id and first.authorization_id != first.user:
            raise AuthenticationFailed(WRONG_AUTHORIZATION_ID)
        if first.extensions.get(TOKEN_AUTHENTICATION, "").lower() == "true":
            found = self._users.token(self._mechanism, first.user)
            if isinstance(found, Work):
                then = found.then
                return Work(found.job, found.arguments, lambda result: self._answer(then(result)))
        else:
            found = self._users.user(self._mechanism, first.user)
        return self._answer(found)

    def _answer(self, known: object) -> Challenge:
        assert known is None or isinstance(known, KnownUser)
        first = self._first
        assert first is not None
        self._known = known
        credential = self._users.decoy(self._mechanism, first.user) if known is None else known.credential
        if credential.iterations < ITERATIONS_MIN:
            raise InvalidToken(f"{credential.iterations} iterations are fewer than {ITERATIONS_MIN}")
        self._credential = credential
        self._full_nonce = first.nonce + self._nonce()
        self._sent = server_first_text(self._full_nonce, credential.salt, credential.iterations)
        return Challenge(self._sent.encode())

    def _client_final(self, token: bytes) -> Completed:
        final = parse_client_final(token)
        first, credential, mechanism = self._first, self._credential, self._mechanism
        assert first is not None
        assert credential is not None
        if not hmac.compare_digest(final.nonce.encode(), self._full_nonce.encode()):
            raise InvalidToken("invalid nonce in the client final message")
        # Kafka's Java client sends the header without an authorization id whatever it sent first.
        if final.binding not in (first.gs2_header.encode(), _NO_BINDING):
            raise InvalidToken("invalid channel binding in the client final message")
        if len(final.proof) != mechanism.key_size:
            raise InvalidToken("invalid client proof")
        authenticated = f"{first.bare},{self._sent},{final.without_proof}".encode()
        client_key = xor(final.proof, mechanism.hmac(credential.stored_key, authenticated))
        is_proved = hmac.compare_digest(mechanism.hash(client_key), credential.stored_key)
        if not is_proved or self._known is None:
            raise InvalidToken("invalid client credentials")
        signature = mechanism.hmac(credential.server_key, authenticated)
        known = self._known
        return Completed(
            principal=known.principal, token=f"v={encode(signature)}".encode(), expires_at_ms=known.expires_at_ms
        )


class VerifiedPasswords:
    """Checks passwords of PLAIN against SCRAM credentials (``millbeck.plain.verify=scram``)."""

    def __init__(self, users: ScramUsers) -> None:
        self._users = users

    def check(self, user: str, password: str) -> Work:
        """Check a password; PBKDF2 is computed for unknown users as well, so that the duration does not reveal which
        users exist."""
        mechanism, known = self._users.strongest, None
        for each in reversed(ScramMechanism):
            known = self._users.user(each, user)
            if known is not None:
                mechanism = each
                break
        credential = self._users.decoy(mechanism, user) if known is None else known.credential

        def then(keys: ScramKeys) -> Completed:
            if not hmac.compare_digest(keys.stored_key, credential.stored_key) or known is None:
                raise AuthenticationFailed("Authentication failed: Invalid username or password")
            return Completed(principal=known.principal)

        return Work(_derive, (mechanism, password, credential.salt, credential.iterations), then)


def _derive(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramKeys:
    return scram_keys(mechanism, salted_password(mechanism, password, salt, iterations))


def user_principal(name: str) -> Principal:
    return Principal(USER_TYPE, name)


class SaltedPasswords:
    """A cache of the salted passwords that a client has derived; without it, each new connection would cost
    milliseconds."""

    SIZE_MAX: Final = 16

    def __init__(self) -> None:
        self.known: dict[tuple[bytes, int], bytes] = {}

    def keep(self, salt: bytes, iterations: int, salted: bytes) -> None:
        if len(self.known) >= self.SIZE_MAX:
            self.known.clear()
        self.known[salt, iterations] = salted


class ScramClient:
    """The client's side of one exchange; it checks the server's signature."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: str,
        *,
        is_token: bool = False,
        derived: SaltedPasswords | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        extension = f",{TOKEN_AUTHENTICATION}=true" if is_token else ""
        self._bare = f"n={escaped(user)},r={nonce}{extension}"
        self._derived = derived or SaltedPasswords()
        self._signature: bytes | None = None
        self.is_complete = False

    def begin(self) -> bytes:
        return b"n,," + self._bare.encode()

    def step(self, challenge: bytes) -> bytes | ClientWork | None:
        try:
            if self._signature is None:
                return self._answer(parse_server_first(challenge))
            self._check(challenge)
        except InvalidToken as error:
            raise ServerNotTrusted(str(error)) from None
        return None

    def _answer(self, first: ServerFirst) -> bytes | ClientWork:
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise ServerNotTrusted("the server's nonce does not extend the client's")
        if not ITERATIONS_MIN <= first.iterations <= CLIENT_ITERATIONS_MAX:
            raise ServerNotTrusted(f"the server asks for {first.iterations} iterations of the password's hash")
        salted = self._derived.known.get((first.salt, first.iterations))
        if salted is not None:
            return self._final(first, salted)

        def then(derived: bytes) -> bytes:
            self._derived.keep(first.salt, first.iterations, derived)
            return self._final(first, derived)

        return ClientWork(salted_password, (self._mechanism, self._password, first.salt, first.iterations), then)

    def _final(self, first: ServerFirst, salted: bytes) -> bytes:
        without_proof = f"c={encode(_NO_BINDING)},r={first.nonce}"
        authenticated = f"{self._bare},{first.text},{without_proof}".encode()
        mechanism = self._mechanism
        self._signature = mechanism.hmac(scram_keys(mechanism, salted).server_key, authenticated)
        return f"{without_proof},p={encode(client_proof(mechanism, salted, authenticated))}".encode()

    def _check(self, challenge: bytes) -> None:
        signature, error = parse_server_final(challenge)
        if error is not None:
            raise AuthenticationFailed(f"Authentication failed: {error}")
        assert self._signature is not None
        if not hmac.compare_digest(signature, self._signature):
            raise ServerNotTrusted("the server does not know this user's credential: its signature is wrong")
        self.is_complete = True
