"""The keys of an identity provider (JWKS, RFC 7517), and signatures verified with them.

The algorithms are those with a public key: a public key must not be used as a shared secret (HS256), and a token
without signature (none) proves nothing. joserfc and cryptography do the cryptography; they are imported when the first
key set is read, or by `check_installed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.oauth.jwt import TokenRefused, UnverifiedToken, json_object, shown

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
KEYS_MAX: Final = 1000
_KEY_TYPES: Final = ("RSA", "EC", "OKP")
_RSA_BITS: Final = (2048, 16386)
_BITS_PER_CHARACTER: Final = 6
_SIGNATURE: Final = "sig"
_VERIFY: Final = "verify"


def check_installed(setting: str) -> None:
    """Raise `InvalidConfig` if the libraries are missing. Importing them takes 50 ms, so this must not happen while
    connections wait."""
    try:
        import joserfc.jwk
        import joserfc.jws  # noqa: F401
    except ImportError as error:
        raise InvalidConfig(f"{setting}: OAUTHBEARER needs pip install 'millbeck[security]'") from error


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and what it may be used for."""

    key_id: str | None
    algorithm: str | None
    """The algorithm of the key; None allows every algorithm for its type."""
    key: Any

    def fits(self, algorithm: str) -> bool:
        """Whether the key can verify a signature of this algorithm."""
        from joserfc.errors import JoseError

        if self.algorithm is not None and self.algorithm != algorithm:
            return False
        try:
            _model(algorithm).check_key(self.key)
        except (JoseError, ValueError):
            return False
        return True


class KeySet:
    """The keys that a provider publishes for verifying signatures."""

    def __init__(self, keys: tuple[SigningKey, ...], *, ignored: int = 0) -> None:
        self.keys = keys
        self.ignored = ignored
        """The number of ignored keys: those for other purposes or of unknown types."""
        self._by_id: dict[str, list[SigningKey]] = {}
        for key in keys:
            if key.key_id is not None:
                self._by_id.setdefault(key.key_id, []).append(key)

    def find(self, token: UnverifiedToken) -> SigningKey | None:
        """The key named by the token, None if it is unknown. A token without a key id is verified only if a single key
        is suitable."""
        named = self.keys if token.key_id is None else self._by_id.get(token.key_id, ())
        fitting = [key for key in named if key.fits(token.algorithm)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise TokenRefused(f"{len(fitting)} keys may have signed the token, and its header has no key id")
        if named and token.key_id is not None:
            raise TokenRefused(f"the key {shown(token.key_id)} is not for signatures by {shown(token.algorithm)}")
        return None


def parse_key_set(data: bytes) -> KeySet:
    """Read a key set. Unusable keys are ignored; raises ValueError if no key is usable. It may take milliseconds, so
    run it on a thread."""
    try:
        listed = json_object(data, "answer").get("keys")
    except TokenRefused as error:
        raise ValueError(f"not a key set: {error}") from None
    if not isinstance(listed, list):
        raise ValueError("not a key set: it has no list of keys")
    if len(listed) > KEYS_MAX:
        raise ValueError(f"{len(listed)} keys are more than {KEYS_MAX}")
    keys = [key for each in listed if isinstance(each, dict) and (key := _signing_key(each)) is not None]
    if not keys:
        raise ValueError(f"none of its {len(listed)} keys can verify a signature")
    return KeySet(tuple(keys), ignored=len(listed) - len(keys))


def check_algorithm(token: UnverifiedToken) -> None:
    """Check the algorithm of a token; raises `TokenRefused`."""
    if token.algorithm not in ALGORITHMS:
        raise TokenRefused(f"signatures by {shown(token.algorithm)} are not accepted: one of {', '.join(ALGORITHMS)}")


def verify_signature(token: UnverifiedToken, key: SigningKey) -> dict[str, Any]:
    """Verify the signature and return the claims, which are then trustworthy. Raises `TokenRefused`."""
    check_algorithm(token)
    try:
        is_genuine = _model(token.algorithm).verify(token.signed, token.signature, key.key)
    except Exception:  # whatever the library finds wrong with a signature, it does not count
        is_genuine = False
    if not is_genuine:
        raise TokenRefused(f"the signature is not by the key {shown(key.key_id)}")
    return json_object(token.claims, "claims")


def _model(algorithm: str) -> Any:
    from joserfc.jws import JWSRegistry

    return JWSRegistry.algorithms[algorithm]


def _signing_key(given: Mapping[str, Any]) -> SigningKey | None:
    """Parse a key; None if it is not for signatures, or cannot be read."""
    from joserfc.jwk import JWKRegistry

    key_id, algorithm, operations = given.get("kid"), given.get("alg"), given.get("key_ops", [_VERIFY])
    is_for_signatures = given.get("use", _SIGNATURE) == _SIGNATURE and isinstance(operations, list)
    if given.get("kty") not in _KEY_TYPES or not is_for_signatures or _VERIFY not in operations:
        return None
    if algorithm is not None and algorithm not in ALGORITHMS:
        return None
    if given["kty"] == "RSA" and not _RSA_BITS[0] <= _bits(given.get("n")) <= _RSA_BITS[1]:
        return None
    try:
        # Only the members of the public key; the members about its use were checked above.
        parts = {name: value for name, value in given.items() if name in ("kty", "n", "e", "crv", "x", "y")}
        key = JWKRegistry.import_key(parts)
        key.get_op_key(_VERIFY)  # made here, and not while a connection waits
    except Exception:  # the library raises many kinds of errors for keys that make no sense
        return None
    return SigningKey(key_id if isinstance(key_id, str) else None, algorithm, key)


def _bits(modulus: object) -> int:
    """The size of an RSA key, computed from the length of its text, so that a key that is too large is not parsed."""
    text = modulus if isinstance(modulus, str) else ""
    return len(text) * _BITS_PER_CHARACTER
