"""``millbeck group``: consumer groups listed, described, reset and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.group_verbs import FLAGS, check_execution, check_topics, delete_groups, one_group
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.topic import raise_failures
from millbeck.cli.verbs import VerbGroup, is_spelled_as_kafka, one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import GroupDescription

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
"""Where Kafka's tool heads a column otherwise than with the name that programs read."""


@click.group(cls=VerbGroup, flags=FLAGS)
def command() -> None:
    """Consumer groups: what Kafka's kafka-consumer-groups does, whose flags are understood too."""


@command.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state; can be repeated.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only groups of this type; can be repeated.")
@output_option
@target_options
@click.pass_context
def list_groups(
    ctx: click.Context, states: tuple[str, ...], types: tuple[str, ...], output: str, target: Target
) -> None:
    """List the groups of all brokers. Spelled as --list, names alone are printed, as Kafka's tool does.

    \b
    Examples:
      millbeck group list
      millbeck group list --state Empty --output json
    """

    _check_known(ctx, _split(states), STATES, "--state")
    _check_known(ctx, _split(types), TYPES, "--type")

    async def work(admin: Admin) -> None:
        found = await admin.list_groups(states=_split(states), types=_split(types))
        if output == TABLE and is_spelled_as_kafka(ctx) and not (states or types):
            for name in found:
                click.echo(name)
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
@click.argument("names", nargs=-1)
@click.option("-g", "--group", multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="Every group there is.")
@click.option("--offsets", is_flag=True, help="Committed offsets and lag by partition (what is shown anyway).")
@click.option("--members", is_flag=True, help="Members instead of offsets.")
@click.option("--verbose", is_flag=True, help="With --members which partitions each has, with --state the epochs.")
@click.option("--state", is_flag=True, help="State, coordinator and number of members instead of offsets.")
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
    """Describe groups: how far they are and how far behind, their members, their state.

    \b
    Examples:
      millbeck group describe billing
      millbeck group describe billing --members --verbose
      millbeck group describe --all-groups --state --output json
    """
    if sum((offsets, members, state)) > 1:
        raise click.UsageError("choose one of --offsets, --members and --state", ctx)
    asked = () if all_groups else one_of_both(ctx, names, group, "group")

    async def work(admin: Admin) -> None:
        wanted = list(await admin.list_groups()) if all_groups else list(asked)
        described = await admin.describe_groups(wanted) if wanted else None
        if described is None:
            return
        raise_failures(described.failed)
        groups = list(described.succeeded.values())
        for each in groups:
            if each.state == "Dead":
                raise click.ClickException(f"there is no group {each.group_id}")
            if not each.members and output == TABLE and not state:
                click.echo(f"group {each.group_id} has no active members", err=True)
        if members:
            rows = [row for each in groups for row in member_rows(each, verbose)]
        elif state:
            rows = [state_row(each, verbose) for each in groups]
            if output == TABLE:
                nodes = {each.node_id: f"{each.host}:{each.port}" for each in (await admin.describe_cluster()).nodes}
                for row, each in zip(rows, groups, strict=True):
                    row["coordinator"] = f"{nodes.get(each.coordinator_id, '?')} ({each.coordinator_id})"
        else:
            rows = [row for each in groups for row in await _offset_rows(admin, each)]
        show_rows(rows, output, titles=TITLES)

    run_admin(target, work)


@command.command("delete")
@click.argument("names", nargs=-1)
@click.option("-g", "--group", multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="Every group there is.")
@target_options
@click.pass_context
def delete(
    ctx: click.Context, names: tuple[str, ...], group: tuple[str, ...], all_groups: bool, target: Target
) -> None:
    """Delete groups without members, with what they have committed.

    \b
    Examples:
      millbeck group delete billing
    """
    asked = () if all_groups else one_of_both(ctx, names, group, "group")

    async def work(admin: Admin) -> None:
        await delete_groups(admin, list(await admin.list_groups()) if all_groups else asked)

    run_admin(target, work)


@command.command("delete-offsets")
@click.option("-g", "--group", required=True, metavar="ID", help="The group.")
@click.option("-t", "--topic", "topics", multiple=True, required=True, metavar="TOPIC", help="Whose offsets to forget.")
@target_options
def delete_offsets(group: str, topics: tuple[str, ...], target: Target) -> None:
    """Forget what a group has committed for topics it does not consume now.

    \b
    Examples:
      millbeck group delete-offsets --group billing --topic orders
    """

    async def work(admin: Admin) -> None:
        chosen = _split(topics)
        committed = (await admin.list_group_offsets([group]))[group]
        wanted = [each for each in committed if each.topic in chosen]
        if not wanted:
            raise click.ClickException(f"group {group} has committed nothing for {', '.join(chosen)}")
        outcomes = await admin.delete_group_offsets(group, wanted)
        for partition in outcomes.succeeded:
            click.echo(f"forgot {partition}")
        raise_failures(outcomes.failed)

    run_admin(target, work)


@command.command("reset")
@click.argument("name", required=False)
@click.option("-g", "--group", metavar="ID", help="The same as NAME.")
@click.option(
    "-t", "--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="A topic, or some partitions of it."
)
@click.option("--all-topics", is_flag=True, help="Every topic the group has committed offsets for.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To what is committed now, or the end.")
@click.option("--to-offset", type=int, help="To this offset.")
@click.option("--shift-by", type=int, help="By this many records, backwards when negative.")
@click.option(
    "--to-datetime", metavar="YYYY-MM-DDTHH:MM:SS", help="To the first record since then; UTC unless it says."
)
@click.option("--by-duration", metavar="PnDTnHnMnS", help="To the first record since this long ago.")
@click.option("--from-file", metavar="FILE", help="To what a file says, a line TOPIC,PARTITION,OFFSET for each.")
@click.option("--export", is_flag=True, help="Print the plan as lines that --from-file takes.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done; so it is without --execute.")
@click.option("--execute", is_flag=True, help="Do it.")
@click.option("--create", is_flag=True, help="Also when there is no such group, which --reset-offsets always does.")
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
    create: bool,
    export: bool,
    output: str,
    target: Target,
    **positions: Any,
) -> None:
    """Move a group without members to other offsets. Shows the plan; --execute carries it out.

    An offset that does not exist becomes the nearest one that does, which is told on standard error.

    \b
    Examples:
      millbeck group reset billing --topic orders --to-earliest
      millbeck group reset billing --all-topics --to-datetime 2026-01-31T12:00:00 --execute
      millbeck group reset billing --topic orders:0,1 --shift-by -100 --execute
      millbeck group reset billing --all-topics --to-current --export > offsets.csv
      millbeck group reset billing --from-file offsets.csv --execute
    """
    from millbeck.cli.group_reset import exported, parse_partitions, position_of, reset_plan

    asked = one_group(ctx, name, group)
    check_execution(ctx, dry_run=dry_run, execute=execute)
    position = position_of(positions)
    if position.offsets is None:
        check_topics(ctx, topics, all_topics=all_topics)
    chosen = [parse_partitions(text) for text in topics]

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.results import GroupOffset

        creates = create or is_spelled_as_kafka(ctx)
        plan = await reset_plan(admin, asked, chosen, position, creates=creates)
        for partition, move in plan.items():
            if move.note is not None:
                click.echo(f"{partition}: {move.note}", err=True)
        if export:
            click.echo(exported(plan), nl=False)
            return
        show_rows(
            (
                {
                    "group": asked,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "current_offset": move.current,
                    "new_offset": move.new,
                }
                for partition, move in plan.items()
            ),
            output,
        )
        if execute:
            new_offsets = {partition: GroupOffset(offset=move.new) for partition, move in plan.items()}
            raise_failures((await admin.alter_group_offsets(asked, new_offsets)).failed)
        elif output == TABLE:
            click.echo("nothing was changed: give --execute to do this", err=True)

    run_admin(target, work)


def member_rows(group: GroupDescription, verbose: bool) -> list[dict[str, object]]:
    rows = []
    for each in group.members:
        row: dict[str, object] = {
            "group": group.group_id,
            "consumer_id": each.member_id,
            "group_instance_id": each.instance_id,
            "host": each.host,
            "client_id": each.client_id,
            "partitions": len(each.assignment),
        }
        if verbose:
            row["assignment"] = [str(partition) for partition in each.assignment]
        if verbose and each.target_assignment is not None:
            row |= {
                "current_epoch": each.epoch,
                "target_epoch": group.target_epoch,
                "target_assignment": [str(partition) for partition in each.target_assignment],
                "upgraded": not each.uses_classic_protocol,
            }
        rows.append(row)
    return rows


def state_row(group: GroupDescription, verbose: bool = False) -> dict[str, object]:
    row: dict[str, object] = {
        "group": group.group_id,
        "coordinator": group.coordinator_id,
        "assignment_strategy": group.protocol,
        "state": group.state,
        "members": len(group.members),
    }
    if verbose:
        row |= {"group_epoch": group.epoch, "target_assignment_epoch": group.target_epoch}
    return row


async def _offset_rows(admin: Admin, group: GroupDescription) -> list[dict[str, object]]:
    """A line per partition that has a committed offset or is assigned to a member."""
    from millbeck.client.admin.results import LATEST

    committed = (await admin.list_group_offsets([group.group_id]))[group.group_id]
    owners = {partition: each for each in group.members for partition in each.assignment}
    partitions = sorted({**committed, **owners})
    ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST)) if partitions else None
    rows = []
    for partition in partitions:
        current = committed[partition].offset if partition in committed else None
        end = ends.succeeded[partition].offset if ends is not None and partition in ends.succeeded else None
        owner = owners.get(partition)
        rows.append(
            {
                "group": group.group_id,
                "topic": partition.topic,
                "partition": partition.partition,
                "current_offset": current,
                "log_end_offset": end,
                "lag": None if current is None or end is None else max(0, end - current),
                "consumer_id": owner.member_id if owner is not None else None,
                "host": owner.host if owner is not None else None,
                "client_id": owner.client_id if owner is not None else None,
            }
        )
    return rows


def _check_known(ctx: click.Context, given: list[str], known: tuple[str, ...], option: str) -> None:
    spellings = {each.lower() for each in known}
    for text in given:
        if text.lower().replace("_", "") not in spellings:
            raise click.UsageError(f"{option}: {text!r} is not one of {', '.join(known)}", ctx)


def _split(texts: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]
