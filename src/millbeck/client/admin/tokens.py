"""Admin calls for delegation tokens: create, describe, renew and expire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millbeck.client.admin.routing import call_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import from_code
from millbeck.security.principal import Principal
from millbeck.wire.messages.authentication import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_BY_DEFAULT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A delegation token; times are wall-clock milliseconds."""

    token_id: str
    """The user name to log in with."""
    hmac: bytes = field(repr=False)
    """The token's HMAC; in base64 it is the password to log in with."""
    owner: Principal
    requester: Principal | None
    """The requester; None if the broker does not return it."""
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time beyond which it cannot be renewed."""


async def create_token(
    cluster: Cluster,
    *,
    owner: Principal | None,
    renewers: Iterable[Principal],
    lifetime_ms_max: int | None,
    timeout_s: float | None,
) -> DelegationToken:
    """Create a token, by default for this client's own principal."""
    named = tuple(renewers)
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner.type,
        owner_principal_name=None if owner is None else owner.name,
        renewers=[CreatableRenewers(each.type, each.name) for each in named],
        max_lifetime_ms=_BY_DEFAULT if lifetime_ms_max is None else lifetime_ms_max,
    )

    async def attempt(deadline: Deadline) -> DelegationToken:
        response = await call_controller(cluster, request, CreateDelegationTokenResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code)
        return DelegationToken(
            token_id=response.token_id,
            hmac=response.hmac,
            owner=Principal(response.principal_type, response.principal_name),
            requester=_known(response.token_requester_principal_type, response.token_requester_principal_name),
            renewers=named,
            issued_ms=response.issue_timestamp_ms,
            expires_ms=response.expiry_timestamp_ms,
            max_ms=response.max_timestamp_ms,
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_tokens(
    cluster: Cluster, owners: Iterable[Principal] | None, *, timeout_s: float | None
) -> tuple[DelegationToken, ...]:
    """The tokens that this client may describe, of all or of some owners, with their HMACs."""
    named = None if owners is None else [DescribeDelegationTokenOwner(each.type, each.name) for each in owners]

    async def attempt(deadline: Deadline) -> tuple[DelegationToken, ...]:
        request = DescribeDelegationTokenRequest(owners=named)
        response = await cluster.request(request, DescribeDelegationTokenResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code)
        return tuple(
            DelegationToken(
                token_id=each.token_id,
                hmac=each.hmac,
                owner=Principal(each.principal_type, each.principal_name),
                requester=_known(each.token_requester_principal_type, each.token_requester_principal_name),
                renewers=tuple(Principal(one.principal_type, one.principal_name) for one in each.renewers),
                issued_ms=each.issue_timestamp,
                expires_ms=each.expiry_timestamp,
                max_ms=each.max_timestamp,
            )
            for each in response.tokens
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def renew_token(cluster: Cluster, hmac: bytes, *, period_ms: int | None, timeout_s: float | None) -> int:
    """Renew a token for a period, by default the broker's default; returns the new expiration time."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=_BY_DEFAULT if period_ms is None else period_ms)

    async def attempt(deadline: Deadline) -> int:
        response = await call_controller(cluster, request, RenewDelegationTokenResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code)
        return response.expiry_timestamp_ms

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def expire_token(cluster: Cluster, hmac: bytes, *, period_ms: int | None, timeout_s: float | None) -> int:
    """Set the expiration of a token, by default to now, which removes it. Returns the expiration time, or -1."""
    request = ExpireDelegationTokenRequest(
        hmac=hmac, expiry_time_period_ms=_BY_DEFAULT if period_ms is None else period_ms
    )

    async def attempt(deadline: Deadline) -> int:
        response = await call_controller(cluster, request, ExpireDelegationTokenResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code)
        return response.expiry_timestamp_ms

    return await cluster.retrying(attempt, timeout_s=timeout_s)


def _known(kind: str, name: str) -> Principal | None:
    return Principal(kind, name) if kind and name else None
