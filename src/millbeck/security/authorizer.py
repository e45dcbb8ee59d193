"""The authorizer interface, its operations and resource types with Kafka's numbers, and an authorizer that allows
everything."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from millbeck.security.principal import Principal


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""Name of the only resource of type CLUSTER."""

OPERATIONS_NOT_ASKED = -(2**31)
"""Value of a response's authorized operations if the request did not ask for them."""

SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations supported by each resource type."""


class Authorizer(Protocol):
    @property
    def epoch(self) -> int:
        """Changes whenever decisions may have changed; results derived from decisions may be cached for one epoch."""

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the principal, connected from ``host``, may perform the operation on the resource."""

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the principal may perform the operation on at least one resource of the type."""


class AllowAll:
    """The authorizer of a node without ACLs."""

    epoch = 0

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return True

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        return True


class GuardedAuthorizer:
    """Wraps an authorizer of the deployment: if it raises an exception, the operation is denied."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.on_failure: Callable[[Exception], None] | None = None

    @property
    def epoch(self) -> int:
        try:
            return int(self._authorizer.epoch)
        except Exception as error:
            self._failed(error)
            return 0

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        try:
            return self._authorizer.authorize(principal, host, operation, resource_type, resource_name) is True
        except Exception as error:
            self._failed(error)
            return False

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        try:
            return self._authorizer.authorize_any(principal, host, operation, resource_type) is True
        except Exception as error:
            self._failed(error)
            return False

    def _failed(self, error: Exception) -> None:
        if self.on_failure is not None:
            self.on_failure(error)


def authorized_operations(
    authorizer: Authorizer, principal: Principal, host: str, resource_type: ResourceType, resource_name: str
) -> int:
    """The bit field of authorized operations: bit n is set if the operation with code n is allowed."""
    bits = 0
    for operation in SUPPORTED_OPERATIONS[resource_type]:
        if authorizer.authorize(principal, host, operation, resource_type, resource_name):
            bits |= 1 << operation
    return bits
