"""A node that authorizes by ACLs: clients of several users, and ACLs in a word."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from millbeck.security.principal import Principal
from millbeck.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client

SECURED: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
"""Connections without a user of their own, such as the test's first, are a superuser's."""
ACLS_VERSION = 3


def run_secured(scenario: Any, **settings: Any) -> Any:
    return BrokerHarness(**{**SECURED, **settings}).run(scenario)


async def connect_as(harness: BrokerHarness, environment: Environment, user: str = "alice") -> Client:
    """A client whose connection has this user as its principal."""
    assert harness.node is not None
    client = await harness.connect(environment)
    # Once it is answered, the connection is the newest of its listener.
    await client.ask(ApiVersionsRequest(), 0)
    (listener, *_) = harness.node.listeners
    list(listener.connections.values())[-1].principal = Principal("User", user)
    return client


def acl(
    operation: Operation,
    resource_type: ResourceType = ResourceType.TOPIC,
    name: str = "t",
    *,
    user: str = "User:alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> AclCreation:
    if resource_type is ResourceType.CLUSTER:
        name = CLUSTER_NAME
    return AclCreation(resource_type, name, pattern, user, host, operation, permission)


async def create_acls(client: Client, *creations: AclCreation) -> None:
    """Create ACLs as a superuser, and wait until the node decides by them."""
    answer = await client.ask(CreateAclsRequest(creations=list(creations)), ACLS_VERSION)
    assert [each.error_code for each in answer.results] == [0] * len(creations), answer
    await asyncio.sleep(0.1)


async def allow(client: Client, operation: Operation, *arguments: Any, **named: Any) -> None:
    await create_acls(client, acl(operation, *arguments, **named))


async def delete_acls(client: Client, **wanted: Any) -> list[Any]:
    """Delete what the filter matches, by default all; the deleted ones."""
    values = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**{**values, **wanted})])
    (result,) = (await client.ask(request, ACLS_VERSION)).filter_results
    assert result.error_code == 0, result
    await asyncio.sleep(0.1)
    matching: list[Any] = result.matching_acls
    return matching
