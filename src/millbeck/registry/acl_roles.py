"""Roles by the ACLs of the log: who may read a topic may read its subjects, who may write it may register schemas, and
who may alter it is their administrator.

The topic of a subject is its name without ``-key`` or ``-value``; other subjects are covered by prefixed ACLs and by
those for all topics. A denial counts for its role and those above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from millbeck.registry.roles import Role
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType

EVERY_HOST: Final = "*"
EVERY_NAME: Final = "*"
EVERY_PRINCIPAL: Final = "User:*"
_SUFFIXES: Final = ("-key", "-value")
_ALLOWED: Final[dict[int, Role]] = {
    Operation.READ: Role.READ,
    Operation.WRITE: Role.WRITE,
    Operation.ALTER: Role.ADMIN,
    Operation.ALL: Role.ADMIN,
}
_DENIED: Final[dict[int, Role]] = {**_ALLOWED, Operation.ALL: Role.READ}


def of_user(entries: Iterable[AccessControlEntry], name: str) -> tuple[AccessControlEntry, ...]:
    """The ACLs that give or deny a user roles. An ACL for one host allows nothing, since requests may be forwarded, and
    denies."""
    principals = (f"User:{name}", EVERY_PRINCIPAL)
    return tuple(
        each
        for each in entries
        if each.resource_type == ResourceType.TOPIC
        and each.principal in principals
        and each.operation in _ALLOWED
        and (each.host == EVERY_HOST or each.permission_type == Permission.DENY)
    )


def may(entries: Iterable[AccessControlEntry], role: Role, subject: str) -> bool:
    """Whether a user with these ACLs has the role for a subject; an empty name means everything."""
    topic = next((subject.removesuffix(each) for each in _SUFFIXES if subject.endswith(each)), subject)
    is_allowed = False
    for each in entries:
        covers = _covers_everything(each) if not subject else each.covers(ResourceType.TOPIC, topic)
        if each.permission_type == Permission.DENY:
            # To have a role for everything, nothing may be denied.
            if (covers or not subject) and role >= _DENIED[each.operation]:
                return False
        elif covers and role <= _ALLOWED[each.operation]:
            is_allowed = True
    return is_allowed


def _covers_everything(entry: AccessControlEntry) -> bool:
    return entry.pattern_type == PatternType.LITERAL and entry.resource_name == EVERY_NAME
