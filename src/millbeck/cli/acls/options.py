"""The options for resources, principals and operations, with the flags of Kafka's kafka-acls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from millbeck.cli.acls.words import ANY_HOST, as_filter, check_host, check_principal, read_word
from millbeck.cli.completed_types import GROUP, TOPIC
from millbeck.security.acls import AccessControlEntry, AclFilter
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

F = TypeVar("F", bound=Callable[..., Any])

RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
"""The resource type that each option names."""
PRODUCER_OPERATIONS: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER_OPERATIONS: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}

Resource = tuple[ResourceType, str]


def resource_options(function: F) -> F:
    for option in (
        click.option(
            "--user-principal",
            multiple=True,
            metavar="TYPE:NAME",
            help="The ACLs of a user, for operations on its delegation tokens.",
        ),
        click.option("--delegation-token", multiple=True, metavar="ID", help="The ACLs of a delegation token."),
        click.option("--cluster", is_flag=True, help="The cluster."),
        click.option(
            "--transactional-id", multiple=True, metavar="ID", help="The ACLs of a transactional id; * for all."
        ),
        click.option("--group", type=GROUP, multiple=True, metavar="NAME", help="The ACLs of a group; * for all."),
        click.option(
            "--topic",
            type=TOPIC,
            multiple=True,
            metavar="NAME",
            help="The ACLs of a topic; * for all. Can be repeated.",
        ),
    ):
        function = option(function)
    return function


def pattern_option(*, with_filters: bool) -> Callable[[F], F]:
    kinds = ["any", "match", "literal", "prefixed"] if with_filters else ["literal", "prefixed"]
    meaning = " match: every pattern that covers the name; any: every pattern of this name." if with_filters else ""
    return click.option(
        "--resource-pattern-type",
        "--pattern",
        "pattern",
        type=click.Choice(kinds, case_sensitive=False),
        default="literal",
        show_default=True,
        help=f"The pattern type: literal (the whole name) or prefixed (names that begin with it).{meaning}",
    )


def subject_options(function: F) -> F:
    for option in (
        click.option(
            "--deny-host",
            multiple=True,
            metavar="ADDRESS",
            help="The client address that the ACL applies to; default: all.",
        ),
        click.option(
            "--allow-host",
            multiple=True,
            metavar="ADDRESS",
            help="The client address that the ACL applies to; default: all.",
        ),
        click.option(
            "--deny-principal",
            multiple=True,
            metavar="TYPE:NAME",
            help="The principal to deny, such as User:alice; can be repeated.",
        ),
        click.option(
            "--allow-principal",
            multiple=True,
            metavar="TYPE:NAME",
            help="The principal to allow, such as User:alice; can be repeated.",
        ),
        click.option(
            "--operation",
            multiple=True,
            metavar="NAME",
            help="The operation: read, write, ...; default: all. Can be repeated.",
        ),
        click.option("--producer", is_flag=True, help="All operations that a producer to --topic needs."),
        click.option("--consumer", is_flag=True, help="All operations that a consumer of --topic in --group needs."),
        click.option("--idempotent", is_flag=True, help="With --producer: also allow idempotent-write on the cluster."),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class AclOptions:
    """The parsed options of ``add`` and ``remove``."""

    resources: tuple[Resource, ...]
    pattern: PatternType
    operations: tuple[Operation, ...]
    allow_principals: tuple[str, ...]
    deny_principals: tuple[str, ...]
    allow_hosts: tuple[str, ...]
    deny_hosts: tuple[str, ...]
    is_producer: bool
    is_consumer: bool
    is_idempotent: bool

    def check(self, ctx: click.Context) -> None:
        """Raise a usage error for options that cannot be combined."""
        kinds = {kind for kind, _ in self.resources}
        if not kinds:
            raise click.UsageError("name a resource: --topic, --group, --cluster, --transactional-id, ...", ctx)
        if (self.is_producer or self.is_consumer) and (self.operations or self.deny_principals):
            raise click.UsageError(
                "--producer and --consumer create ACLs that allow: they cannot be combined with --operation or "
                "--deny-principal",
                ctx,
            )
        if self.is_idempotent and not self.is_producer:
            raise click.UsageError("--idempotent requires --producer", ctx)
        if self.is_producer and ResourceType.TOPIC not in kinds:
            raise click.UsageError("--producer needs --topic", ctx)
        if self.is_consumer and not {ResourceType.TOPIC, ResourceType.GROUP} <= kinds:
            raise click.UsageError("--consumer needs --topic and --group", ctx)
        if ResourceType.CLUSTER in kinds and len(kinds) > 1 and not self.operations and not self._is_preset:
            raise click.UsageError(
                "give --operation; without it the ACLs would include all operations on the cluster", ctx
            )

    @property
    def _is_preset(self) -> bool:
        return self.is_producer or self.is_consumer

    def entries(self) -> list[AccessControlEntry]:
        """The ACLs that the options describe."""
        found: dict[AccessControlEntry, None] = {}
        for resource, operations in self._operations():
            for permission, principals, hosts in (
                (Permission.ALLOW, self.allow_principals, self.allow_hosts),
                (Permission.DENY, self.deny_principals, self.deny_hosts),
            ):
                for principal in principals:
                    for host in hosts or (ANY_HOST,):
                        for operation in operations:
                            entry = self._entry(resource, principal, host, operation, permission)
                            found[entry] = None
        return list(found)

    def _operations(self) -> Iterable[tuple[Resource, tuple[Operation, ...]]]:
        for resource in self.resources:
            if not self._is_preset:
                yield resource, self.operations or (Operation.ALL,)
                continue
            if self.is_producer:
                yield resource, PRODUCER_OPERATIONS.get(resource[0], ())
            if self.is_consumer:
                yield resource, CONSUMER_OPERATIONS.get(resource[0], ())
        if self.is_idempotent:
            yield (ResourceType.CLUSTER, CLUSTER_NAME), (Operation.IDEMPOTENT_WRITE,)

    def _entry(
        self, resource: Resource, principal: str, host: str, operation: Operation, permission: Permission
    ) -> AccessControlEntry:
        kind, name = resource
        return AccessControlEntry(
            resource_type=kind,
            resource_name=name,
            pattern_type=PatternType.LITERAL if kind is ResourceType.CLUSTER else self.pattern,
            principal=principal,
            host=host,
            operation=operation,
            permission_type=permission,
        )

    def filters(self) -> list[AclFilter]:
        """The filters of ``remove``: the ACLs that the options describe, or without a principal every ACL of the
        resources."""
        if self.allow_principals or self.deny_principals:
            return list(map(as_filter, self.entries()))
        return resource_filters(self.resources, self.pattern, self.operations)


def acl_options(ctx: click.Context, given: dict[str, Any]) -> AclOptions:
    return AclOptions(
        resources=named_resources(given),
        pattern=read_word(PatternType, given["pattern"]),
        operations=tuple(read_word(Operation, each) for each in given["operation"]),
        allow_principals=tuple(map(check_principal, given["allow_principal"])),
        deny_principals=tuple(map(check_principal, given["deny_principal"])),
        allow_hosts=tuple(map(check_host, given["allow_host"])),
        deny_hosts=tuple(map(check_host, given["deny_host"])),
        is_producer=given["producer"],
        is_consumer=given["consumer"],
        is_idempotent=given["idempotent"],
    )


def named_resources(given: dict[str, Any]) -> tuple[Resource, ...]:
    found: list[Resource] = [(kind, name) for option, kind in RESOURCES.items() for name in given[option]]
    if given["cluster"]:
        found.append((ResourceType.CLUSTER, CLUSTER_NAME))
    return tuple(found)


def resource_filters(
    resources: tuple[Resource, ...], pattern: PatternType, operations: tuple[Operation, ...] = ()
) -> list[AclFilter]:
    return [
        AclFilter(resource_type=kind, resource_name=name, pattern_type=pattern, operation=operation)
        for kind, name in resources
        for operation in operations or (Operation.ANY,)
    ]
