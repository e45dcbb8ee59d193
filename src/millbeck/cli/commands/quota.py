"""``millbeck quota``: show, set and remove the quotas of users, client ids and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.quotas import entity_of, entity_text, quota_name, quota_rows, read_quota, value_text
from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from millbeck.client.admin import Admin
    from millbeck.client.admin.quotas import QuotaEntity


@click.group(cls=SubcommandGroup, flags={"--describe": "list", "--alter": "set"})
def command() -> None:
    """Show and change client quotas: bytes per second, broker time, partition changes."""


def entity_options(run: Callable[..., None]) -> Callable[..., None]:
    for name, what in (("--ip", "of an address"), ("--client-id", "of a client id"), ("--user", "of a user")):
        run = click.option(name, metavar="NAME", help=f"Quotas {what}; 'default' means the default quota.")(run)
    return run


@command.command("list")
@output_option
@target_options
def list_quotas(output: str, target: Target) -> None:
    """Show all quotas.

    \b
    Examples:
      millbeck quota list
      millbeck quota list --output json
    """

    async def work(admin: Admin) -> None:
        show_rows(quota_rows(await admin.describe_client_quotas()), output)

    run_admin(target, work)


@command.command("set")
@click.argument("quotas", metavar="QUOTA=VALUE...", nargs=-1, required=True)
@entity_options
@target_options
def set_quotas(quotas: tuple[str, ...], target: Target, **given: str | None) -> None:
    """Set quotas: produce, consume (bytes per second), request (percent), mutations (partitions per second).

    \b
    Examples:
      millbeck quota set --user alice produce=10M consume=20M
      millbeck quota set --user default --client-id default request=50
      millbeck quota set --client-id batch mutations=5
    """
    entity = entity_of(given)
    changes = dict(read_quota(text) for text in quotas)
    _alter(target, {entity: changes}, "set")


@command.command("remove")
@click.argument("quotas", metavar="QUOTA...", nargs=-1)
@entity_options
@target_options
def remove(quotas: tuple[str, ...], target: Target, **given: str | None) -> None:
    """Remove quotas of a user, client id or address: the named ones, or all.

    \b
    Examples:
      millbeck quota remove --user alice produce
      millbeck quota remove --user alice
    """
    entity = entity_of(given)
    named = [quota_name(text) for text in quotas]

    async def work(admin: Admin) -> None:
        there = (await admin.describe_client_quotas()).get(entity, {})
        gone: dict[str, float | None] = dict.fromkeys(named or there)
        if gone:
            (await admin.alter_client_quotas({entity: gone})).all()
        click.echo(f"removed {', '.join(gone)} of {entity_text(entity)}" if gone else "there are no such quotas")

    run_admin(target, work)


def _alter(target: Target, changes: dict[QuotaEntity, dict[str, float | None]], done: str) -> None:
    async def work(admin: Admin) -> None:
        (await admin.alter_client_quotas(changes)).all()
        for entity, quotas in changes.items():
            shown = ", ".join(f"{key}={value_text(value or 0.0)}" for key, value in quotas.items())
            click.echo(f"{done} {shown} for {entity_text(entity)}")

    run_admin(target, work)
