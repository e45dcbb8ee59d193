"""Admin calls for the SCRAM credentials of users: describe, set and delete.

Passwords are salted and hashed here: a broker never sees one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.routing import call_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.security.sasl.scram_messages import BY_NUMBER, ScramMechanism, salted_password
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

ITERATIONS: Final = 8192
"""The default iterations of new credentials: twice the minimum."""
SALT_SIZE: Final = 20

Credentials = Mapping[ScramMechanism, int]
"""The iterations of a user's credentials, by mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    """A password to set for one mechanism; or, if it is hashed already, ``salted`` with its ``salt``."""

    mechanism: ScramMechanism
    password: str = field(default="", repr=False)
    iterations: int = ITERATIONS
    salt: bytes = b""
    salted: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedCredential:
    mechanism: ScramMechanism


async def describe_users(
    cluster: Cluster, names: Iterable[str] | None, *, timeout_s: float | None
) -> Outcomes[str, Credentials]:
    """The users with SCRAM credentials, all of them or those named."""
    wanted = None if names is None else [UserName(name) for name in dict.fromkeys(names)]
    if wanted is not None and not wanted:
        return Outcomes({})

    async def attempt(deadline: Deadline) -> Outcomes[str, Credentials]:
        request = DescribeUserScramCredentialsRequest(users=wanted)
        response = await cluster.request(request, DescribeUserScramCredentialsResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        return Outcomes(
            {
                result.user: from_code(result.error_code, result.error_message or "")
                if result.error_code
                else {
                    BY_NUMBER[info.mechanism]: info.iterations
                    for info in result.credential_infos
                    if info.mechanism in BY_NUMBER
                }
                for result in response.results
            }
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def alter_users(
    cluster: Cluster, changes: Mapping[str, NewCredential | DeletedCredential], *, timeout_s: float | None
) -> Outcomes[str, ScramMechanism]:
    """Change one credential per user: Kafka refuses two changes of one user in a request, even of different
    mechanisms."""
    upsertions: dict[str, ScramCredentialUpsertion] = {}
    deletions: dict[str, ScramCredentialDeletion] = {}
    for name, change in changes.items():
        if isinstance(change, DeletedCredential):
            deletions[name] = ScramCredentialDeletion(name, change.mechanism.number)
        else:
            upsertions[name] = await _upsertion(cluster, name, change)

    async def attempt(wanted: list[str], deadline: Deadline) -> dict[str, ScramMechanism | ApiError]:
        request = AlterUserScramCredentialsRequest(
            deletions=[deletions[name] for name in wanted if name in deletions],
            upsertions=[upsertions[name] for name in wanted if name in upsertions],
        )
        response = await call_controller(cluster, request, AlterUserScramCredentialsResponse, deadline)
        return {
            result.user: from_code(result.error_code, result.error_message or "")
            if result.error_code
            else changes[result.user].mechanism
            for result in response.results
            if result.user in changes
        }

    return await for_each(cluster, changes, attempt, timeout_s=timeout_s)


async def _upsertion(cluster: Cluster, name: str, change: NewCredential) -> ScramCredentialUpsertion:
    environment = cluster.environment
    salt, salted = change.salt, change.salted
    if not salted:
        salt = salt or environment.randomness.below(1 << (8 * SALT_SIZE)).to_bytes(SALT_SIZE, "big")
        salted = await environment.threads.run(
            salted_password, change.mechanism, change.password, salt, change.iterations
        )
    return ScramCredentialUpsertion(name, change.mechanism.number, change.iterations, salt, salted)
