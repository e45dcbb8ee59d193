"""Security metadata: access control entries, SCRAM credentials and delegation tokens.

They are stored as recorded; authorization and authentication use them elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millbeck.kernel.ids import Uuid
from millbeck.metadata.records import AccessControlEntryRecord, DelegationTokenRecord, UserScramCredentialRecord
from millbeck.security.acls import AccessControlEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AclsImage:
    by_id: Mapping[Uuid, AccessControlEntry] = field(default_factory=dict)

    def records(self) -> Iterator[AccessControlEntryRecord]:
        for entry_id in sorted(self.by_id):
            entry = self.by_id[entry_id]
            yield AccessControlEntryRecord(
                id=entry_id,
                resource_type=entry.resource_type,
                resource_name=entry.resource_name,
                pattern_type=entry.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramImage:
    """Credentials by mechanism number and user."""

    by_user: Mapping[tuple[int, str], ScramCredential] = field(default_factory=dict)

    def records(self) -> Iterator[UserScramCredentialRecord]:
        for mechanism, name in sorted(self.by_user):
            credential = self.by_user[mechanism, name]
            yield UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokensImage:
    by_id: Mapping[str, DelegationToken] = field(default_factory=dict)

    def records(self) -> Iterator[DelegationTokenRecord]:
        for token_id in sorted(self.by_id):
            token = self.by_id[token_id]
            yield DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=list(token.renewers),
                issue_timestamp=token.issue_timestamp,
                max_timestamp=token.max_timestamp,
                expiration_timestamp=token.expiration_timestamp,
                token_id=token_id,
            )
