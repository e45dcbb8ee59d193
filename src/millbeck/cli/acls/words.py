"""The text forms of ACLs, such as ``transactional-id`` and ``describe-configs``; Kafka's spellings are accepted too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import click

from millbeck.security.acls import AccessControlEntry, AclFilter, name_of
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

W = TypeVar("W", Operation, ResourceType, PatternType, Permission)

ANY_HOST: Final = "*"
_NETWORK: Final = re.compile(r"[0-9a-fA-F:.]+/[0-9]+")


def word(value: Operation | ResourceType | PatternType | Permission) -> str:
    """The spelling in files and tables: ``describe-configs`` for ``DESCRIBE_CONFIGS``."""
    return value.name.lower().replace("_", "-")


def read_word(kind: type[W], text: str) -> W:
    """The value of a word in any of its spellings: ``describe-configs``, ``DescribeConfigs``, ``DESCRIBE_CONFIGS``."""
    asked = re.sub(r"[-_ ]", "", text).lower()
    for each in list(kind)[1:]:
        if each.name.replace("_", "").lower() == asked:
            return each
    known = ", ".join(word(each) for each in list(kind)[1:])
    raise click.ClickException(f"{text!r} is not one of {known}")


def check_host(host: str) -> str:
    """Refuse hosts that match no client: brokers store networks and host names, but they never equal the address of a
    client."""
    if _NETWORK.fullmatch(host):
        raise click.ClickException(
            f"{host} is a network, but the host of an ACL must be one address or *: brokers would store it, and "
            "it would match no client (to limit networks use listener.name.<name>.millbeck.allowed.networks)"
        )
    from ipaddress import ip_address

    try:
        if host != ANY_HOST:
            ip_address(host)
    except ValueError:
        raise click.ClickException(
            f"{host!r} is not an address: the host of an ACL must be one IP address or *; host names match no client"
        ) from None
    return host


def check_principal(principal: str) -> str:
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise click.ClickException(f"{principal!r} is not a principal: write it as type:name, such as User:alice")
    return principal


def entry_row(entry: AccessControlEntry) -> dict[str, object]:
    return {
        "principal": entry.principal,
        "permission": name_of(Permission, entry.permission_type).lower(),
        "operation": name_of(Operation, entry.operation).lower().replace("_", "-"),
        "resource": name_of(ResourceType, entry.resource_type).lower().replace("_", "-"),
        "name": entry.resource_name,
        "pattern": name_of(PatternType, entry.pattern_type).lower(),
        "host": entry.host,
    }


def acl_line(entry: AccessControlEntry) -> str:
    """An ACL as one line of a command's output."""
    row = entry_row(entry)
    on = "the cluster" if entry.resource_type == ResourceType.CLUSTER else f"{row['resource']} {row['name']}"
    if entry.pattern_type == PatternType.PREFIXED:
        on = f"every {row['resource']} whose name begins with {row['name']}"
    where = "" if entry.host == ANY_HOST else f" from {entry.host}"
    return f"{row['permission']} {entry.principal}{where} to {row['operation']} {on}"


def as_kafka(entry: AccessControlEntry) -> str:
    """The entry as ``kafka-acls`` prints it."""
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={name_of(Operation, entry.operation)}, "
        f"permissionType={name_of(Permission, entry.permission_type)})"
    )


def pattern_as_kafka(entry: AccessControlEntry) -> str:
    return (
        f"ResourcePattern(resourceType={name_of(ResourceType, entry.resource_type)}, name={entry.resource_name}, "
        f"patternType={name_of(PatternType, entry.pattern_type)})"
    )


def resource_name(kind: ResourceType, name: str | None) -> str:
    """Check the name of a resource; the cluster's name may be omitted."""
    if kind is ResourceType.CLUSTER:
        return CLUSTER_NAME
    if not name:
        raise click.ClickException(f"a {word(kind)} needs a name")
    return name


def entry_of(given: Mapping[str, Any], operation: Operation) -> AccessControlEntry:
    """Build an ACL from the checked texts of a file or of options."""
    return AccessControlEntry(
        resource_type=given["resource"],
        resource_name=given["name"],
        pattern_type=given["pattern"],
        principal=given["principal"],
        host=given["host"],
        operation=operation,
        permission_type=given["permission"],
    )


def as_filter(entry: AccessControlEntry) -> AclFilter:
    """The filter that matches this ACL alone."""
    return AclFilter(
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
