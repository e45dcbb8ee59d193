"""Validation of tokens: returns the principal or the reason of the refusal. One class for signed tokens, one for
unsecured ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from millbeck.security.oauth.claims import AcceptedToken, ClaimRules, check_claims
from millbeck.security.oauth.jwt import UNSECURED, TokenRefused, UnverifiedToken, json_object, parse_token, shown
from millbeck.security.oauth.keys import KeySet, check_algorithm, verify_signature


class VerificationKeys(Protocol):
    """The source of verification keys."""

    @property
    def known(self) -> KeySet | None:
        """The keys fetched last; None before the first fetch."""

    def fetch_for(self, key_id: str | None) -> Awaitable[None] | None:
        """Fetch the keys, because the token's key is unknown; None if they were just fetched. Never raises."""


@dataclass(frozen=True, slots=True)
class AwaitKeys:
    """The token can be validated only after the keys have been fetched; then call `then`."""

    fetch: Awaitable[None]
    then: Callable[[], AcceptedToken]


class TokenValidator(Protocol):
    def check(self, text: str) -> AcceptedToken | AwaitKeys:
        """Validate a token; raises `TokenRefused`."""


class SignedTokens:
    """Validates tokens signed by an identity provider."""

    def __init__(self, keys: VerificationKeys, rules: ClaimRules, wall_ms: Callable[[], int]) -> None:
        self._keys = keys
        self._rules = rules
        self._wall_ms = wall_ms

    def check(self, text: str) -> AcceptedToken | AwaitKeys:
        token = parse_token(text)
        check_algorithm(token)
        found = self._find(token)
        if found is not None:
            return found
        fetch = self._keys.fetch_for(token.key_id)
        if fetch is None:
            raise self._unknown(token)

        def then() -> AcceptedToken:
            found = self._find(token)
            if found is None:
                raise self._unknown(token)
            return found

        return AwaitKeys(fetch, then)

    def _find(self, token: UnverifiedToken) -> AcceptedToken | None:
        keys = self._keys.known
        key = None if keys is None else keys.find(token)
        if key is None:
            return None
        return check_claims(verify_signature(token, key), self._rules, self._wall_ms())

    def _unknown(self, token: UnverifiedToken) -> TokenRefused:
        if self._keys.known is None:
            return TokenRefused("the keys of the identity provider could not be fetched yet")
        named = "that fits it" if token.key_id is None else shown(token.key_id)
        return TokenRefused(f"the identity provider has no key {named}")


class UnsecuredTokens:
    """Validates tokens without a signature, which anyone can create; only for development on one machine."""

    def __init__(self, rules: ClaimRules, wall_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._wall_ms = wall_ms

    def check(self, text: str) -> AcceptedToken:
        token = parse_token(text)
        if token.algorithm != UNSECURED or token.signature:
            raise TokenRefused(
                "the token is signed, but no keys are configured: set sasl.oauthbearer.jwks.endpoint.url"
            )
        return check_claims(json_object(token.claims, "claims"), self._rules, self._wall_ms())
