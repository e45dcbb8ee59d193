"""Access control entries as the metadata stores them, and the filters of DescribeAcls and DeleteAcls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType

WILDCARD: Final = "*"
"""The name of a literal pattern for every resource, and the host of an entry for every host."""
WILDCARD_PRINCIPAL: Final = "User:*"
"""The principal of an entry for every principal, of any type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntry:
    """One ACL. The numbers are those of `authorizer`; an image may contain numbers that this release does not know."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __str__(self) -> str:
        """The text of the entry in Kafka's authorizer log."""
        return (
            f"StandardAcl(resourceType={name_of(ResourceType, self.resource_type)}, "
            f"resourceName={self.resource_name}, patternType={name_of(PatternType, self.pattern_type)}, "
            f"principal={self.principal}, host={self.host}, operation={name_of(Operation, self.operation)}, "
            f"permissionType={name_of(Permission, self.permission_type)})"
        )

    def covers(self, resource_type: int, resource_name: str) -> bool:
        """Whether the pattern applies to a resource."""
        if self.resource_type != resource_type:
            return False
        if self.pattern_type == PatternType.PREFIXED:
            return resource_name.startswith(self.resource_name)
        return self.resource_name in (resource_name, WILDCARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """A filter of ACLs; None, ANY and `PatternType.ANY` match everything.

    `PatternType.MATCH` finds every entry whose pattern applies to the resource: literal, prefixed or wildcard.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission_type: int = Permission.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._matches_pattern(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission_type in (Permission.ANY, entry.permission_type)
        )

    def _matches_pattern(self, entry: AccessControlEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return entry.covers(entry.resource_type, self.resource_name)
        return entry.resource_name == self.resource_name


def name_of(kind: type[Operation] | type[ResourceType] | type[PatternType] | type[Permission], number: int) -> str:
    """The name of a number; UNKNOWN if this release does not know it."""
    try:
        return kind(number).name
    except ValueError:
        return "UNKNOWN"
