"""JSON Web Tokens in compact form (RFC 7515, RFC 7519): parsing and creation, without checks of the claims.

Nothing that `parse_token` returns is trustworthy before the signature is verified. The header's information about keys
(``jwk``, ``jku``, ``x5u``, ``x5c``) is never used: keys come from the configuration alone.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TOKEN_LENGTH_MAX: Final = 128 * 1024
"""The maximum length of a token, longer than any in use, since HTTP limits headers to less."""
KEY_ID_LENGTH_MAX: Final = 1000
UNSECURED: Final = "none"
_PARTS: Final = 3
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_TYPES: Final = ("jwt", "at+jwt", "application/jwt", "application/at+jwt")
_SHOWN_LENGTH_MAX: Final = 40


class TokenRefused(Exception):
    """The token is refused; the message is for the broker's log and never contains the token's signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedToken:
    algorithm: str
    key_id: str | None
    claims: bytes = field(repr=False)
    """The payload, as the signed JSON text."""
    signed: bytes = field(repr=False)
    """The signed bytes: header and payload."""
    signature: bytes = field(repr=False)


def parse_token(text: str) -> UnverifiedToken:
    """Parse a token. Raises `TokenRefused`."""
    if len(text) > TOKEN_LENGTH_MAX:
        raise TokenRefused(f"the token has {len(text)} characters, more than {TOKEN_LENGTH_MAX}")
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise TokenRefused(f"not a signed JWT: {len(parts)} parts instead of header, claims and signature")
    header = json_object(_decoded(parts[0], "header"), "header")
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or not algorithm:
        raise TokenRefused("the header has no alg")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > KEY_ID_LENGTH_MAX):
        raise TokenRefused(f"the header's kid is not a text of at most {KEY_ID_LENGTH_MAX} characters")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        raise TokenRefused(f"the header's typ is {shown(kind)}, not one of an access token: {', '.join(_TYPES)}")
    if "crit" in header:
        raise TokenRefused("the header has critical extensions (crit) that are not supported")
    return UnverifiedToken(
        algorithm=algorithm,
        key_id=key_id,
        claims=_decoded(parts[1], "claims"),
        signed=f"{parts[0]}.{parts[1]}".encode("ascii"),
        signature=_decoded(parts[2], "signature"),
    )


def json_object(text: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object. Repeated names are refused, because one side might read the first value and the other side
    the last. Raises `TokenRefused`."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise TokenRefused(f"the {what} is not valid JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused(f"the {what} is not a JSON object")
    return value


def unsigned_text(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """Header and claims as they are signed."""
    return f"{encoded(_json(header))}.{encoded(_json(claims))}"


def unsecured_token(claims: Mapping[str, Any]) -> str:
    """A token without signature, for development."""
    return unsigned_text({"alg": UNSECURED}, claims) + "."


def encoded(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def shown(value: object) -> str:
    """A value of a token for the log: short, and without control characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "…"


def _decoded(part: str, what: str) -> bytes:
    if not _BASE64_URL.fullmatch(part):
        raise TokenRefused(f"the {what} is not base64 for URLs")
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise TokenRefused(f"the {what} is not base64 for URLs") from None


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name is repeated")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
