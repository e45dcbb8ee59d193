"""A model of ACL decisions for the invariant Q2: it examines all entries for each decision.

The authorizer finds the relevant entries through an index and caches its decisions; this module shares only the form of
an entry with it. Tests and the simulator compare the results of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType

IMPLIES_DESCRIBE = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclQuestion:
    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AclModel:
    """The input of an authorization decision."""

    entries: tuple[AccessControlEntry, ...] = ()
    super_users: Collection[str] = ()
    allow_everyone_if_no_acl_found: bool = False

    def allows(self, asked: AclQuestion) -> bool:
        if asked.principal in self.super_users:
            return True
        covering = [entry for entry in self.entries if _covers(entry, asked)]
        if not covering:
            return self.allow_everyone_if_no_acl_found
        applying = [entry for entry in covering if _names(entry, asked)]
        if any(entry.permission_type == Permission.DENY and _denies(entry, asked.operation) for entry in applying):
            return False
        return any(entry.permission_type == Permission.ALLOW and _allows(entry, asked.operation) for entry in applying)

    def allows_any(self, asked: AclQuestion) -> bool:
        """The decision of `authorize_any` (KIP-679): whether any resource of the type is allowed."""
        probe = AclQuestion(
            principal=asked.principal,
            host=asked.host,
            operation=asked.operation,
            resource_type=asked.resource_type,
            resource_name="hardcode",
        )
        if self.allows(probe):
            return True
        applying = [
            entry
            for entry in self.entries
            if entry.resource_type == asked.resource_type
            and _names(entry, asked)
            and entry.operation in (asked.operation, Operation.ALL)
        ]
        denying = [entry for entry in applying if entry.permission_type == Permission.DENY]
        if any(_is_wildcard(entry) for entry in denying):
            return False
        allowing = [entry for entry in applying if entry.permission_type == Permission.ALLOW]
        return any(_is_wildcard(entry) or not _is_taken_away(entry, denying) for entry in allowing)


def _covers(entry: AccessControlEntry, asked: AclQuestion) -> bool:
    if entry.resource_type != asked.resource_type:
        return False
    if entry.pattern_type == PatternType.PREFIXED:
        return asked.resource_name[: len(entry.resource_name)] == entry.resource_name
    return entry.resource_name == asked.resource_name or entry.resource_name == "*"


def _names(entry: AccessControlEntry, asked: AclQuestion) -> bool:
    if entry.principal not in (asked.principal, "User:*"):
        return False
    return entry.host == "*" or _is_same_host(entry.host, asked.host)


def _is_same_host(one: str, other: str) -> bool:
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return one == other


def _denies(entry: AccessControlEntry, operation: Operation) -> bool:
    return entry.operation in (Operation.ALL, operation)


def _allows(entry: AccessControlEntry, operation: Operation) -> bool:
    if entry.operation in (Operation.ALL, operation):
        return True
    if operation is Operation.DESCRIBE:
        return entry.operation in IMPLIES_DESCRIBE
    return operation is Operation.DESCRIBE_CONFIGS and entry.operation == Operation.ALTER_CONFIGS


def _is_wildcard(entry: AccessControlEntry) -> bool:
    return entry.pattern_type == PatternType.LITERAL and entry.resource_name == "*"


def _is_taken_away(entry: AccessControlEntry, denying: Iterable[AccessControlEntry]) -> bool:
    return any(
        entry.resource_name.startswith(other.resource_name)
        if other.pattern_type == PatternType.PREFIXED
        else entry.pattern_type == PatternType.LITERAL and entry.resource_name == other.resource_name
        for other in denying
    )
