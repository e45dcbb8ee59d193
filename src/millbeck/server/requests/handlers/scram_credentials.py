"""DescribeUserScramCredentials, AlterUserScramCredentials.

Behaviour
- Brokers forward changes to the active controller; descriptions are answered by any broker from its own metadata, so
  they may lag behind a change that was just acknowledged.
- A description has only mechanisms and iterations, nothing that helps to guess a password.
- A client that is not authorized to describe always gets an error response; Kafka 4.3.1 does not respond to one that
  requests all users.
- A client that logged in with a delegation token may not change credentials: with a new password it could log in after
  the token has expired.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, DuplicateResource, ResourceNotFound
from millbeck.metadata.image import ScramImage
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN: Final = "Attempt to describe a user credential that does not exist: "


def describe_error(
    request: DescribeUserScramCredentialsRequest | None, version: int, error: ApiError
) -> DescribeUserScramCredentialsResponse:
    """As in Kafka, one error result without a user name for each requested user."""
    users = [] if request is None else request.users or []
    results = [DescribeUserScramCredentialsResult("", error.code, None) for _ in users]
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message, results=results)


@handles(50, needs=[Need(Operation.DESCRIBE, ResourceType.CLUSTER)], error_reply=describe_error)
async def handle_describe_user_scram_credentials(
    call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    slices = TimeSlices(call.broker.environment.clock)
    credentials = await _credentials(call.broker.image.scram, slices)
    asked: dict[str, int] = {}
    for user in request.users or ():
        asked[user.name] = asked.get(user.name, 0) + 1
    results: list[DescribeUserScramCredentialsResult] = []
    for name in asked or sorted(credentials):
        results.append(_described(name, credentials.get(name), is_repeated=asked.get(name, 1) > 1))
        await slices.yield_to_loop()
    return DescribeUserScramCredentialsResponse(results=results)


async def _credentials(image: ScramImage, slices: TimeSlices) -> dict[str, list[CredentialInfo]]:
    credentials: dict[str, list[CredentialInfo]] = {}
    for (mechanism, name), credential in image.by_user.items():
        credentials.setdefault(name, []).append(CredentialInfo(mechanism, credential.iterations))
        await slices.yield_to_loop()
    return credentials


def _described(
    name: str, credentials: list[CredentialInfo] | None, *, is_repeated: bool
) -> DescribeUserScramCredentialsResult:
    if is_repeated:
        return DescribeUserScramCredentialsResult(name, DuplicateResource.code, _TWICE + name)
    if credentials is None:
        return DescribeUserScramCredentialsResult(name, ResourceNotFound.code, _UNKNOWN + name)
    infos = sorted(credentials, key=lambda each: each.mechanism)
    return DescribeUserScramCredentialsResult(name, credential_infos=infos)


def alter_error(
    request: AlterUserScramCredentialsRequest | None, version: int, error: ApiError
) -> AlterUserScramCredentialsResponse | None:
    """The same error for each user of the request, each user once."""
    if request is None:
        return None
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    results = [AlterUserScramCredentialsResult(name, error.code, error.message) for name in names]
    return AlterUserScramCredentialsResponse(results=results)


@handles(51, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=alter_error)
async def handle_alter_user_scram_credentials(
    call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if call.principal.is_token:
        raise ClusterAuthorizationFailed("credentials cannot be changed with a delegation token")
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(
        lambda image: broker.controller.alter_user_scram_credentials(image, request), by=call
    )
