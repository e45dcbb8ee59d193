"""Assertions: tokens that a client signs with its own key to authenticate to an identity provider (RFC 7523).

Claims come from the settings, a template and the clock, in ascending precedence. A template is a file with a JSON
object of ``header`` and ``payload``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.security.oauth.jwt import TokenRefused, encoded, json_object, unsigned_text

ALGORITHMS: Final = ("RS256", "ES256")
_KEY_TYPES: Final = {"RS256": "RSA", "ES256": "EC"}


class AssertionFailed(Exception):
    """The assertion cannot be created; the message has the reason, without content of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionClaims:
    """The properties of assertions."""

    algorithm: str = "RS256"
    issuer: str | None = None
    subject: str | None = None
    audience: str | None = None
    lifetime_s: int = 300
    valid_before_s: int = 60
    """The time before its creation from which it is valid, because clocks differ."""
    has_id: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """The claims of the template."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """The header fields of the template."""

    def complete(self, now_ms: int, token_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and claims of an assertion created now."""
        now_s = now_ms // 1000
        named = {"aud": self.audience, "iss": self.issuer, "sub": self.subject}
        claims = {name: value for name, value in named.items() if value is not None} | dict(self.fixed)
        claims |= {"iat": now_s, "exp": now_s + self.lifetime_s, "nbf": now_s - self.valid_before_s}
        if self.has_id:
            claims["jti"] = token_id
        return {**self.header, "alg": self.algorithm, "typ": "JWT"}, claims


def template_of(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a template file. Raises `AssertionFailed`."""
    try:
        template = json_object(data, "template")
    except TokenRefused as error:
        raise AssertionFailed(str(error)) from None
    header, payload = template.get("header", {}), template.get("payload", {})
    if not isinstance(header, dict) or not isinstance(payload, dict):
        raise AssertionFailed("header and payload of the template must be JSON objects")
    return header, payload


def signed_assertion(
    claims: AssertionClaims, key_pem: bytes, passphrase: str | None, *, now_ms: int, token_id: str
) -> str:
    """Sign an assertion. Raises `AssertionFailed`. It takes milliseconds, so run it on a thread."""
    try:
        from joserfc.jws import JWSRegistry
    except ImportError as error:
        raise AssertionFailed("signing needs pip install 'millbeck[security]'") from error
    key = _key_of(key_pem, passphrase, claims.algorithm)
    header, body = claims.complete(now_ms, token_id)
    text = unsigned_text(header, body)
    try:
        model: Any = JWSRegistry.algorithms[claims.algorithm]
        model.check_key(key)
        return f"{text}.{encoded(model.sign(text.encode(), key))}"
    except Exception:
        raise AssertionFailed(f"the private key cannot sign by {claims.algorithm}") from None


def _key_of(pem: bytes, passphrase: str | None, algorithm: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from joserfc.jwk import JWKRegistry

    try:
        private: Any = load_pem_private_key(pem, None if passphrase is None else passphrase.encode())
    except TypeError:
        missing = "has a passphrase, which is not set" if passphrase is None else "has no passphrase, but one is set"
        raise AssertionFailed(f"the private key {missing}") from None
    except Exception:  # the library raises many kinds of errors; none of them may show a part of the key
        raise AssertionFailed(
            "the private key cannot be read: it must be a PEM file, and its passphrase must be right"
        ) from None
    try:
        return JWKRegistry.import_key(private, _KEY_TYPES[algorithm])
    except Exception:
        raise AssertionFailed(f"the private key cannot sign by {algorithm}") from None
