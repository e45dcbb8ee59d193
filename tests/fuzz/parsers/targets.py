"""What is fuzzed: each parser, the errors that it may raise, and inputs to begin with. Any other error is a find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.oauth.claims import ClaimRules, check_claims
from millbeck.security.oauth.jwt import TokenRefused, json_object, parse_token, unsigned_text
from millbeck.security.principal_bytes import decode_principal
from millbeck.security.sasl.exchange import AuthenticationFailed, InvalidToken
from millbeck.security.sasl.jaas import parse_jaas
from millbeck.security.sasl.oauthbearer import client_first_text
from millbeck.security.sasl.oauthbearer import parse_client_first as parse_oauth_first
from millbeck.security.sasl.plain import ListedPasswords, PlainServer
from millbeck.security.sasl.scram import Credential, KnownUser, ScramServer
from millbeck.security.sasl.scram_messages import (
    ScramMechanism,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)
from millbeck.security.tls import der
from millbeck.security.tls.certificate import parse_certificate
from millbeck.security.tls.distinguished_name import format_name
from millbeck.security.tls.jks import JksError, read_jks
from millbeck.security.tls.pem import certificates
from millbeck.security.tls.stores import StoreError, read_key_store, read_trust_store
from millbeck.wire.errors import DecodeError

STORES = Path(__file__).parents[2] / "unit" / "security" / "tls" / "stores"
STORE_PASSWORD = "store-secret"


@dataclass(frozen=True, slots=True)
class Target:
    parse: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]

    def __call__(self, data: bytes) -> None:
        try:
            self.parse(data)
        except self.errors:
            pass


class NoUsers:
    strongest = ScramMechanism.SHA_256

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser | None:
        return None

    def token(self, mechanism: ScramMechanism, token_id: str) -> None:
        return None

    def decoy(self, mechanism: ScramMechanism, name: str) -> Credential:
        return Credential(salt=b"salt", stored_key=bytes(32), server_key=bytes(32), iterations=4096)


def scram_server(data: bytes) -> None:
    """Two messages, the second after the first zero byte."""
    server = ScramServer(ScramMechanism.SHA_256, NoUsers(), lambda: "s")
    first, _, final = data.partition(b"\0")
    server.step(first)
    server.step(final)
    raise AssertionError("nobody has an account")


def scram_messages(data: bytes) -> None:
    kind, token = data[:1], data[1:]
    if kind == b"0":
        parse_client_first(token)
    elif kind == b"1":
        parse_client_final(token)
    elif kind == b"2":
        parse_server_first(token)
    else:
        parse_server_final(token)


def jwt(data: bytes) -> None:
    token = parse_token(data.decode("latin-1"))
    claims = json_object(token.claims, "claims")
    accepted = check_claims(claims, ClaimRules(audiences=("kafka",)), 1_700_000_000_000)
    assert accepted.expires_at_ms >= 1_700_000_000_000 - 30_000


def plain(data: bytes) -> None:
    PlainServer(ListedPasswords({"alice": "alice-secret"})).step(data)


def jaas(data: bytes) -> None:
    parse_jaas(data.decode("utf-8", "replace"), "sasl.jaas.config")


def name(data: bytes) -> None:
    text = format_name(der.read_only(data))
    assert len(text) <= 20 * len(data) + 20


def elements(data: bytes) -> None:
    for each in der.read_all(data):
        assert len(each.content) <= len(data)


def _seed(file: str) -> bytes:
    return (STORES / file).read_bytes()


def _certificate() -> bytes:
    return certificates(_seed("node.pem"))[0]


def _token() -> bytes:
    claims = {"sub": "alice", "aud": ["kafka"], "iat": 1_699_999_999, "exp": 1_700_000_100, "scope": "a b"}
    return f"{unsigned_text({'alg': 'ES256', 'kid': 'k', 'typ': 'at+jwt'}, claims)}.c2lnbmF0dXJl".encode()


SASL_ERRORS = (InvalidToken, AuthenticationFailed)

TARGETS: dict[str, Target] = {
    "scram": Target(
        scram_messages,
        SASL_ERRORS,
        (
            b"0n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            b"0y,a=u=2Cs=3Der,n=u=2Cs=3Der,r=abc,tokenauth=true",
            b"1c=biws,r=rOprNGfwEbeRWgbNEkqO,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            b"2r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            b"3v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ),
    "scram-server": Target(scram_server, SASL_ERRORS, (b"n,,n=user,r=c\0c=biws,r=cs,p=" + b"A" * 43 + b"=",)),
    "plain": Target(plain, SASL_ERRORS, (b"\0alice\0alice-secret", b"alice\0alice\0alice-secret")),
    "oauthbearer": Target(
        parse_oauth_first,
        SASL_ERRORS,
        (client_first_text("a.b.c", {"traceId": "1"}).encode(), b"n,a=x,\1auth=Bearer a\1\1"),
    ),
    "jwt": Target(jwt, (TokenRefused,), (_token(),)),
    "jaas": Target(
        jaas,
        (InvalidConfig,),
        (b'org.apache.kafka.common.security.plain.PlainLoginModule required username="a\\"b" user_a=\'x\' /* c */;',),
    ),
    "der": Target(elements, (der.DerError,), (_certificate(),)),
    "certificate": Target(parse_certificate, (der.DerError,), (_certificate(),)),
    "name": Target(name, (der.DerError,), (bytes.fromhex("300d310b300906035504030c0261c3"),)),
    "jks": Target(lambda data: read_jks(data, None), (JksError,), (_seed("trust.jks"), _seed("key.jks"))),
    "trust-store": Target(
        lambda data: read_trust_store(data, password=None), (StoreError,), (_seed("trust.jks"), _seed("node.pem"))
    ),
    "key-store": Target(
        lambda data: read_key_store(data, store_password=STORE_PASSWORD, key_password=None),
        (StoreError,),
        (_seed("key.jks"), _seed("node.pem")),
    ),
    "principal": Target(decode_principal, (DecodeError,), (bytes.fromhex("0000055573657206616c6963650000"),)),
}
