"""Kafka's numbers, the open house, and the bit field of allowed operations."""

from __future__ import annotations

import pytest

from millbeck.security.authorizer import (
    OPERATIONS_NOT_ASKED,
    SUPPORTED_OPERATIONS,
    AllowAll,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    authorized_operations,
)
from millbeck.security.principal import ANONYMOUS, Principal


class AllowSome:
    """Allows a fixed set of operations on one resource and remembers who asked."""

    epoch = 0

    def __init__(self, *allowed: Operation) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, str, ResourceType, str]] = []

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        self.asked.append((str(principal), host, resource_type, resource_name))
        return operation in self.allowed

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        return operation in self.allowed


def test_vocabulary_has_kafkas_numbers() -> None:
    assert (Operation.READ, Operation.DESCRIBE, Operation.IDEMPOTENT_WRITE, Operation.TWO_PHASE_COMMIT) == (
        3,
        8,
        12,
        15,
    )
    assert [kind.name for kind in ResourceType][2:] == [
        "TOPIC",
        "GROUP",
        "CLUSTER",
        "TRANSACTIONAL_ID",
        "DELEGATION_TOKEN",
        "USER",
    ]
    assert (PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED) == (2, 3, 4)
    assert (Permission.DENY, Permission.ALLOW) == (2, 3)


def test_allow_all_allows_all() -> None:
    authorizer: Authorizer = AllowAll()
    assert authorizer.authorize(ANONYMOUS, "127.0.0.1", Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
    assert authorizer.authorize_any(ANONYMOUS, "127.0.0.1", Operation.WRITE, ResourceType.TOPIC)


@pytest.mark.parametrize(
    ("resource_type", "bits"),
    [
        (ResourceType.TOPIC, 3576),
        (ResourceType.GROUP, 3400),
        (ResourceType.CLUSTER, 8096),
        (ResourceType.TRANSACTIONAL_ID, 33040),
        (ResourceType.DELEGATION_TOKEN, 256),
        (ResourceType.USER, 24576),
    ],
)
def test_all_operations_of_each_type(resource_type: ResourceType, bits: int) -> None:
    assert authorized_operations(AllowAll(), ANONYMOUS, "host", resource_type, "x") == bits


def test_only_what_is_allowed_is_in_the_bit_field() -> None:
    authorizer = AllowSome(Operation.READ, Operation.DESCRIBE, Operation.CLUSTER_ACTION)
    bits = authorized_operations(authorizer, ANONYMOUS, "10.0.0.1", ResourceType.TOPIC, "orders")
    assert bits == 1 << 3 | 1 << 8
    assert set(authorizer.asked) == {("User:ANONYMOUS", "10.0.0.1", ResourceType.TOPIC, "orders")}


def test_every_type_that_can_be_named_has_operations() -> None:
    assert list(SUPPORTED_OPERATIONS) == list(ResourceType)[2:]
    assert OPERATIONS_NOT_ASKED == -2147483648
