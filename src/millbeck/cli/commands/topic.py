"""``millbeck topic``: list, create, describe, alter and delete topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.completed_types import TOPIC, TOPIC_SETTING, TOPIC_SETTING_NAME
from millbeck.cli.connection_options import Target, error_text, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.topics.deletion import command as delete_records
from millbeck.cli.topics.description import dirty_ratios_of, is_kept, settings_of_topics, show_topics, shown_topic
from millbeck.cli.topics.offsets import command as offsets
from millbeck.cli.verbs import SubcommandGroup, is_kafka_style, kafka_tool, one_of_both

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import CreatedTopic

DELETED_AT_ONCE: Final = 100
KEYS_MOVE: Final = (
    "warning: adding partitions changes which partition a key maps to: new records of a key may go to another "
    "partition than its earlier ones, so their order is not kept across the change"
)


@click.group(
    cls=SubcommandGroup,
    flags={f"--{verb}": verb for verb in ("create", "list", "describe", "alter", "delete")},
)
def command() -> None:
    """Manage topics (Kafka's kafka-topics, whose flags are accepted too)."""


@command.command("create")
@click.argument("names", nargs=-1)
@click.option("-t", "--topic", multiple=True, metavar="NAME", help="The same as NAMES.")
@click.option(
    "-p", "--partitions", type=click.IntRange(1), help="Partition count; default: the broker's num.partitions."
)
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1), help="Replicas per partition; default: the broker's default."
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    type=TOPIC_SETTING,
    help="A topic setting; can be repeated.",
)
@click.option("--replica-assignment", metavar="1:2,2:3", help="Replicas of each partition, preferred leader first.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@target_options
@click.pass_context
def create(
    ctx: click.Context,
    names: tuple[str, ...],
    topic: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    replica_assignment: str | None,
    if_not_exists: bool,
    target: Target,
) -> None:
    """Create topics.

    \b
    Examples:
      millbeck topic create orders
      millbeck topic create orders payments --partitions 6 --config retention.ms=86400000
      millbeck topic --create --topic orders --bootstrap-server localhost:9092 --if-not-exists
    """
    wanted = one_of_both(ctx, names, topic, "topic")
    settings = settings_of(configs, "--config")
    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise click.UsageError(
            "--replica-assignment cannot be combined with --partitions and --replication-factor", ctx
        )
    assignments = {} if replica_assignment is None else dict(enumerate(parse_assignment(replica_assignment)))

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.results import NewTopic
        from millbeck.kernel.errors import TopicAlreadyExists

        new = [
            NewTopic(
                name=name,
                partition_count=-1 if partitions is None else partitions,
                replication_factor=-1 if replication_factor is None else replication_factor,
                assignments=assignments,
                configs=settings,
            )
            for name in wanted
        ]
        outcomes = await admin.create_topics(new)
        for name, made in outcomes.succeeded.items():
            click.echo(_created_text(name, made))
        if if_not_exists:
            for name, error in list(outcomes.failed.items()):
                if isinstance(error, TopicAlreadyExists):
                    if kafka_tool() is None:
                        click.echo(f"{name} already exists")
                    del outcomes.failed[name]
        raise_failures(outcomes.failed, settings=settings)

    run_admin(target, work)


def _created_text(name: str, made: CreatedTopic) -> str:
    if kafka_tool() is None:
        return f"created {name}: {made.partition_count} partition(s), {made.replication_factor} replica(s)"
    from millbeck.cli.kafka_tools.formats import NAME_COLLISION

    warning = f"{NAME_COLLISION}\n" if "." in name or "_" in name else ""
    return f"{warning}Created topic {name}."


@command.command("list")
@click.argument("patterns", nargs=-1, type=TOPIC)
@click.option("-t", "--topic", multiple=True, metavar="REGEX", type=TOPIC, help="The same as the argument PATTERNS.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@output_option
@target_options
@click.pass_context
def list_topics(
    ctx: click.Context,
    patterns: tuple[str, ...],
    topic: tuple[str, ...],
    exclude_internal: bool,
    output: str,
    target: Target,
) -> None:
    """List all topics, or those whose name is given or matched by a regular expression.

    With the flag --list only names are printed, as by Kafka's tool.

    \b
    Examples:
      millbeck topic list
      millbeck topic list 'orders\\..*' --output json
    """

    async def work(admin: Admin) -> None:
        found = await admin.list_topics()
        chosen = found if not (patterns or topic) else matching(found, (*patterns, *topic))
        rows = [
            {"name": name, "partitions": found[name].partition_count, "internal": found[name].is_internal}
            for name in chosen
            if not (exclude_internal and found[name].is_internal)
        ]
        if output == TABLE and is_kafka_style(ctx):
            for row in rows:
                click.echo(row["name"])
        else:
            show_rows(rows, output)

    run_admin(target, work)


@command.command("describe")
@click.argument("patterns", nargs=-1, type=TOPIC)
@click.option("-t", "--topic", multiple=True, metavar="REGEX", type=TOPIC, help="The same as the argument PATTERNS.")
@click.option("--topic-id", metavar="UUID", help="Describe the topic with this id.")
@click.option(
    "--under-replicated-partitions",
    "--under-replicated",
    "under_replicated_partitions",
    is_flag=True,
    help="Show only partitions with fewer in-sync replicas than replicas.",
)
@click.option(
    "--unavailable-partitions",
    "--unavailable",
    "unavailable_partitions",
    is_flag=True,
    help="Show only partitions without a leader.",
)
@click.option(
    "--under-min-isr-partitions",
    "--under-min-isr",
    "under_min_isr_partitions",
    is_flag=True,
    help="Show only partitions below min.insync.replicas.",
)
@click.option(
    "--at-min-isr-partitions",
    "--at-min-isr",
    "at_min_isr_partitions",
    is_flag=True,
    help="Show only partitions exactly at min.insync.replicas.",
)
@click.option("--topics-with-overrides", is_flag=True, help="Show only topics with config overrides.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option("--if-exists", is_flag=True, help="Do not fail if a topic does not exist.")
@output_option
@target_options
def describe(
    patterns: tuple[str, ...],
    topic: tuple[str, ...],
    topic_id: str | None,
    topics_with_overrides: bool,
    exclude_internal: bool,
    if_exists: bool,
    output: str,
    target: Target,
    **filters: bool,
) -> None:
    """Describe topics: partitions, leaders, replicas, ISR, and config overrides.

    For compacted topics it also shows the share of the log that is not compacted yet (DirtyRatio), if the broker
    reports it; Apache Kafka does not.

    \b
    Examples:
      millbeck topic describe orders
      millbeck topic describe --under-replicated-partitions
      millbeck topic describe --topic orders --output yaml
    """
    asked = (*patterns, *topic)

    async def work(admin: Admin) -> None:
        from millbeck.kernel.ids import uuid_text

        found = await admin.list_topics()
        names = list(found) if not asked else matching(found, asked, missing_is_fine=if_exists)
        if topic_id is not None:
            names = [name for name in names if uuid_text(found[name].topic_id) == topic_id]
            if not names and not if_exists:
                raise click.ClickException(f"no topic has the id {topic_id}")
        names = [name for name in names if not (exclude_internal and found[name].is_internal)]
        described = (await admin.describe_topics(names)).all() if names else {}
        overrides, min_isr, compacted = await settings_of_topics(admin, names)
        if kafka_tool() is not None:
            compacted = []  # Kafka's tool has no such column.
        dirty_ratios = await dirty_ratios_of(admin, [described[name] for name in compacted])
        wanted = [name for name, value in filters.items() if value]
        topics = []
        for name in sorted(described):
            if topics_with_overrides and not overrides[name]:
                continue
            partitions = [
                each for each in described[name].partitions if not wanted or is_kept(each, wanted, min_isr[name])
            ]
            if partitions or not wanted:
                ratios = dirty_ratios if name in compacted else None
                topics.append(shown_topic(described[name], partitions, overrides[name], ratios))
        if topics_with_overrides and kafka_tool() is not None:
            topics = [topic | {"partitions": []} for topic in topics]
        show_topics(topics, output, with_heads=not wanted)

    run_admin(target, work)


@command.command("alter")
@click.argument("names", nargs=-1, type=TOPIC)
@click.option("-t", "--topic", multiple=True, metavar="REGEX", type=TOPIC, help="The same as NAMES.")
@click.option("-p", "--partitions", type=click.IntRange(1), help="The new partition count; cannot be lowered.")
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    type=TOPIC_SETTING,
    help="Set a topic setting; can be repeated.",
)
@click.option(
    "--delete-config", multiple=True, metavar="KEY", type=TOPIC_SETTING_NAME, help="Reset a setting to its default."
)
@click.option("--replica-assignment", metavar="1:2,2:3", help="Replicas of each added partition.")
@click.option("--if-exists", is_flag=True, help="Do nothing if the topic does not exist.")
@target_options
@click.pass_context
def alter(
    ctx: click.Context,
    names: tuple[str, ...],
    topic: tuple[str, ...],
    partitions: int | None,
    configs: tuple[str, ...],
    delete_config: tuple[str, ...],
    replica_assignment: str | None,
    if_exists: bool,
    target: Target,
) -> None:
    """Add partitions to topics, or change their settings.

    \b
    Examples:
      millbeck topic alter orders --partitions 12
      millbeck topic alter orders --config retention.ms=3600000 --delete-config segment.bytes
    """
    asked = one_of_both(ctx, names, topic, "topic")
    settings = settings_of(configs, "--config")
    removed = [name for text in delete_config for name in text.split(",")]
    if partitions is None and not settings and not removed:
        raise click.UsageError("nothing to change: give --partitions, --config or --delete-config", ctx)

    async def work(admin: Admin) -> None:
        from millbeck.cli.config_changes import changes_of
        from millbeck.client.admin.results import ConfigResource, NewPartitions, ResourceType

        chosen = matching(await admin.list_topics(), asked, missing_is_fine=if_exists)
        if not chosen:
            return
        added = None
        if partitions is not None:
            assignments = None if replica_assignment is None else parse_assignment(replica_assignment)
            added = NewPartitions(total_count=partitions, assignments=assignments)
            # Confirm before any setting is altered, so that a declined command changes nothing.
            dry = await admin.create_partitions(dict.fromkeys(chosen, added), validate_only=True)
            raise_failures(dry.failed)
        if settings or removed:
            changes = changes_of(settings, removed)
            outcomes = await admin.incremental_alter_configs(
                {ConfigResource(ResourceType.TOPIC, name): changes for name in chosen}
            )
            raise_failures(outcomes.failed, settings=[*settings, *removed])
        if added is not None:
            click.echo(KEYS_MOVE, err=True)
            raise_failures((await admin.create_partitions(dict.fromkeys(chosen, added))).failed)
        for name in chosen if kafka_tool() is None else ():
            click.echo(f"changed {name}")

    run_admin(target, work)


@command.command("delete")
@click.argument("names", nargs=-1, type=TOPIC)
@click.option("-t", "--topic", multiple=True, metavar="REGEX", type=TOPIC, help="The same as NAMES.")
@click.option("--if-exists", is_flag=True, help="Do nothing if the topic does not exist.")
@target_options
@click.pass_context
def delete(ctx: click.Context, names: tuple[str, ...], topic: tuple[str, ...], if_exists: bool, target: Target) -> None:
    """Delete topics with all their records.

    \b
    Examples:
      millbeck topic delete orders
      millbeck topic delete 'test-.*' --if-exists
    """
    asked = one_of_both(ctx, names, topic, "topic")

    async def work(admin: Admin) -> None:
        chosen = matching(await admin.list_topics(), asked, missing_is_fine=if_exists)
        failed: dict[str, Any] = {}
        # In groups, so that progress is visible.
        for first in range(0, len(chosen), DELETED_AT_ONCE):
            outcomes = await admin.delete_topics(chosen[first : first + DELETED_AT_ONCE])
            for name in outcomes.succeeded if kafka_tool() is None else ():
                click.echo(f"deleted {name}")
            failed |= outcomes.failed
        raise_failures(failed)

    run_admin(target, work)


command.add_command(offsets, "offsets")
command.add_command(delete_records, "delete-records")


def settings_of(flags: Iterable[str], option: str) -> dict[str, str]:
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.kernel.properties import settings_of_flags

    try:
        return settings_of_flags(flags)
    except InvalidConfig as error:
        raise click.UsageError(f"{option}: {error}") from error


def parse_assignment(text: str) -> list[list[int]]:
    """Parse ``1:2,2:3``: two partitions, the first on brokers 1 and 2."""
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment: {text!r} is not broker:broker,broker:broker") from None


def matching(names: Iterable[str], patterns: Iterable[str], *, missing_is_fine: bool = False) -> list[str]:
    """The names given exactly, or else fully matched by a regular expression."""
    known = list(names)
    chosen: dict[str, None] = {}
    for pattern in (each for text in patterns for each in text.split(",")):
        if pattern in known:
            chosen[pattern] = None
            continue
        try:
            expression = re.compile(pattern)
        except re.error as error:
            raise click.ClickException(f"{pattern!r} is neither a topic nor a regular expression: {error}") from error
        found = [name for name in known if expression.fullmatch(name)]
        if not found and not missing_is_fine:
            from millbeck.cli.suggestions import did_you_mean

            raise click.ClickException(f"there is no topic {pattern}{did_you_mean(pattern, known)}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def raise_failures(failed: dict[Any, Any], *, settings: Iterable[str] = (), scope: str = "topic") -> None:
    """Raise all failures as one line, with suggestions for unknown settings of a scope."""
    if failed:
        hint = ""
        if settings:
            from millbeck.cli.suggestions import settings_hint

            hint = settings_hint(settings, scope)
        raise click.ClickException("; ".join(f"{item}: {error_text(error)}" for item, error in failed.items()) + hint)
