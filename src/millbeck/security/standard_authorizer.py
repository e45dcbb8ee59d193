"""Kafka's StandardAuthorizer: decides by the ACLs in the metadata.

- A superuser may do everything.
- Otherwise the ACLs decide whose pattern covers the resource and that match the principal (or ``User:*``) and the host
  (or ``*``). A DENY takes precedence over every ALLOW.
- If no ACL covers the resource, ``allow.everyone.if.no.acl.found`` decides. If only ACLs of other principals cover it,
  access is denied.
- Until the ACLs have been loaded, only superusers are authorized; for all others `AuthorizerNotReady` is raised.

Decisions are cached as one mask of allowed operations per principal, host and resource. Every change of the ACLs clears
the cache and increments `epoch`, which other caches check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from millbeck.kernel.errors import InvalidConfig, UnknownServerError
from millbeck.security.acl_index import EVERY_OPERATION, AclIndex, Groups, subjects_of
from millbeck.security.acls import WILDCARD, AccessControlEntry
from millbeck.security.authorizer import Operation, Permission, ResourceType
from millbeck.security.hosts import canonical_host
from millbeck.security.principal import Principal, parse_principal

SUPER_USERS: Final = "super.users"
CACHED_DECISIONS_MAX: Final = 10_000
CACHED_NAME_LENGTH_MAX: Final = 255
"""The maximum length of cached resource names: that of topic names, so that the cache is bounded in bytes."""
_PROBE_NAME: Final = "hardcode"
"""The resource name that Kafka checks first in `authorize_any`: it finds superusers and types without ACLs."""


class AuthorizerNotReady(UnknownServerError):
    """The ACLs are still being loaded. As in Kafka the client gets UNKNOWN_SERVER_ERROR."""

    def __init__(self) -> None:
        super().__init__("the authorizer has not loaded its ACLs yet")


class Rule(StrEnum):
    """The rule on which a decision is based, named as in Kafka's log."""

    SUPER_USER = "SuperUser"
    ACL = "MatchingAcl"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"


@dataclass(frozen=True, slots=True)
class AclDecision:
    is_allowed: bool
    rule: Rule
    entry: AccessControlEntry | None = None
    """The deciding ACL, for `Rule.ACL`."""

    def __str__(self) -> str:
        return self.rule.value if self.entry is None else f"{self.rule.value}(acl={self.entry})"


def parse_super_users(text: str) -> frozenset[str]:
    """Parse ``super.users``: principals such as ``User:alice``, separated by semicolons. Raises `InvalidConfig`."""
    users = set()
    for each in text.split(";"):
        if each.strip():
            try:
                users.add(parse_principal(each.strip()).text)
            except ValueError as error:
                raise InvalidConfig(f"{SUPER_USERS}: {error}") from None
    return frozenset(users)


class StandardAuthorizer:
    def __init__(self, super_users: Collection[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self.epoch = 0
        self.is_loaded = False
        self.decided_count = 0
        """The number of decisions computed from the ACLs; the others came from the cache."""
        self._index = AclIndex()
        self._cached: tuple[dict[tuple[str, str, str], int], ...] = ()
        """The cache: by resource type, the mask of allowed operations by principal, host and name."""
        self._cached_count = 0
        self._cached_any: dict[tuple[str, str, int, int], bool] = {}
        self._drop_decisions()

    # deciding

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        mask = self._cached[resource_type].get((principal.text, host, resource_name))
        if mask is None:
            mask = self._decide(principal.text, host, resource_type, resource_name)
        return bool(mask >> operation & 1)

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        key = (principal.text, host, int(resource_type), int(operation))
        found = self._cached_any.get(key)
        if found is None:
            found = self.authorize(principal, host, operation, resource_type, _PROBE_NAME) or self._allows_any(
                principal.text, host, operation, resource_type
            )
            if len(self._cached_any) >= CACHED_DECISIONS_MAX:
                self._cached_any.clear()
            self._cached_any[key] = found
        return found

    def explain(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> AclDecision:
        """The same decision as `authorize`, with the rule and ACL it is based on."""
        if principal.text in self.super_users:
            return AclDecision(True, Rule.SUPER_USER)
        if not self.is_loaded:
            raise AuthorizerNotReady
        covering = self._index.covering(resource_type, resource_name)
        if not covering and self.allow_everyone_if_no_acl_found:
            return AclDecision(True, Rule.DEFAULT_ALLOW)
        bit = 1 << operation
        applying = [
            groups[subject]
            for groups in covering
            for subject in subjects_of(principal.text, canonical_host(host))
            if subject in groups
        ]
        for group in applying:
            if group.denied & bit:
                return AclDecision(False, Rule.ACL, group.deciding(bit, is_allowed=False))
        for group in applying:
            if group.allowed & bit:
                return AclDecision(True, Rule.ACL, group.deciding(bit, is_allowed=True))
        return AclDecision(False, Rule.DEFAULT_DENY)

    @property
    def remembered_count(self) -> int:
        return self._cached_count

    def _decide(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        self.decided_count += 1
        if principal in self.super_users:
            mask = EVERY_OPERATION
        elif not self.is_loaded:
            raise AuthorizerNotReady
        else:
            mask = self._mask(self._index.covering(resource_type, name), principal, host)
        if len(name) <= CACHED_NAME_LENGTH_MAX:
            if self._cached_count >= CACHED_DECISIONS_MAX:
                self._drop_decisions()
            self._cached_count += 1
            self._cached[resource_type][principal, host, name] = mask
        return mask

    def _mask(self, covering: list[Groups], principal: str, host: str) -> int:
        if not covering:
            return EVERY_OPERATION if self.allow_everyone_if_no_acl_found else 0
        subjects = subjects_of(principal, canonical_host(host))
        allowed = denied = 0
        for groups in covering:
            for subject in subjects:
                group = groups.get(subject)
                if group is not None:
                    allowed |= group.allowed
                    denied |= group.denied
        return allowed & ~denied

    def _allows_any(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether a pattern allows the operation and no DENY covers all of that pattern (KIP-679). Implied operations
        do not count here, unlike in a decision on one resource."""
        allowed: list[tuple[bool, str]] = []
        denied: set[tuple[bool, str]] = set()
        subjects = subjects_of(principal, canonical_host(host))
        for is_prefix, name, group in self._index.patterns_of(subjects, resource_type):
            for entry in group.entries:
                if entry.operation in (operation, Operation.ALL):
                    if entry.permission_type == Permission.ALLOW:
                        allowed.append((is_prefix, name))
                    else:
                        denied.add((is_prefix, name))
        if (False, WILDCARD) in denied:
            return False
        return any(
            pattern == (False, WILDCARD) or (pattern not in denied and not _has_denied_prefix(pattern[1], denied))
            for pattern in allowed
        )

    # following the metadata

    @property
    def count(self) -> int:
        """The number of ACLs."""
        return self._index.count

    def loaded(self) -> None:
        """Called when all ACLs from before the start are loaded: from now on all principals are served."""
        self.is_loaded = True
        self._drop_decisions()

    def change(self, removed: Iterable[AccessControlEntry], added: Iterable[AccessControlEntry]) -> None:
        """Apply a small change at once."""
        for entry in removed:
            self._index.remove(entry)
        for entry in added:
            self._index.add(entry)
        self._changed()

    def replace(self, entries: Iterable[AccessControlEntry]) -> Iterator[None]:
        """Apply a large change, or load all ACLs, in steps; it takes effect after the last step."""
        index = AclIndex()
        yield from index.add_all(entries)
        replaced, self._index = self._index, index
        self._changed()
        yield from replaced.take_apart()

    def _changed(self) -> None:
        self.epoch += 1
        self._drop_decisions()

    def _drop_decisions(self) -> None:
        self._cached = tuple({} for _ in range(max(ResourceType) + 1))
        self._cached_count = 0
        self._cached_any.clear()


def _has_denied_prefix(name: str, denied: set[tuple[bool, str]]) -> bool:
    return any((True, name[:length]) in denied for length in range(1, len(name) + 1))
