"""The messages and keys of SCRAM (RFC 5802, RFC 7677), without channel binding, as Kafka uses it."""

from __future__ import annotations

import hashlib
import hmac
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from millbeck.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512, InvalidToken

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
TOKEN_AUTHENTICATION: Final = "tokenauth"
MESSAGE_LENGTH_MAX: Final = 64 * 1024
"""The maximum size of a message, far above any real one."""


class ScramMechanism(Enum):
    """A mechanism: its number in records and requests, and its hash function."""

    SHA_256 = (1, SCRAM_SHA_256, "sha256")
    SHA_512 = (2, SCRAM_SHA_512, "sha512")

    def __init__(self, number: int, mechanism_name: str, digest: str) -> None:
        self.number = number
        self.mechanism_name = mechanism_name
        self.digest = digest

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.digest)

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.digest, data).digest()

    @property
    def key_size(self) -> int:
        return hashlib.new(self.digest).digest_size


BY_NUMBER: Final[Mapping[int, ScramMechanism]] = {each.number: each for each in ScramMechanism}
BY_NAME: Final[Mapping[str, ScramMechanism]] = {each.mechanism_name: each for each in ScramMechanism}


class ScramKeys(NamedTuple):
    """The two keys that a server stores for a user instead of the password."""

    stored_key: bytes
    server_key: bytes


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """PBKDF2 of the password. It takes milliseconds of CPU time, so it must not run on the event loop."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def scram_keys(mechanism: ScramMechanism, salted: bytes) -> ScramKeys:
    client_key = mechanism.hmac(salted, b"Client Key")
    return ScramKeys(mechanism.hash(client_key), mechanism.hmac(salted, b"Server Key"))


def client_proof(mechanism: ScramMechanism, salted: bytes, authenticated: bytes) -> bytes:
    client_key = mechanism.hmac(salted, b"Client Key")
    return xor(client_key, mechanism.hmac(mechanism.hash(client_key), authenticated))


def xor(one: bytes, other: bytes) -> bytes:
    assert len(one) == len(other)
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(len(one))


# messages

_SASL_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_EXTENSIONS: Final = r"(?P<extensions>(?:,[A-Za-z]+=[^\x00,]+)*)"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2>[ny],(?:a=(?P<authzid>{_SASL_NAME}))?,)(?P<bare>(?:m=[^\x00,]+,)?n=(?P<name>{_SASL_NAME}),"
    rf"r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m=[^\x00,]+,)?r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>[^\x00,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFirst:
    gs2_header: str
    bare: str
    user: str
    authorization_id: str
    nonce: str
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFirst:
    text: str
    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFinal:
    without_proof: str
    binding: bytes
    nonce: str
    proof: bytes


def parse_client_first(token: bytes) -> ClientFirst:
    match = _match(_CLIENT_FIRST, token, "client first")
    return ClientFirst(
        gs2_header=match["gs2"],
        bare=match["bare"],
        user=_unescaped(match["name"]),
        authorization_id=_unescaped(match["authzid"] or ""),
        nonce=match["nonce"],
        extensions=_extensions(match["extensions"]),
    )


def parse_server_first(token: bytes) -> ServerFirst:
    match = _match(_SERVER_FIRST, token, "server first")
    return ServerFirst(
        text=match.group(), nonce=match["nonce"], salt=decode(match["salt"]), iterations=int(match["iterations"])
    )


def parse_client_final(token: bytes) -> ClientFinal:
    match = _match(_CLIENT_FINAL, token, "client final")
    return ClientFinal(
        without_proof=match["without_proof"],
        binding=decode(match["binding"]),
        nonce=match["nonce"],
        proof=decode(match["proof"]),
    )


def parse_server_final(token: bytes) -> tuple[bytes, str | None]:
    """The server's signature, or its error."""
    match = _match(_SERVER_FINAL, token, "server final")
    return decode(match["signature"] or ""), match["error"]


def server_first_text(nonce: str, salt: bytes, iterations: int) -> str:
    return f"r={nonce},s={encode(salt)},i={iterations}"


def encode(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def decode(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True) if text else b""
    except Base64Error as error:
        raise InvalidToken(f"invalid base64: {error}") from None


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _match(pattern: re.Pattern[str], token: bytes, what: str) -> re.Match[str]:
    if len(token) > MESSAGE_LENGTH_MAX:
        raise InvalidToken(f"{what} message of {len(token)} bytes")
    try:
        match = pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise InvalidToken(f"invalid SCRAM {what} message format")
    return match


def _extensions(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: value for name, _, value in pairs}
