"""Requests of the ACL commands to a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millbeck.cli.acls.files import Difference
    from millbeck.client.admin import Admin
    from millbeck.security.acls import AccessControlEntry, AclFilter


async def authorizer_settings(admin: Admin, super_users: str | None, allow_everyone: bool) -> tuple[list[str], bool]:
    """The superusers, and ``allow.everyone.if.no.acl.found``: from the options, or else described by a broker.

    Apache Kafka does not return these settings; then only superusers given in the options are known.
    """
    from millbeck.client.admin.results import ConfigResource, ResourceType
    from millbeck.kernel.errors import ApiError
    from millbeck.security.standard_authorizer import parse_super_users

    texts: dict[str, str | None] = {}
    if super_users is None:
        try:
            nodes = (await admin.describe_cluster()).nodes
            broker = ConfigResource(ResourceType.BROKER, str(next(iter(nodes)).node_id))
            described = (await admin.describe_configs({broker: None})).all()[broker]
            texts = {name: entry.value for name, entry in described.items()}
        except ApiError as error:
            click.echo(f"super.users could not be read ({error}): give it with --super-users", err=True)
        else:
            if texts.get("super.users") is None:
                click.echo("super.users could not be read from a broker: give it with --super-users", err=True)
    users = parse_super_users(super_users if super_users is not None else texts.get("super.users") or "")
    return sorted(users), allow_everyone or texts.get("allow.everyone.if.no.acl.found") == "true"


async def described(admin: Admin, filters: Iterable[AclFilter]) -> list[AccessControlEntry]:
    found: dict[AccessControlEntry, None] = {}
    for each in filters:
        found.update(dict.fromkeys(await admin.describe_acls(each)))
    return list(found)


async def changes_to(admin: Admin, wanted: Iterable[AccessControlEntry], prune: bool) -> Difference:
    from millbeck.cli.acls.files import Difference, difference
    from millbeck.security.acls import AclFilter

    changes = difference(wanted, await admin.describe_acls(AclFilter()))
    return changes if prune else Difference(missing=changes.missing, surplus=())
