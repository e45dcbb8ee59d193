"""Filters of ACLs, by resource, pattern and the rest."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.security.acls import AccessControlEntry, AclFilter
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType


def entry(name: str, pattern: PatternType = PatternType.LITERAL) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission_type=Permission.ALLOW,
    )


ENTRIES = {
    "literal": entry("orders-eu"),
    "prefix": entry("orders", PatternType.PREFIXED),
    "same prefix": entry("orders-eu", PatternType.PREFIXED),
    "wildcard": entry("*"),
    "prefix *": entry("*", PatternType.PREFIXED),
    "other": entry("payments"),
}
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "all": ({}, set(ENTRIES)),
    "any pattern of a name": ({"resource_name": "orders-eu"}, {"literal", "same prefix"}),
    "match": (
        {"resource_name": "orders-eu", "pattern_type": PatternType.MATCH},
        {"literal", "prefix", "same prefix", "wildcard"},
    ),
    "match of no name": ({"pattern_type": PatternType.MATCH}, set(ENTRIES)),
    "literal": ({"resource_name": "orders-eu", "pattern_type": PatternType.LITERAL}, {"literal"}),
    "the wildcard itself": ({"resource_name": "*", "pattern_type": PatternType.LITERAL}, {"wildcard"}),
    "prefixes": ({"pattern_type": PatternType.PREFIXED}, {"prefix", "same prefix", "prefix *"}),
    "another type": ({"resource_type": ResourceType.GROUP}, set()),
    "principal": ({"principal": "User:alice"}, set(ENTRIES)),
    "another principal": ({"principal": "User:*"}, set()),
    "host": ({"host": "10.0.0.1"}, set()),
    "operation": ({"operation": Operation.ALL}, set()),
    "permission": ({"permission_type": Permission.DENY}, set()),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES.keys())
def test_filters(given: dict[str, Any], expected: set[str]) -> None:
    asked = AclFilter(**given)
    assert {name for name, each in ENTRIES.items() if asked.matches(each)} == expected
