"""What ``millbeck group`` and ``millbeck share`` have in common: verbs as Kafka's tools spell them, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.verbs import one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

FLAGS: Final = {
    "--list": "list",
    "--describe": "describe",
    "--delete": "delete",
    "--delete-offsets": "delete-offsets",
    "--reset-offsets": "reset",
}


def one_group(ctx: click.Context, name: str | None, option: str | None) -> str:
    """The group that was named, as an argument or by an option."""
    asked = one_of_both(ctx, (name,) if name else (), (option,) if option else (), "group")
    if len(asked) != 1:
        raise click.UsageError("one group at a time", ctx)
    return asked[0]


def check_execution(ctx: click.Context, *, dry_run: bool, execute: bool) -> None:
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute exclude each other", ctx)


def check_topics(ctx: click.Context, topics: Sequence[str], *, all_topics: bool) -> None:
    """Some topics, or all of them."""
    if bool(topics) == all_topics:
        raise click.UsageError("give --topic or --all-topics", ctx)


async def delete_groups(admin: Admin, names: Sequence[str]) -> None:
    from millbeck.cli.topic import raise_failures

    outcomes = await admin.delete_groups(names)
    for name in outcomes.succeeded:
        click.echo(f"deleted {name}")
    raise_failures(outcomes.failed)
