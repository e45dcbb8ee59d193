"""``millbeck group``: list, describe, reset and delete consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.commands.topic import raise_failures
from millbeck.cli.completed_types import FILE, GROUP, TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.groups.description import (
    Described,
    describe_all,
    member_rows,
    offset_rows,
    share_rows,
    show_coordinators,
    state_row,
    streams_rows,
)
from millbeck.cli.groups.options import (
    FLAGS,
    check_execution,
    check_topics,
    chosen,
    delete_groups,
    filter_option,
    raise_group_failures,
    selected_groups,
    split,
)
from millbeck.cli.output import TABLE, output_option, printable, show_rows
from millbeck.cli.verbs import SubcommandGroup, is_kafka_style, kafka_tool, one_name
from millbeck.kernel.ids import holds_batch_notes

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

STATES: Final = (
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "NotReady",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)
TYPES: Final = ("Classic", "Consumer", "Share", "Streams")
TITLES: Final = {"coordinator": "COORDINATOR (ID)", "members": "#MEMBERS", "partitions": "#PARTITIONS"}
"""Column headings where Kafka's table differs from the field name in JSON."""


@click.group(cls=SubcommandGroup, flags=FLAGS)
def command() -> None:
    """Manage consumer groups (Kafka's kafka-consumer-groups, whose flags are accepted too)."""


@command.command("list")
@filter_option("--state", "states", "state")
@filter_option("--type", "types", "type")
@click.option("--protocol", metavar="NAME", help="Only groups with this protocol type, such as consumer or connect.")
@click.option("--consumer", is_flag=True, help="Only consumer groups, those of the classic protocol included.")
@output_option
@target_options
@click.pass_context
def list_groups(
    ctx: click.Context,
    states: tuple[str, ...],
    types: tuple[str, ...],
    protocol: str | None,
    consumer: bool,
    output: str,
    target: Target,
) -> None:
    """List the groups of all brokers. With the flag --list only names are printed, as by Kafka's tool.

    Groups in which exactly-once pipelines store their progress (millbeck- and 24 digits) are not listed.

    \b
    Examples:
      millbeck group list
      millbeck group list --state Empty --output json
      millbeck group list --type share
    """
    if consumer and (types or protocol is not None):
        raise click.UsageError("--consumer cannot be combined with --type or --protocol", ctx)
    chosen_states = chosen(ctx, states, STATES, "--state")
    chosen_types = chosen(ctx, types, TYPES, "--type")

    async def work(admin: Admin) -> None:
        # Kafka's tool does not list share groups, which have a separate tool.
        of_tool = {"kafka-consumer-groups": ("classic", "consumer"), "kafka-streams-groups": ("streams",)}
        wanted = ("classic", "consumer") if consumer else chosen_types or of_tool.get(kafka_tool() or "", ())
        found = await admin.list_groups(states=chosen_states, types=wanted)
        protocols = ("consumer", "") if consumer else None if protocol is None else (protocol,)
        if protocols is not None:
            found = {name: each for name, each in found.items() if each.protocol_type in protocols}
        if kafka_tool() is None:
            found = {name: each for name, each in found.items() if not holds_batch_notes(name)}
        if kafka_tool() == "kafka-groups":
            from millbeck.cli.kafka_tools.formats import print_all_groups

            print_all_groups(found.values())
            return
        if output == TABLE and is_kafka_style(ctx) and not (states or types):
            for name in found:
                click.echo(printable(name))
            return
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import print_groups

            listed = (
                {"group": each.group_id, "state": each.state, "type": each.type.capitalize()} for each in found.values()
            )
            print_groups(listed, with_type=bool(types), with_state=bool(states))
            return
        show_rows(
            (
                {"group": each.group_id, "state": each.state, "type": each.type, "protocol": each.protocol_type}
                for each in found.values()
            ),
            output,
        )

    run_admin(target, work)


@command.command("describe")
@click.argument("names", type=GROUP, nargs=-1)
@click.option("-g", "--group", type=GROUP, multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option("--offsets", is_flag=True, help="Show committed offsets and lag by partition (the default).")
@click.option("--members", is_flag=True, help="Show members instead of offsets.")
@click.option(
    "--verbose", is_flag=True, help="With --members, also show the assigned partitions; with --state, the epochs."
)
@click.option("--state", is_flag=True, help="Show state, coordinator and number of members instead of offsets.")
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
    verbose: bool,
    state: bool,
    output: str,
    target: Target,
) -> None:
    """Describe groups: committed offsets and lag, their members, or their state.

    Share groups and streams groups can be named too. If one group fails, the others are shown and the exit code is 1.

    \b
    Examples:
      millbeck group describe billing
      millbeck group describe billing --members --verbose
      millbeck group describe --all-groups --state --output json
    """
    if sum((offsets, members, state)) > 1:
        raise click.UsageError("choose one of --offsets, --members and --state", ctx)
    asked = selected_groups(ctx, names, group, all_groups=all_groups)

    async def work(admin: Admin) -> None:
        found = await describe_all(admin, list(asked), all_groups=all_groups)
        rows: list[dict[str, object]] = []
        for each in found.groups:
            if not each.members and output == TABLE and not state and kafka_tool() != "kafka-streams-groups":
                click.echo(f"group {printable(each.group_id)} has no active members", err=True)
            if kafka_tool() is not None:
                continue
            if members:
                rows += member_rows(each, verbose)
            elif state:
                rows.append(state_row(each, verbose))
            else:
                rows += await offset_rows(admin, each, found.failed)
        if kafka_tool() is not None:
            if kafka_tool() == "kafka-streams-groups":
                from millbeck.cli.kafka_tools.streams_groups import print_described

                others = [described.group_id for described in found.groups]
                others += found.share_groups
                if others and not all_groups:
                    raise click.ClickException(f"{others[0]} is not a streams group")
                await print_described(admin, found, members=members, state=state, verbose=verbose)
            else:
                await _describe_as_kafka(admin, found, members=members, state=state, verbose=verbose)
            await raise_group_failures(admin, found.failed)
            return
        tables = [
            rows,
            await share_rows(admin, found, members=members, state=state, verbose=verbose),
            await streams_rows(admin, found, members=members, state=state, verbose=verbose),
        ]
        everything = [row for table in tables for row in table]
        if output != TABLE:
            show_rows(everything, output)
        else:
            if state:
                await show_coordinators(admin, everything)
            shown = [table for table in tables if table] or [[]]
            for number, table in enumerate(shown):
                if number:
                    click.echo()
                show_rows(table, output, titles=TITLES)
        await raise_group_failures(admin, found.failed)

    run_admin(target, work)


async def _describe_as_kafka(admin: Admin, found: Described, *, members: bool, state: bool, verbose: bool) -> None:
    """One table per group, in the columns of Kafka's tool."""
    from millbeck.cli.kafka_tools import formats

    for each in found.groups:
        if members:
            rows = member_rows(each, verbose)
            for row, member in zip(rows, each.members, strict=True):
                row["assignment"] = formats.assignment_text(member.assignment)
                row["target_assignment"] = formats.assignment_text(member.target_assignment or ())
            columns = formats.GROUP_MEMBERS_VERBOSE if verbose else formats.GROUP_MEMBERS
        elif state:
            rows = [state_row(each, verbose)]
            rows[0]["assignment_strategy"] = each.protocol or None
            await show_coordinators(admin, rows)
            columns = formats.GROUP_STATE_VERBOSE if verbose else formats.GROUP_STATE
        else:
            rows = await offset_rows(admin, each, found.failed)
            columns = formats.GROUP_OFFSETS_VERBOSE if verbose else formats.GROUP_OFFSETS
        click.echo("")
        formats.print_table(rows, columns)


@command.command("delete")
@click.argument("names", type=GROUP, nargs=-1)
@click.option("-g", "--group", type=GROUP, multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@target_options
@click.pass_context
def delete(
    ctx: click.Context, names: tuple[str, ...], group: tuple[str, ...], all_groups: bool, target: Target
) -> None:
    """Delete groups without members, with their committed offsets.

    \b
    Examples:
      millbeck group delete billing
    """
    asked = selected_groups(ctx, names, group, all_groups=all_groups)

    async def work(admin: Admin) -> None:
        await delete_groups(admin, list(await admin.list_groups()) if all_groups else asked)

    run_admin(target, work)


@command.command("validate-regex")
@click.argument("regex")
def validate_regex(regex: str) -> None:
    """Check a regular expression (RE2) for a subscription with the consumer protocol. Does not connect to a broker.

    \b
    Examples:
      millbeck group validate-regex 'orders-.*'
    """
    from millbeck.coordinator.group.consumer.regular_expressions import check
    from millbeck.kernel.errors import InvalidRegularExpression

    try:
        check(regex)
    except InvalidRegularExpression as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"The regular expression `{regex}` is valid.")


@command.command("delete-offsets")
@click.argument("name", type=GROUP, required=False)
@click.option("-g", "--group", type=GROUP, metavar="ID", help="The same as NAME.")
@click.option(
    "-t",
    "--topic",
    "topics",
    type=TOPIC,
    multiple=True,
    required=True,
    metavar="TOPIC",
    help="Delete the offsets of this topic.",
)
@target_options
@click.pass_context
def delete_offsets(
    ctx: click.Context, name: str | None, group: str | None, topics: tuple[str, ...], target: Target
) -> None:
    """Delete a group's committed offsets of topics that it does not consume now.

    \b
    Examples:
      millbeck group delete-offsets billing --topic orders
    """
    asked = one_name(ctx, name, group, "group")
    names = split(topics)

    async def work(admin: Admin) -> None:
        committed = (await admin.list_group_offsets([asked]))[asked]
        wanted = [each for each in committed if each.topic in names]
        if not wanted:
            raise click.ClickException(f"group {asked} has no committed offsets for {', '.join(names)}")
        outcomes = await admin.delete_group_offsets(asked, wanted)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import print_offsets_deleted

            print_offsets_deleted(asked, outcomes)
            return
        for partition in outcomes.succeeded:
            click.echo(f"deleted the offset of {partition}")
        raise_failures(outcomes.failed)

    run_admin(target, work)


@command.command("reset")
@click.argument("names", type=GROUP, nargs=-1)
@click.option("-g", "--group", type=GROUP, multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="All consumer groups.")
@click.option(
    "-t",
    "--topic",
    "topics",
    type=TOPIC,
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="Reset the offsets of this topic, or of some of its partitions.",
)
@click.option(
    "--all-topics", is_flag=True, help="Reset the offsets of every topic for which the group has committed offsets."
)
@click.option("--to-earliest", is_flag=True, help="Reset to the earliest offset.")
@click.option("--to-latest", is_flag=True, help="Reset to the latest offset.")
@click.option("--to-current", is_flag=True, help="Reset to the committed offset, or to the latest if there is none.")
@click.option("--to-offset", type=int, help="Reset to this offset.")
@click.option("--shift-by", type=int, help="Shift the offset by this many records, backwards if negative.")
@click.option(
    "--to-datetime",
    metavar="YYYY-MM-DDTHH:MM:SS",
    help="Reset to the first record at or after this time; UTC unless it has a zone.",
)
@click.option("--by-duration", metavar="PnDTnHnMnS", help="Reset to the first record not older than this duration.")
@click.option(
    "--from-file",
    metavar="FILE",
    type=FILE,
    help="Reset to the offsets in a file with lines TOPIC,PARTITION,OFFSET, for several groups GROUP,TOPIC,….",
)
@click.option("--export", is_flag=True, help="Print the plan in the format of --from-file.")
@click.option("--dry-run", is_flag=True, help="Only show the plan (the default without --execute).")
@click.option("--execute", is_flag=True, help="Carry out the plan.")
@click.option("--create", is_flag=True, help="Create the group if it does not exist; --reset-offsets always does.")
@output_option
@target_options
@click.pass_context
def reset(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    group: tuple[str, ...],
    all_groups: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    create: bool,
    export: bool,
    output: str,
    target: Target,
    **positions: Any,
) -> None:
    """Reset the committed offsets of groups without members. Shows the plan; --execute carries it out.

    An offset out of range is replaced by the nearest valid one, with a note on standard error. If one of several groups
    cannot be reset, the others are, and the exit code is 1.

    \b
    Examples:
      millbeck group reset billing --topic orders --to-earliest
      millbeck group reset billing --all-topics --to-datetime 2026-01-31T12:00:00 --execute
      millbeck group reset billing --topic orders:0,1 --shift-by -100 --execute
      millbeck group reset billing --all-topics --to-current --export > offsets.csv
      millbeck group reset billing --from-file offsets.csv --execute
      millbeck group reset --all-groups --all-topics --to-latest --execute
    """
    from millbeck.cli.groups.positions import exported, parse_partitions, position_of
    from millbeck.cli.groups.resets import carry_out, consumer_groups, reset_plans, show_plans

    asked = selected_groups(ctx, names, group, all_groups=all_groups)
    check_execution(ctx, dry_run=dry_run, execute=execute)
    position = position_of(positions)
    if position.offsets is None:
        check_topics(ctx, topics, all_topics=all_topics)
    places = [parse_partitions(text) for text in topics]

    async def work(admin: Admin) -> None:
        creates = create or is_kafka_style(ctx)
        plans, problems = await reset_plans(
            admin, asked or await consumer_groups(admin), places, position, creates=creates
        )
        for partition, move in ((partition, move) for plan in plans.values() for partition, move in plan.items()):
            if move.note is not None:
                click.echo(f"{partition}: {move.note}", err=True)
        if export:
            click.echo(exported(plans), nl=False)
        else:
            show_plans(plans, output)
        if execute and not export:
            await carry_out(admin, plans)
        elif output == TABLE and plans and not export:
            click.echo("nothing was changed: add --execute to carry this out", err=True)
        if problems:
            raise click.ClickException("; ".join(problems))

    run_admin(target, work)
