"""``millbeck share``: share groups listed, described, reset and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.dead_letters import dead_letters, topics_of
from millbeck.cli.group_verbs import FLAGS, check_execution, check_topics, delete_groups, one_group
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.topic import raise_failures
from millbeck.cli.verbs import VerbGroup, is_spelled_as_kafka, one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.ids import TopicPartition

SHARE: Final = "share"


@click.group(cls=VerbGroup, flags=FLAGS)
def command() -> None:
    """Share groups: what Kafka's kafka-share-groups does, whose flags are understood too."""


command.add_command(dead_letters)


@command.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state; can be repeated.")
@output_option
@target_options
@click.pass_context
def list_groups(ctx: click.Context, states: tuple[str, ...], output: str, target: Target) -> None:
    """List the share groups of all brokers. Spelled as --list, names alone are printed, as Kafka's tool does.

    \b
    Examples:
      millbeck share list
      millbeck share list --state Empty --output json
    """

    async def work(admin: Admin) -> None:
        found = await admin.list_groups(states=states, types=[SHARE])
        if output == TABLE and is_spelled_as_kafka(ctx) and not states:
            for name in found:
                click.echo(name)
            return
        show_rows(({"group": each.group_id, "state": each.state} for each in found.values()), output)

    run_admin(target, work)


@command.command("describe")
@click.argument("names", nargs=-1)
@click.option("-g", "--group", multiple=True, metavar="ID", help="The same as NAMES.")
@click.option("--all-groups", is_flag=True, help="Every share group there is.")
@click.option("--offsets", is_flag=True, help="Start offsets and lag by partition (what is shown anyway).")
@click.option("--members", is_flag=True, help="Members instead of offsets.")
@click.option("--state", is_flag=True, help="State, coordinator and number of members instead of offsets.")
@click.option("--verbose", is_flag=True, help="Epochs as well.")
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
    """Describe share groups: where they begin and how much is left, their members, their state.

    \b
    Examples:
      millbeck share describe jobs
      millbeck share describe jobs --members
    """
    if offsets + members + state > 1:
        raise click.UsageError("--offsets, --members and --state exclude each other", ctx)
    asked = () if all_groups else one_of_both(ctx, names, group, "group")

    async def work(admin: Admin) -> None:
        groups = asked or tuple(await admin.list_groups(states=(), types=[SHARE]))
        if members or state:
            described = await admin.describe_share_groups(groups)
            letters = await topics_of(admin, groups) if state else {}
            rows = [
                row
                for name, each in described.succeeded.items()
                for row in (_member_rows(each, verbose) if members else [_state_row(each, verbose, letters.get(name))])
            ]
            show_rows(rows, output)
            raise_failures(described.failed)
            return
        found = await admin.list_share_offsets(groups)
        show_rows(
            [
                {
                    "group": name,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "start_offset": None if offset.start_offset < 0 else offset.start_offset,
                    "lag": None if offset.lag < 0 else offset.lag,
                }
                for name, places in found.succeeded.items()
                for partition, offset in sorted(places.items())
            ],
            output,
        )
        raise_failures(found.failed)

    run_admin(target, work)


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
@click.argument("name", required=False)
@click.option("-g", "--group", metavar="ID", help="The same as NAME.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:N,…]", help="Only this; can be repeated.")
@click.option("--all-topics", is_flag=True, help="Every topic that the group has begun to read.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-datetime", metavar="TIME", help="To the first record not older, such as 2026-01-31T12:00:00.")
@click.option("--dry-run", is_flag=True, help="Only show the plan (what happens anyway).")
@click.option("--execute", is_flag=True, help="Carry it out.")
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
    """Let a share group without members begin elsewhere. Shows the plan; --execute carries it out.

    \b
    Examples:
      millbeck share reset jobs --topic orders --to-earliest
      millbeck share reset jobs --all-topics --to-datetime 2026-01-31T12:00:00 --execute
    """
    from millbeck.cli.group_reset import parse_partitions, position_of

    asked = one_group(ctx, name, group)
    check_execution(ctx, dry_run=dry_run, execute=execute)
    check_topics(ctx, topics, all_topics=all_topics)
    position = position_of(positions)
    chosen = [parse_partitions(text) for text in topics]

    async def work(admin: Admin) -> None:
        assert position.timestamp is not None
        partitions = await _partitions(admin, asked, chosen)
        from millbeck.client.admin.results import LATEST

        found = (await admin.list_offsets(dict.fromkeys(partitions, position.timestamp))).all()
        ends = (await admin.list_offsets(dict.fromkeys(partitions, LATEST))).all()
        # Where no record is so new, the group begins at the end.
        plan = {each: found[each].offset if found[each].offset >= 0 else ends[each].offset for each in partitions}
        show_rows(
            (
                {"group": asked, "topic": each.topic, "partition": each.partition, "new_offset": offset}
                for each, offset in plan.items()
            ),
            output,
        )
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
@click.argument("names", nargs=-1)
@click.option("-g", "--group", multiple=True, metavar="ID", help="The same as NAMES.")
@target_options
@click.pass_context
def delete(ctx: click.Context, names: tuple[str, ...], group: tuple[str, ...], target: Target) -> None:
    """Delete share groups without members, with everything that is known of their progress.

    \b
    Examples:
      millbeck share delete jobs
    """
    asked = one_of_both(ctx, names, group, "group")

    async def work(admin: Admin) -> None:
        await delete_groups(admin, asked)

    run_admin(target, work)


@command.command("delete-offsets")
@click.argument("name", required=False)
@click.option("-g", "--group", metavar="ID", help="The same as NAME.")
@click.option("--topic", "topics", multiple=True, required=True, metavar="TOPIC", help="Of this; can be repeated.")
@target_options
@click.pass_context
def delete_offsets(
    ctx: click.Context, name: str | None, group: str | None, topics: tuple[str, ...], target: Target
) -> None:
    """Forget what a share group without members has done in topics.

    \b
    Examples:
      millbeck share delete-offsets jobs --topic orders
    """
    asked = one_group(ctx, name, group)

    async def work(admin: Admin) -> None:
        deleted = await admin.delete_share_offsets(asked, topics)
        for topic in deleted.succeeded:
            click.echo(f"forgot what {asked} has done in {topic}")
        raise_failures(deleted.failed)

    run_admin(target, work)
