"""``millbeck share``: list, describe, reset and delete share groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.commands.topic import raise_failures
from millbeck.cli.completed_types import SHARE_GROUP, TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.groups.dead_letters import dead_letters, topics_of
from millbeck.cli.groups.options import (
    FLAGS,
    check_execution,
    check_topics,
    chosen,
    delete_groups,
    filter_option,
    raise_group_failures,
    selected_groups,
)
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup, is_kafka_style, kafka_tool, one_name, one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.errors import ApiError
    from millbeck.kernel.ids import TopicPartition

SHARE: Final = "share"
STATES: Final = ("Dead", "Empty", "Stable")


@click.group(cls=SubcommandGroup, flags=FLAGS)
def command() -> None:
    """Manage share groups (Kafka's kafka-share-groups, whose flags are accepted too)."""


command.add_command(dead_letters)


@command.command("list")
@filter_option("--state", "states", "state")
@output_option
@target_options
@click.pass_context
def list_groups(ctx: click.Context, states: tuple[str, ...], output: str, target: Target) -> None:
    """List the share groups of all brokers. With the flag --list only names are printed, as by Kafka's tool.

    \b
    Examples:
      millbeck share list
      millbeck share list --state Empty --output json
    """
    chosen_states = chosen(ctx, states, STATES, "--state")

    async def work(admin: Admin) -> None:
        found = await admin.list_groups(states=chosen_states, types=[SHARE])
        if output == TABLE and is_kafka_style(ctx) and not states:
            for name in found:
                click.echo(name)
            return
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import print_groups

            listed = ({"group": each.group_id, "state": each.state} for each in found.values())
            print_groups(listed, with_type=False, with_state=True)
            return
        show_rows(({"group": each.group_id, "state": each.state} for each in found.values()), output)

    run_admin(target, work)


@command.command("describe")
@click.argument("names", type=SHARE_GROUP, nargs=-1)
@click.option("-g", "--group", type=SHARE_GROUP, multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="All share groups.")
@click.option("--offsets", is_flag=True, help="Show start offsets and lag by partition (the default).")
@click.option("--members", is_flag=True, help="Show members instead of offsets.")
@click.option("--state", is_flag=True, help="Show state, coordinator and number of members instead of offsets.")
@click.option("--verbose", is_flag=True, help="Also show epochs.")
@output_option
@target_options
@click.pass_context
def describe(
    ctx: click.Context,
    names: tuple[str, ...],
    group: tuple[str, ...],
    all_groups: bool,
    offsets: bool,
    members: bool,
    state: bool,
    verbose: bool,
    output: str,
    target: Target,
) -> None:
    """Describe share groups: start offsets and lag, their members, or their state.

    \b
    Examples:
      millbeck share describe jobs
      millbeck share describe jobs --members
    """
    if offsets + members + state > 1:
        raise click.UsageError("--offsets, --members and --state cannot be combined", ctx)
    asked = selected_groups(ctx, names, group, all_groups=all_groups)

    async def work(admin: Admin) -> None:
        groups = asked or tuple(await admin.list_groups(states=(), types=[SHARE]))
        rows, failed = await described_rows(admin, groups, members=members, state=state, verbose=verbose)
        if kafka_tool() is not None:
            await _print_as_kafka(admin, rows, members=members, state=state)
        else:
            show_rows(rows, output)
        await raise_group_failures(admin, failed)

    run_admin(target, work)


async def _print_as_kafka(admin: Admin, rows: list[dict[str, Any]], *, members: bool, state: bool) -> None:
    from millbeck.cli.groups.description import show_coordinators
    from millbeck.cli.kafka_tools import formats

    if state:
        await show_coordinators(admin, rows)
    columns = formats.SHARE_MEMBERS if members else formats.SHARE_STATE if state else formats.SHARE_OFFSETS
    click.echo("")
    formats.print_table(rows, columns, always=not members)


async def described_rows(
    admin: Admin, groups: Sequence[str], *, members: bool, state: bool, verbose: bool
) -> tuple[list[dict[str, Any]], dict[str, ApiError]]:
    """The rows to show: members, state, or by default offsets; and the errors by group."""
    # Brokers know no error for the offsets of a group that does not exist: its description has it.
    described = await admin.describe_share_groups(groups)
    if members or state:
        letters = await topics_of(admin, groups) if state else {}
        rows = [
            row
            for name, each in described.succeeded.items()
            for row in (_member_rows(each, verbose) if members else [_state_row(each, verbose, letters.get(name))])
        ]
        return rows, described.failed
    found = await admin.list_share_offsets(tuple(described.succeeded))
    rows = [
        {
            "group": name,
            "topic": partition.topic,
            "partition": partition.partition,
            "start_offset": None if offset.start_offset < 0 else offset.start_offset,
            "lag": None if offset.lag < 0 else offset.lag,
        }
        for name, places in found.succeeded.items()
        for partition, offset in sorted(places.items())
    ]
    return rows, {**described.failed, **found.failed}


def _member_rows(group: Any, verbose: bool) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "host": member.host,
            "client_id": member.client_id,
            "assignment": ",".join(f"{each.topic}:{each.partition}" for each in member.assignment),
            **({"member_epoch": member.epoch} if verbose else {}),
        }
        for member in group.members
    ]


def _state_row(group: Any, verbose: bool, dead_letters: str | None = None) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "coordinator": group.coordinator_id,
        "state": group.state,
        **({"group_epoch": group.epoch, "assignment_epoch": group.assignment_epoch} if verbose else {}),
        "members": len(group.members),
        **({"dead_letters": dead_letters} if dead_letters else {}),
    }


@command.command("reset")
@click.argument("name", type=SHARE_GROUP, required=False)
@click.option("-g", "--group", type=SHARE_GROUP, metavar="ID", help="The same as NAME.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:N,…]",
    type=TOPIC,
    help="Reset only this topic, or some of its partitions; can be repeated.",
)
@click.option("--all-topics", is_flag=True, help="Reset every topic for which the group has a start offset.")
@click.option("--to-earliest", is_flag=True, help="Reset to the earliest offset.")
@click.option("--to-latest", is_flag=True, help="Reset to the latest offset.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="Reset to the first record at or after this time, such as 2026-01-31T12:00:00.",
)
@click.option("--dry-run", is_flag=True, help="Only show the plan (the default).")
@click.option("--execute", is_flag=True, help="Carry out the plan.")
@output_option
@target_options
@click.pass_context
def reset(
    ctx: click.Context,
    /,
    name: str | None,
    group: str | None,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    output: str,
    target: Target,
    **positions: Any,
) -> None:
    """Reset the start offsets of a share group without members. Shows the plan; --execute carries it out.

    \b
    Examples:
      millbeck share reset jobs --topic orders --to-earliest
      millbeck share reset jobs --all-topics --to-datetime 2026-01-31T12:00:00 --execute
    """
    from millbeck.cli.groups.positions import parse_partitions, position_of

    asked = one_name(ctx, name, group, "group")
    check_execution(ctx, dry_run=dry_run, execute=execute)
    check_topics(ctx, topics, all_topics=all_topics)
    position = position_of(positions)
    places = [parse_partitions(text) for text in topics]

    async def work(admin: Admin) -> None:
        assert position.timestamp is not None
        partitions = await _partitions(admin, asked, places)
        from millbeck.client.admin.results import LATEST

        found = (await admin.list_offsets(dict.fromkeys(partitions, position.timestamp))).all()
        ends = (await admin.list_offsets(dict.fromkeys(partitions, LATEST))).all()
        # If no record is that new, the group starts at the end.
        plan = {each: found[each].offset if found[each].offset >= 0 else ends[each].offset for each in partitions}
        rows = [
            {"group": asked, "topic": each.topic, "partition": each.partition, "new_offset": offset}
            for each, offset in plan.items()
        ]
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import NEW_OFFSETS, print_table

            print_table(rows, NEW_OFFSETS)
        else:
            show_rows(rows, output)
        if execute:
            raise_failures((await admin.alter_share_offsets(asked, plan)).failed)

    run_admin(target, work)


async def _partitions(admin: Admin, group: str, chosen: list[tuple[str, list[int] | None]]) -> list[TopicPartition]:
    from millbeck.kernel.ids import TopicPartition

    if not chosen:
        return sorted((await admin.list_share_offsets([group])).all()[group])
    described = (await admin.describe_topics([topic for topic, _ in chosen])).all()
    return [
        TopicPartition(topic, index)
        for topic, indexes in chosen
        for index in (indexes or range(len(described[topic].partitions)))
    ]


@command.command("delete")
@click.argument("names", type=SHARE_GROUP, nargs=-1)
@click.option("-g", "--group", type=SHARE_GROUP, multiple=True, metavar="ID", help="The same as NAMES.")
@target_options
@click.pass_context
def delete(ctx: click.Context, names: tuple[str, ...], group: tuple[str, ...], target: Target) -> None:
    """Delete share groups without members, with their state.

    \b
    Examples:
      millbeck share delete jobs
    """
    asked = one_of_both(ctx, names, group, "group")

    async def work(admin: Admin) -> None:
        await delete_groups(admin, asked)

    run_admin(target, work)


@command.command("delete-offsets")
@click.argument("name", type=SHARE_GROUP, required=False)
@click.option("-g", "--group", type=SHARE_GROUP, metavar="ID", help="The same as NAME.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC",
    type=TOPIC,
    help="Delete the state of this topic; can be repeated.",
)
@target_options
@click.pass_context
def delete_offsets(
    ctx: click.Context, name: str | None, group: str | None, topics: tuple[str, ...], target: Target
) -> None:
    """Delete the state of a share group without members for some topics.

    \b
    Examples:
      millbeck share delete-offsets jobs --topic orders
    """
    asked = one_name(ctx, name, group, "group")

    async def work(admin: Admin) -> None:
        deleted = await admin.delete_share_offsets(asked, topics)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import print_table

            rows = [{"topic": topic, "status": "Successful"} for topic in deleted.succeeded]
            rows += [{"topic": topic, "status": f"Error: {error}"} for topic, error in deleted.failed.items()]
            print_table(rows, {"TOPIC": "topic", "STATUS": "status"})
            return
        for topic in deleted.succeeded:
            click.echo(f"deleted the offsets of group {asked} in {topic}")
        raise_failures(deleted.failed)

    run_admin(target, work)
