"""Each rule of the authorizer on its own; tests/model/security compares all of them with a plain model."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.acl_index import ENTRIES_AT_ONCE
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.principal import Principal
from millbeck.security.standard_authorizer import (
    CACHED_DECISIONS_MAX,
    AuthorizerNotReady,
    Rule,
    StandardAuthorizer,
    parse_super_users,
)

ALICE = Principal("User", "alice")
HOST = "10.0.0.1"


def entry(**given: Any) -> AccessControlEntry:
    """By default User:alice may read topic ``orders`` from anywhere."""
    values = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AccessControlEntry(**{**values, **given})


def authorizer_with(*entries: AccessControlEntry, **options: Any) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(**options)
    authorizer.change((), entries)
    authorizer.loaded()
    return authorizer


def may(
    authorizer: StandardAuthorizer,
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    principal: Principal = ALICE,
    host: str = HOST,
) -> bool:
    return authorizer.authorize(principal, host, operation, ResourceType.TOPIC, name)


DENY = Permission.DENY
CASES: dict[str, tuple[list[dict[str, Any]], Operation, str, bool]] = {
    "no ACL": ([], Operation.READ, "orders", False),
    "literal": ([{}], Operation.READ, "orders", True),
    "literal is not a prefix": ([{}], Operation.READ, "orders-eu", False),
    "prefix": ([{"pattern_type": PatternType.PREFIXED}], Operation.READ, "orders-eu", True),
    "prefix covers its own name": ([{"pattern_type": PatternType.PREFIXED}], Operation.READ, "orders", True),
    "a longer prefix": ([{"pattern_type": PatternType.PREFIXED}], Operation.READ, "order", False),
    "wildcard": ([{"resource_name": "*"}], Operation.READ, "orders", True),
    "a prefix called * is no wildcard": (
        [{"resource_name": "*", "pattern_type": PatternType.PREFIXED}],
        Operation.READ,
        "orders",
        False,
    ),
    "another principal": ([{"principal": "User:bob"}], Operation.READ, "orders", False),
    "every principal": ([{"principal": "User:*"}], Operation.READ, "orders", True),
    "a wildcard of another type is not one": ([{"principal": "Group:*"}], Operation.READ, "orders", False),
    "another host": ([{"host": "10.0.0.2"}], Operation.READ, "orders", False),
    "this host": ([{"host": HOST}], Operation.READ, "orders", True),
    "another type": ([{"resource_type": ResourceType.GROUP}], Operation.READ, "orders", False),
    "all operations": ([{"operation": Operation.ALL}], Operation.WRITE, "orders", True),
    "deny wins": ([{}, {"permission_type": DENY}], Operation.READ, "orders", False),
    "deny under a wildcard wins": (
        [{}, {"resource_name": "*", "permission_type": DENY}],
        Operation.READ,
        "orders",
        False,
    ),
    "deny of a prefix wins": (
        [{}, {"resource_name": "ord", "pattern_type": PatternType.PREFIXED, "permission_type": DENY}],
        Operation.READ,
        "orders",
        False,
    ),
    "deny of all": ([{}, {"operation": Operation.ALL, "permission_type": DENY}], Operation.READ, "orders", False),
    "deny of every principal": (
        [{}, {"principal": "User:*", "permission_type": DENY}],
        Operation.READ,
        "orders",
        False,
    ),
    "deny for another host": ([{}, {"host": "10.0.0.2", "permission_type": DENY}], Operation.READ, "orders", True),
    "deny of READ leaves DESCRIBE": (
        [{"operation": Operation.DESCRIBE}, {"permission_type": DENY}],
        Operation.DESCRIBE,
        "orders",
        True,
    ),
    "READ implies DESCRIBE": ([{}], Operation.DESCRIBE, "orders", True),
    "WRITE implies DESCRIBE": ([{"operation": Operation.WRITE}], Operation.DESCRIBE, "orders", True),
    "DELETE implies DESCRIBE": ([{"operation": Operation.DELETE}], Operation.DESCRIBE, "orders", True),
    "ALTER implies DESCRIBE": ([{"operation": Operation.ALTER}], Operation.DESCRIBE, "orders", True),
    "CREATE does not": ([{"operation": Operation.CREATE}], Operation.DESCRIBE, "orders", False),
    "ALTER_CONFIGS implies DESCRIBE_CONFIGS": (
        [{"operation": Operation.ALTER_CONFIGS}],
        Operation.DESCRIBE_CONFIGS,
        "orders",
        True,
    ),
    "ALTER_CONFIGS does not imply DESCRIBE": (
        [{"operation": Operation.ALTER_CONFIGS}],
        Operation.DESCRIBE,
        "orders",
        False,
    ),
    "DESCRIBE implies nothing": ([{"operation": Operation.DESCRIBE}], Operation.READ, "orders", False),
}


@pytest.mark.parametrize(("entries", "operation", "name", "expected"), CASES.values(), ids=CASES.keys())
def test_rules(entries: list[dict[str, Any]], operation: Operation, name: str, expected: bool) -> None:
    assert may(authorizer_with(*(entry(**each) for each in entries)), operation, name) is expected


def test_without_any_acl_for_the_resource_everyone_is_allowed_if_configured() -> None:
    authorizer = authorizer_with(allow_everyone_if_no_acl_found=True)
    assert may(authorizer)
    assert authorizer.explain(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "x").rule is Rule.DEFAULT_ALLOW
    authorizer.change((), [entry(principal="User:bob", host="10.9.9.9", operation=Operation.WRITE)])
    assert not may(authorizer), "an ACL of somebody else covers the resource too"
    assert may(authorizer, name="other")


def test_superusers_are_compared_as_a_whole_and_no_deny_stops_them() -> None:
    authorizer = authorizer_with(entry(permission_type=DENY), super_users=parse_super_users("User:alice;User:root"))
    assert may(authorizer)
    assert authorizer.explain(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "orders").rule is Rule.SUPER_USER
    for name in ("alic", "alice2", "Alice"):
        assert not may(authorizer, principal=Principal("User", name))
    assert not may(authorizer, principal=Principal("Group", "alice"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        (" User:a ; User:CN=x,O=y:z;; ", {"User:a", "User:CN=x,O=y:z"}),
    ],
)
def test_super_users_are_separated_by_semicolons(text: str, expected: set[str]) -> None:
    assert parse_super_users(text) == expected


@pytest.mark.parametrize("text", ["alice", "User:a;:b", "User:"])
def test_malformed_super_users_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"super\.users"):
        parse_super_users(text)


def test_replaced_acls_decide_before_the_old_ones_are_freed() -> None:
    authorizer = StandardAuthorizer()
    authorizer.loaded()
    old = [entry(resource_name=f"old-{number}") for number in range(3 * ENTRIES_AT_ONCE)]
    for _ in authorizer.replace(old):
        assert not authorizer.authorize(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "old-1")
    steps = 0
    for _ in authorizer.replace([entry(resource_name="new")]):
        steps += 1
        assert authorizer.authorize(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "new")
        assert not authorizer.authorize(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "old-1")
    assert steps >= 3
    assert authorizer.count == 1


def test_until_the_acls_are_loaded_only_superusers_pass() -> None:
    authorizer = StandardAuthorizer({"User:root"}, allow_everyone_if_no_acl_found=True)
    assert may(authorizer, principal=Principal("User", "root"))
    with pytest.raises(AuthorizerNotReady) as raised:
        may(authorizer)
    assert raised.value.code == -1
    authorizer.loaded()
    assert may(authorizer)


@pytest.mark.parametrize(
    ("of_entry", "of_client"),
    [("0:0:0:0:0:0:0:1", "::1"), ("::1", "::1"), ("FE80::1", "fe80::1%eth0"), ("10.0.0.1", "::ffff:10.0.0.1")],
)
def test_hosts_are_compared_as_addresses(of_entry: str, of_client: str) -> None:
    authorizer = authorizer_with(entry(host=of_entry), entry(operation=Operation.WRITE, host="::2"))
    assert may(authorizer, host=of_client)
    assert not may(authorizer, Operation.WRITE, host=of_client)


@pytest.mark.parametrize("host", ["10.0.0.0/8", "", "not:an:address", "localhost"])
def test_a_host_that_is_no_address_matches_no_client(host: str) -> None:
    assert not may(authorizer_with(entry(host=host)))


def test_removing_one_of_several_acls_of_a_resource_keeps_the_others() -> None:
    """CVE-2024-27309: the others were treated as removed too."""
    kept = [entry(operation=Operation.WRITE), entry(permission_type=DENY, operation=Operation.ALTER)]
    removed = entry()
    authorizer = authorizer_with(removed, *kept, allow_everyone_if_no_acl_found=True)
    authorizer.change([removed], ())
    assert may(authorizer, Operation.WRITE)
    assert not may(authorizer, Operation.READ)
    assert not may(authorizer, Operation.ALTER)
    assert not may(authorizer, Operation.READ, principal=Principal("User", "eve"))


def test_one_of_two_equal_acls_can_go() -> None:
    authorizer = authorizer_with(entry(), entry())
    authorizer.change([entry()], ())
    assert may(authorizer)
    authorizer.change([entry()], ())
    assert not may(authorizer)


def test_cached_decisions_end_with_a_change() -> None:
    authorizer = authorizer_with(entry())
    epoch = authorizer.epoch
    assert may(authorizer)
    assert authorizer.authorize_any(ALICE, HOST, Operation.READ, ResourceType.TOPIC)
    authorizer.change([entry()], ())
    assert not may(authorizer)
    assert not authorizer.authorize_any(ALICE, HOST, Operation.READ, ResourceType.TOPIC)
    assert authorizer.epoch != epoch


def test_a_large_change_takes_effect_all_at_once() -> None:
    authorizer = authorizer_with(entry(permission_type=DENY), entry(resource_name="*"))
    steps = authorizer.replace([entry(resource_name=f"t{index}") for index in range(2000)])
    for _ in steps:
        assert not may(authorizer)
        assert may(authorizer, name="any")
    assert may(authorizer, name="t1999")
    assert not may(authorizer, name="any")


def test_the_cache_is_bounded() -> None:
    authorizer = authorizer_with(entry())
    for index in range(CACHED_DECISIONS_MAX + 100):
        may(authorizer, name=f"t{index}")
        authorizer.authorize_any(ALICE, str(index), Operation.READ, ResourceType.GROUP)
    may(authorizer, name="x" * 30_000)
    sizes = [len(each) for each in authorizer._cached]
    assert sum(sizes) <= CACHED_DECISIONS_MAX
    assert len(authorizer._cached_any) <= CACHED_DECISIONS_MAX
    assert not any(len(name) > 1000 for each in authorizer._cached for _, _, name in each)


ANY_CASES: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "none": ([], False),
    "a literal": ([{}], True),
    "a literal that is denied": ([{}, {"permission_type": DENY}], False),
    "a literal under a denied prefix": (
        [{}, {"resource_name": "ord", "pattern_type": PatternType.PREFIXED, "permission_type": DENY}],
        False,
    ),
    "a prefix wider than what is denied": (
        [
            {"resource_name": "or", "pattern_type": PatternType.PREFIXED},
            {"resource_name": "ord", "pattern_type": PatternType.PREFIXED, "permission_type": DENY},
        ],
        True,
    ),
    "a prefix whose own name is denied": ([{"pattern_type": PatternType.PREFIXED}, {"permission_type": DENY}], True),
    "everything is denied": ([{}, {"resource_name": "*", "permission_type": DENY}], False),
    "all operations": ([{"operation": Operation.ALL}], True),
    "READ allows no DESCRIBE here": ([{"operation": Operation.WRITE}], False),
}


@pytest.mark.parametrize(("entries", "expected"), ANY_CASES.values(), ids=ANY_CASES.keys())
def test_any_resource_of_a_type(entries: list[dict[str, Any]], expected: bool) -> None:
    authorizer = authorizer_with(*(entry(**each) for each in entries))
    assert authorizer.authorize_any(ALICE, HOST, Operation.READ, ResourceType.TOPIC) is expected


def test_decisions_are_shown_as_in_kafkas_log() -> None:
    authorizer = authorizer_with(entry(principal="User:*", permission_type=DENY))
    decision = authorizer.explain(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "orders")
    assert str(decision) == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:*, "
        "host=*, operation=READ, permissionType=DENY))"
    )
    assert str(authorizer.explain(ALICE, HOST, Operation.READ, ResourceType.TOPIC, "x")) == "DefaultDeny"


def test_operations_that_this_release_does_not_know_give_nothing() -> None:
    authorizer = authorizer_with(entry(operation=99), entry(operation=98, permission_type=9))
    assert not any(may(authorizer, operation) for operation in Operation)
