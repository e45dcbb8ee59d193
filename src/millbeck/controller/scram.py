"""AlterUserScramCredentials: set and delete the SCRAM credentials of users.

Clients send the salted password; two keys derived from it are stored, which cannot be used to log in.
As in Kafka a user may be named once in a request, whatever the mechanism.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from millbeck.controller.result import RECORD_COUNT_MAX, RECORDS_AT_ONCE, Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    DuplicateResource,
    PolicyViolation,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from millbeck.metadata.features import SCRAM_FROM
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import MetadataRecord, RemoveUserScramCredentialRecord, UserScramCredentialRecord
from millbeck.security.sasl.scram_messages import BY_NUMBER, ITERATIONS_MAX, ITERATIONS_MIN, scram_keys
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

Change = ScramCredentialDeletion | ScramCredentialUpsertion

CHANGES_AT_ONCE: Final = 1000
"""The number of changes processed per step."""
_TWICE: Final = "A user credential cannot be altered twice in the same request"


def alter_user_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest
) -> Steps[Result[AlterUserScramCredentialsResponse]]:
    """Change or refuse each user separately; a request with too many changes is refused as a whole."""
    changes: dict[str, Change | ApiError] = {}
    for position, change in enumerate(chain[Change](request.deletions, request.upsertions), 1):
        if position % CHANGES_AT_ONCE == 0:
            yield
        if change.name not in changes:
            changes[change.name] = _refusal(image, change) or change
        elif not isinstance(changes[change.name], ApiError):
            changes[change.name] = DuplicateResource(_TWICE)
    if len(changes) > RECORD_COUNT_MAX:
        raise PolicyViolation("Unable to perform excessively large batch operation.")
    results: list[AlterUserScramCredentialsResult] = []
    records: list[MetadataRecord] = []
    for name, outcome in changes.items():
        if isinstance(outcome, ApiError):
            results.append(AlterUserScramCredentialsResult(name, outcome.code, outcome.message))
            continue
        results.append(AlterUserScramCredentialsResult(name, error_message=None))
        records.append(_record(outcome))
        if len(records) % RECORDS_AT_ONCE == 0:
            yield
    return Result(response=AlterUserScramCredentialsResponse(results=results), records=records)


def _refusal(image: MetadataImage, change: Change) -> ApiError | None:
    if image.features.metadata_version < SCRAM_FROM:
        return UnsupportedVersion("The current metadata.version does not support SCRAM")
    if not change.name:
        return UnacceptableCredential("Username must not be empty")
    if change.mechanism not in BY_NUMBER:
        return UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram.by_user:
            return ResourceNotFound("Attempt to delete a user credential that does not exist")
    elif change.iterations < ITERATIONS_MIN:
        return UnacceptableCredential("Too few iterations")
    elif change.iterations > ITERATIONS_MAX:
        return UnacceptableCredential("Too many iterations")
    elif not change.salted_password:
        # HMAC takes an empty key; Kafka's implementation raises on it.
        return UnacceptableCredential("The salted password must not be empty")
    return None


def _record(change: Change) -> MetadataRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    keys = scram_keys(BY_NUMBER[change.mechanism], change.salted_password)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=change.iterations,
    )
