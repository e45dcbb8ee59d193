"""Code shared by ``millbeck group`` and ``millbeck share``: filter options, Kafka's spelling of verbs, and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from millbeck.cli.verbs import kafka_tool, one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.errors import ApiError

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: Final = {
    "--list": "list",
    "--describe": "describe",
    "--delete": "delete",
    "--delete-offsets": "delete-offsets",
    "--reset-offsets": "reset",
}
EVERY: Final = ""
"""The value of a filter option given without a value, as Kafka's tools allow: show the column without filtering."""


def filter_option(name: str, parameter: str, what: str) -> Callable[[F], F]:
    """Adds ``--state`` or ``--type``, whose value may be missing; `chosen` reads it."""
    return click.option(
        name,
        parameter,
        multiple=True,
        is_flag=False,
        flag_value=EVERY,
        metavar=f"[{what.upper()},…]",
        help=f"Only groups with this {what}; can be repeated. Without a value, only show each group's {what}.",
    )


def chosen(ctx: click.Context, given: Sequence[str], known: Sequence[str], option: str) -> list[str]:
    """The values of a filter option; raises for an unknown one."""
    values = split(given)
    spellings = {each.lower() for each in known}
    for text in values:
        if text.lower().replace("_", "") not in spellings:
            raise click.UsageError(f"{option}: {text!r} is not one of {', '.join(known)}", ctx)
    return values


def split(texts: Sequence[str]) -> list[str]:
    """Flatten names given one by one or as comma-separated lists."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def selected_groups(
    ctx: click.Context, names: tuple[str, ...], option: tuple[str, ...], *, all_groups: bool
) -> tuple[str, ...]:
    """The groups named as arguments or by an option; empty with ``--all-groups``, which cannot be combined with
    names."""
    if not all_groups:
        return one_of_both(ctx, names, option, "group")
    if names or option:
        raise click.UsageError("--all-groups and names of groups cannot be combined", ctx)
    return ()


def check_execution(ctx: click.Context, *, dry_run: bool, execute: bool) -> None:
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute cannot be combined", ctx)


def check_topics(ctx: click.Context, topics: Sequence[str], *, all_topics: bool) -> None:
    """Check that either topics or all topics are given."""
    if bool(topics) == all_topics:
        raise click.UsageError("give --topic or --all-topics", ctx)


async def delete_groups(admin: Admin, names: Sequence[str]) -> None:
    outcomes = await admin.delete_groups(names)
    if (tool := kafka_tool()) is not None and not outcomes.failed:
        from millbeck.cli.kafka_tools.formats import groups_deleted

        kind = tool.removeprefix("kafka-").removesuffix("-groups")
        click.echo(groups_deleted(kind, outcomes.succeeded))
        return
    for name in outcomes.succeeded:
        click.echo(f"deleted {name}")
    await raise_group_failures(admin, outcomes.failed)


async def raise_group_failures(admin: Admin, failed: Mapping[str, ApiError]) -> None:
    """Raise all failures as one line, with a similar name for a single group that does not exist."""
    from millbeck.cli.commands.topic import raise_failures
    from millbeck.cli.suggestions import did_you_mean
    from millbeck.kernel.errors import GroupIdNotFound

    if len(failed) == 1:
        ((name, error),) = failed.items()
        if isinstance(error, GroupIdNotFound) and (hint := did_you_mean(name, await admin.list_groups())):
            raise click.ClickException(f"there is no group {name}{hint}")
    raise_failures(dict(failed))
