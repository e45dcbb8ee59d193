"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken, and the removal of tokens that have expired.

Times are wall-clock times, because tokens outlive processes.
"""

from __future__ import annotations

import hmac
from typing import Final

from millbeck.controller.options import TokenOptions
from millbeck.controller.result import RECORD_COUNT_MAX, Result, Steps
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
    PolicyViolation,
    UnsupportedVersion,
)
from millbeck.kernel.ids import uuid_text
from millbeck.metadata.features import DELEGATION_TOKENS_FROM
from millbeck.metadata.image import DelegationToken, MetadataImage
from millbeck.metadata.records import DelegationTokenRecord, MetadataRecord, RemoveDelegationTokenRecord
from millbeck.security.delegation_tokens import is_expired, may_renew, token_hmac
from millbeck.security.principal import USER_TYPE, Principal
from millbeck.wire.messages.authentication import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

TOKENS_PER_OWNER_MAX: Final = 10_000
"""Everybody who has logged in may create tokens, which every node has in memory until they expire."""
RENEWERS_LENGTH_MAX: Final = 4096
TOKENS_AT_ONCE: Final = 200
"""The number of tokens compared per step; each comparison computes an HMAC."""


class DelegationTokenControl:
    """Creates, renews and expires tokens; methods raise `ApiError` for a refused request."""

    def __init__(self, options: TokenOptions) -> None:
        self._options = options

    def create(
        self,
        image: MetadataImage,
        request: CreateDelegationTokenRequest,
        *,
        requester: Principal,
        now_ms: int,
        randomness: Randomness,
    ) -> Result[CreateDelegationTokenResponse]:
        """Create a token for the owner that the request names, by default for the requester."""
        self._check_enabled(image)
        owner = owner_of(request, requester)
        if not owner.type or any(each.principal_type != USER_TYPE for each in request.renewers):
            raise InvalidPrincipalType
        if sum(len(each.principal_name) + 1 for each in request.renewers) > RENEWERS_LENGTH_MAX:
            raise PolicyViolation(f"the names of the renewers are longer than {RENEWERS_LENGTH_MAX} characters")
        if sum(token.owner == owner.text for token in image.delegation_tokens.by_id.values()) >= TOKENS_PER_OWNER_MAX:
            raise PolicyViolation(
                f"{owner.text} has {TOKENS_PER_OWNER_MAX} delegation tokens, as many as one owner may have: expire some"
            )
        options = self._options
        max_ms = now_ms + options.lifetime_ms_max
        if request.max_lifetime_ms > 0:
            max_ms = min(max_ms, now_ms + request.max_lifetime_ms)
        expires_ms = min(max_ms, now_ms + options.expiry_time_ms)
        token_id = uuid_text(randomness.uuid())
        while token_id in image.delegation_tokens.by_id:
            token_id = uuid_text(randomness.uuid())
        record = DelegationTokenRecord(
            owner=owner.text,
            requester=requester.text,
            renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
            issue_timestamp=now_ms,
            max_timestamp=max_ms,
            expiration_timestamp=expires_ms,
            token_id=token_id,
        )
        response = CreateDelegationTokenResponse(
            principal_type=owner.type,
            principal_name=owner.name,
            issue_timestamp_ms=now_ms,
            expiry_timestamp_ms=expires_ms,
            max_timestamp_ms=max_ms,
            token_id=token_id,
            hmac=token_hmac(options.secret, token_id),
        )
        return Result(response=response, records=[record])

    def renew(
        self, image: MetadataImage, request: RenewDelegationTokenRequest, *, requester: Principal, now_ms: int
    ) -> Steps[Result[RenewDelegationTokenResponse]]:
        self._check_enabled(image)
        token_id, token = yield from self._token(image, request.hmac)
        if is_expired(token, now_ms):
            raise DelegationTokenExpired
        if not may_renew(token, requester.text):
            raise DelegationTokenOwnerMismatch
        period_ms = self._options.expiry_time_ms
        if request.renew_period_ms > 0:
            period_ms = min(period_ms, request.renew_period_ms)
        expires_ms = min(now_ms + period_ms, token.max_timestamp)
        response = RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
        return Result(response=response, records=[_with_expiry(token_id, token, expires_ms)])

    def expire(
        self, image: MetadataImage, request: ExpireDelegationTokenRequest, *, requester: Principal, now_ms: int
    ) -> Steps[Result[ExpireDelegationTokenResponse]]:
        """Set a token's expiration time; a negative period removes the token at once."""
        self._check_enabled(image)
        token_id, token = yield from self._token(image, request.hmac)
        if not may_renew(token, requester.text):
            raise DelegationTokenOwnerMismatch
        period_ms = request.expiry_time_period_ms
        if period_ms < 0:
            response = ExpireDelegationTokenResponse(expiry_timestamp_ms=period_ms)
            return Result(response=response, records=[RemoveDelegationTokenRecord(token_id=token_id)])
        if is_expired(token, now_ms):
            raise DelegationTokenExpired
        expires_ms = min(now_ms + period_ms, token.max_timestamp)
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
        return Result(response=response, records=[_with_expiry(token_id, token, expires_ms)])

    def remove_expired(self, image: MetadataImage, *, now_ms: int) -> Steps[Result[None]]:
        """Remove the tokens that have expired, at most a batch of them."""
        records: list[MetadataRecord] = []
        for position, (token_id, token) in enumerate(image.delegation_tokens.by_id.items(), 1):
            if is_expired(token, now_ms) and len(records) < RECORD_COUNT_MAX:
                records.append(RemoveDelegationTokenRecord(token_id=token_id))
            if position % TOKENS_AT_ONCE == 0:
                yield
        return Result(response=None, records=records)

    def _check_enabled(self, image: MetadataImage) -> None:
        if not self._options.secret:
            raise DelegationTokenAuthDisabled
        if image.features.metadata_version < DELEGATION_TOKENS_FROM:
            raise UnsupportedVersion("The current metadata.version does not support delegation tokens")

    def _token(self, image: MetadataImage, secret: bytes) -> Steps[tuple[str, DelegationToken]]:
        """The token with that HMAC. All tokens are compared, so that the duration reveals nothing."""
        found: tuple[str, DelegationToken] | None = None
        for position, (token_id, token) in enumerate(image.delegation_tokens.by_id.items(), 1):
            if hmac.compare_digest(token_hmac(self._options.secret, token_id), secret):
                found = token_id, token
            if position % TOKENS_AT_ONCE == 0:
                yield
        if found is None:
            raise DelegationTokenNotFound
        return found


def owner_of(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """The owner of the requested token."""
    if not request.owner_principal_name:
        return requester
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _with_expiry(token_id: str, token: DelegationToken, expires_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expires_ms,
        token_id=token_id,
    )
