"""An index of ACLs that finds those of one principal, host and resource in a few dictionary lookups.

Entries are grouped by pattern (resource type, literal or prefixed, name), and within it by principal and host. A group
has two bit masks with one bit per operation: the operations it allows, including implied ones, and those it denies. A
lookup examines the literal pattern, the wildcard, and one prefix for each length that occurs among the prefixed
patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from millbeck.security.acls import WILDCARD, WILDCARD_PRINCIPAL, AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission
from millbeck.security.hosts import canonical_host

EVERY_OPERATION: Final = (1 << (max(Operation) + 1)) - 1
"""The mask with all operations."""

_IMPLIED: Final[dict[int, int]] = {
    Operation.READ: 1 << Operation.DESCRIBE,
    Operation.WRITE: 1 << Operation.DESCRIBE,
    Operation.DELETE: 1 << Operation.DESCRIBE,
    Operation.ALTER: 1 << Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: 1 << Operation.DESCRIBE_CONFIGS,
}
"""The masks of the operations that an ALLOW of each operation includes. A DENY includes only its own operation."""

ENTRIES_AT_ONCE: Final = 500
"""The number of entries indexed per step: about half a millisecond of work."""

Pattern = tuple[int, bool, str]
"""Resource type, whether it is a prefix, and the name."""
Subject = tuple[str, str]
"""Principal and canonical host of an entry."""


class AclGroup:
    """The entries of one pattern, principal and host."""

    __slots__ = ("allowed", "denied", "entries")

    def __init__(self) -> None:
        self.entries: list[AccessControlEntry] = []
        self.allowed = 0
        self.denied = 0

    def add(self, entry: AccessControlEntry) -> None:
        self.entries.append(entry)
        self._count(entry)

    def remove(self, entry: AccessControlEntry) -> None:
        self.entries.remove(entry)
        self.allowed = self.denied = 0
        for left in self.entries:
            self._count(left)

    def deciding(self, bit: int, *, is_allowed: bool) -> AccessControlEntry:
        """An entry that allows or denies the operation of this bit, which must exist."""
        masks = ((entry, *_masks(entry)) for entry in self.entries)
        return next(entry for entry, allowed, denied in masks if (allowed if is_allowed else denied) & bit)

    def _count(self, entry: AccessControlEntry) -> None:
        allowed, denied = _masks(entry)
        self.allowed |= allowed
        self.denied |= denied


def _masks(entry: AccessControlEntry) -> tuple[int, int]:
    """The operations an entry allows and denies. As in Kafka, any permission but ALLOW denies."""
    named = EVERY_OPERATION if entry.operation == Operation.ALL else 1 << entry.operation
    if entry.permission_type != Permission.ALLOW:
        return 0, named
    return named | _IMPLIED.get(entry.operation, 0), 0


Groups = dict[Subject, AclGroup]


class AclIndex:
    """The index, changed in place; after a change the caller must drop results derived from the earlier state."""

    def __init__(self) -> None:
        self.count = 0
        self._patterns: dict[Pattern, Groups] = {}
        self._by_subject: dict[Subject, dict[Pattern, AclGroup]] = {}
        self._prefix_counts: dict[int, Counter[int]] = {}
        """The number of prefixed patterns, by resource type and length."""
        self._prefix_lengths: dict[int, tuple[int, ...]] = {}
        """The lengths of prefixed patterns, ascending."""

    def add_all(self, entries: Iterable[AccessControlEntry]) -> Iterator[None]:
        """Add entries in steps; the caller must not use the index before the last step."""
        for position, entry in enumerate(entries, 1):
            self.add(entry)
            if position % ENTRIES_AT_ONCE == 0:
                yield

    def take_apart(self) -> Iterator[None]:
        """Free an index that is no longer used, in steps, because freeing it at once would block as long as building
        it."""
        for parts in (self._by_subject, self._patterns):
            position = 0
            while parts:
                parts.popitem()
                position += 1
                if position % ENTRIES_AT_ONCE == 0:
                    yield

    def add(self, entry: AccessControlEntry) -> None:
        pattern, subject = _pattern(entry), _subject(entry)
        groups = self._patterns.get(pattern)
        if groups is None:
            groups = self._patterns[pattern] = {}
            self._count_prefix(pattern, 1)
        group = groups.get(subject)
        if group is None:
            group = groups[subject] = self._by_subject.setdefault(subject, {})[pattern] = AclGroup()
        group.add(entry)
        self.count += 1

    def remove(self, entry: AccessControlEntry) -> None:
        """Remove one entry equal to this one, which must exist."""
        pattern, subject = _pattern(entry), _subject(entry)
        groups = self._patterns[pattern]
        group = groups[subject]
        group.remove(entry)
        self.count -= 1
        if group.entries:
            return
        del groups[subject]
        of_subject = self._by_subject[subject]
        del of_subject[pattern]
        if not of_subject:
            del self._by_subject[subject]
        if not groups:
            del self._patterns[pattern]
            self._count_prefix(pattern, -1)

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        resource_type, is_prefix, name = pattern
        if not is_prefix:
            return
        counts = self._prefix_counts.setdefault(resource_type, Counter())
        counts[len(name)] += change
        if counts[len(name)] == (1 if change > 0 else 0):
            self._prefix_lengths[resource_type] = tuple(sorted(+counts))

    def covering(self, resource_type: int, name: str) -> list[Groups]:
        """The groups of every pattern that applies to the resource."""
        patterns = self._patterns
        found = [patterns.get((resource_type, False, name))]
        if name != WILDCARD:
            found.append(patterns.get((resource_type, False, WILDCARD)))
        for length in self._prefix_lengths.get(resource_type, ()):
            if length > len(name):
                break
            found.append(patterns.get((resource_type, True, name[:length])))
        return [groups for groups in found if groups is not None]

    def patterns_of(self, subjects: Iterable[Subject], resource_type: int) -> Iterator[tuple[bool, str, AclGroup]]:
        """Yield each group of the type with one of these subjects: whether its pattern is a prefix, the name, and the
        group."""
        for subject in subjects:
            for (kind, is_prefix, name), group in self._by_subject.get(subject, {}).items():
                if kind == resource_type:
                    yield is_prefix, name, group


def subjects_of(principal: str, host: str) -> tuple[Subject, ...]:
    """The subjects whose entries apply to a principal at a host (in canonical form)."""
    return ((principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), (WILDCARD_PRINCIPAL, WILDCARD))


def _pattern(entry: AccessControlEntry) -> Pattern:
    return entry.resource_type, entry.pattern_type == PatternType.PREFIXED, entry.resource_name


def _subject(entry: AccessControlEntry) -> Subject:
    return entry.principal, canonical_host(entry.host)
