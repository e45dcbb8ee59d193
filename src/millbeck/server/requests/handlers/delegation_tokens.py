"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken.

Behaviour
- Only authenticated clients may send these requests: not on PLAINTEXT listeners, not over TLS without a certificate,
  and not with a delegation token. The broker that the client is connected to checks this before it forwards the
  request.
- Brokers forward changes to the active controller; descriptions are answered by any broker from its own metadata.
- A token of another owner needs CREATE_TOKENS on that user. Owners, requesters and renewers may describe a token;
  others need DESCRIBE on it, or DESCRIBE_TOKENS on its owner.
Versions
- 3: create tokens for another owner (KIP-373).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from millbeck.controller.delegation_tokens import owner_of
from millbeck.kernel.errors import (
    ApiError,
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenRequestNotAllowed,
    NotController,
)
from millbeck.metadata.image import DelegationToken
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.delegation_tokens import may_renew, token_hmac
from millbeck.security.principal import ANONYMOUS, stored_principal
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.authentication import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_NO_TIME = -1
_NAMES_REQUESTER = 3
"""The first version whose responses contain the requester of a token."""


def check_client(call: Call) -> None:
    """Raise for a client that may not create tokens because of how it authenticated."""
    address, principal = call.connection.listener.address, call.principal
    is_proved = address.has_sasl or (address.is_encrypted and principal != ANONYMOUS)
    if principal.is_token or not is_proved:
        raise DelegationTokenRequestNotAllowed


def create_error(request: Any, version: int, error: ApiError) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error.code,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )


@handles(
    38,
    needs=[Need(Operation.CREATE_TOKENS, ResourceType.USER, when="the token is for another owner")],
    error_reply=create_error,
    check_client=check_client,
)
async def handle_create_delegation_token(
    call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    broker, requester = call.broker, call.principal
    owner = owner_of(request, requester)
    now_ms = broker.environment.clock.wall_ms()
    try:
        if owner != requester and not call.may(Operation.CREATE_TOKENS, ResourceType.USER, owner.text):
            raise DelegationTokenAuthorizationFailed
        response = await broker.quorum.submit(
            lambda image: broker.controller.tokens.create(
                image, request, requester=requester, now_ms=now_ms, randomness=broker.environment.randomness
            ),
            by=call,
        )
    except NotController:
        raise
    except ApiError as error:
        response = create_error(request, call.version, error)
        response.principal_type, response.principal_name = owner.type, owner.name
    if call.version >= _NAMES_REQUESTER:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response


def renew_error(request: Any, version: int, error: ApiError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_NO_TIME)


@handles(39, needs=[], error_reply=renew_error, check_client=check_client)
async def handle_renew_delegation_token(
    call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    broker, requester = call.broker, call.principal
    now_ms = broker.environment.clock.wall_ms()
    return await broker.quorum.submit(
        lambda image: broker.controller.tokens.renew(image, request, requester=requester, now_ms=now_ms), by=call
    )


def expire_error(request: Any, version: int, error: ApiError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_NO_TIME)


@handles(40, needs=[], error_reply=expire_error, check_client=check_client)
async def handle_expire_delegation_token(
    call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    broker, requester = call.broker, call.principal
    now_ms = broker.environment.clock.wall_ms()
    return await broker.quorum.submit(
        lambda image: broker.controller.tokens.expire(image, request, requester=requester, now_ms=now_ms), by=call
    )


@handles(
    41,
    needs=[
        Need(
            Operation.DESCRIBE,
            ResourceType.DELEGATION_TOKEN,
            when="a token of another owner; left out if denied",
        )
        | Need(Operation.DESCRIBE_TOKENS, ResourceType.USER)
    ],
    check_client=check_client,
)
async def handle_describe_delegation_token(
    call: Call, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    broker = call.broker
    secret = broker.config.token_secret
    if not secret:
        raise DelegationTokenAuthDisabled
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    slices = TimeSlices(broker.environment.clock)
    tokens = []
    for token_id, token in broker.image.delegation_tokens.by_id.items():
        if _is_visible(call, token_id, token, owners):
            tokens.append(_described(token_id, token, token_hmac(secret, token_id), call.version))
        await slices.yield_to_loop()
    return DescribeDelegationTokenResponse(tokens=tokens)


def _is_visible(call: Call, token_id: str, token: DelegationToken, owners: Collection[str] | None) -> bool:
    if owners is not None and token.owner not in owners:
        return False
    return (
        may_renew(token, call.principal.text)
        or call.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id, is_filter=True)
        or call.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, is_filter=True)
    )


def _described(token_id: str, token: DelegationToken, secret: bytes, version: int) -> DescribedDelegationToken:
    owner = stored_principal(token.owner)
    renewers = [stored_principal(each) for each in token.renewers]
    described = DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token_id,
        hmac=secret,
        renewers=[DescribedDelegationTokenRenewer(each.type, each.name) for each in renewers],
    )
    if version >= _NAMES_REQUESTER:
        requester = stored_principal(token.requester)
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described
