"""``millbeck config``: settings of topics, brokers and groups, shown and changed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.config_changes import changes_of, parse_settings
from millbeck.cli.connecting import Target, file_problem, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show, table
from millbeck.cli.topic import raise_failures
from millbeck.cli.verbs import VerbGroup

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import ConfigEntry, ConfigResource

SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "server file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
STATIC_SOURCES: Final = (4, 5)
TYPES: Final = {"topics": "TOPIC", "brokers": "BROKER", "groups": "GROUP"}


@click.group(cls=VerbGroup, flags={"--describe": "describe", "--alter": "alter"})
def command() -> None:
    """Settings that can change while brokers run: what Kafka's kafka-configs does, whose flags are understood too."""


def entity_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds Kafka's ways to say whose settings are meant, and passes ``entity``: type and name, None for all of them."""

    @click.option("--entity-type", type=click.Choice(sorted(TYPES)), help="Whose settings.")
    @click.option("--entity-name", metavar="NAME", help="A topic's or group's name, a broker's id.")
    @click.option("--entity-default", is_flag=True, help="The default of all brokers.")
    @click.option("--topic", metavar="NAME", help="The same as --entity-type topics --entity-name NAME.")
    @click.option("--broker", metavar="ID", help="Likewise of a broker.")
    @click.option("--group", metavar="ID", help="Likewise of a group.")
    @click.option("--broker-defaults", is_flag=True, help="The default of all brokers.")
    @functools.wraps(function)
    def with_entity(
        *,
        entity_type: str | None,
        entity_name: str | None,
        entity_default: bool,
        topic: str | None,
        broker: str | None,
        group: str | None,
        broker_defaults: bool,
        **others: Any,
    ) -> None:
        named = {"topics": topic, "brokers": broker, "groups": group}
        entities: list[tuple[str, str | None]] = [(kind, name) for kind, name in named.items() if name is not None]
        if broker_defaults:
            entities.append(("brokers", ""))
        if entity_type is not None:
            entities.append((entity_type, "" if entity_default else entity_name))
        elif entity_name is not None or entity_default:
            raise click.UsageError("--entity-name and --entity-default need --entity-type")
        if len(entities) != 1:
            raise click.UsageError("whose settings? Give --topic, --broker, --group or --entity-type with a name")
        if entities[0][1] == "" and entities[0][0] != "brokers":
            raise click.UsageError("only brokers have a default")
        function(entity=entities[0], **others)

    return with_entity


@command.command("describe")
@click.option("--all", "all_settings", is_flag=True, help="Every setting, not only those that were changed.")
@click.option("--documentation", is_flag=True, help="What each setting means.")
@output_option
@entity_options
@target_options
def describe(
    entity: tuple[str, str | None], all_settings: bool, documentation: bool, output: str, target: Target
) -> None:
    """Show settings, and where their values come from.

    \b
    Examples:
      millbeck config describe --topic orders
      millbeck config describe --broker 1 --all --output json
      millbeck config --describe --entity-type topics --entity-name orders
    """

    async def work(admin: Admin) -> None:
        resources = await _resources_of(admin, entity)
        described = (
            await admin.describe_configs(
                resources, include_synonyms=output != TABLE, include_documentation=documentation
            )
            if resources
            else None
        )
        if described is None:
            return
        raise_failures(described.failed)
        shown = [
            {
                "type": entity[0],
                "name": resource.name,
                "configs": [
                    entry_row(entry, with_synonyms=output != TABLE, with_documentation=documentation)
                    for entry in entries.values()
                    if all_settings or is_changed(entry)
                ],
            }
            for resource, entries in described.succeeded.items()
        ]
        if output == TABLE:
            _show_tables(shown)
        else:
            show(shown, output)

    run_admin(target, work)


@command.command("alter")
@click.option("--add-config", multiple=True, metavar="K=V,K=[A,B]", help="Settings to change; lists in brackets.")
@click.option("--add-config-file", metavar="FILE", help="Settings to change, as a .properties file.")
@click.option("--delete-config", multiple=True, metavar="K,K", help="Settings to return to their defaults.")
@entity_options
@target_options
def alter(
    entity: tuple[str, str | None],
    add_config: tuple[str, ...],
    add_config_file: str | None,
    delete_config: tuple[str, ...],
    target: Target,
) -> None:
    """Change settings.

    \b
    Examples:
      millbeck config alter --topic orders --add-config retention.ms=86400000,cleanup.policy=delete
      millbeck config alter --topic orders --delete-config retention.ms
      millbeck config --alter --entity-type brokers --entity-default --add-config max.connections=1000
    """
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.kernel.properties import parse_properties

    added: dict[str, str] = {}
    if add_config_file is not None:
        try:
            with open(add_config_file, encoding="utf-8") as file:
                added |= parse_properties(file.read())
        except (OSError, UnicodeDecodeError, InvalidConfig) as error:
            raise click.ClickException(file_problem(add_config_file, error)) from error
    for text in add_config:
        added |= parse_settings(text)
    removed = [name.strip() for text in delete_config for name in text.split(",") if name.strip()]
    if not added and not removed:
        raise click.UsageError("nothing to change: give --add-config or --delete-config")
    if entity[1] is None:
        raise click.UsageError("whose settings? Give --entity-name or --entity-default")

    async def work(admin: Admin) -> None:
        resource = (await _resources_of(admin, entity))[0]
        outcomes = await admin.incremental_alter_configs({resource: changes_of(added, removed)})
        raise_failures(outcomes.failed, settings=[*added, *removed], scope=entity[0].removesuffix("s"))
        click.echo(f"changed {resource}")

    run_admin(target, work)


def is_changed(entry: ConfigEntry) -> bool:
    """Whether a setting was set while brokers run, for the resource itself or for all brokers."""
    return entry.source not in STATIC_SOURCES


def entry_row(entry: ConfigEntry, *, with_synonyms: bool, with_documentation: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "name": entry.name,
        "value": "<hidden>" if entry.is_sensitive else entry.value,
        "source": SOURCES.get(entry.source, "unknown"),
    }
    if with_synonyms:
        row["read_only"] = entry.is_read_only
        row["sensitive"] = entry.is_sensitive
        row["synonyms"] = [
            {"name": each.name, "value": each.value, "source": SOURCES.get(each.source, "unknown")}
            for each in entry.synonyms
        ]
    if with_documentation:
        row["documentation"] = entry.documentation
    return row


async def _resources_of(admin: Admin, entity: tuple[str, str | None]) -> list[ConfigResource]:
    from millbeck.client.admin.results import ConfigResource, ResourceType

    kind, name = entity
    resource_type = ResourceType[TYPES[kind]]
    if name and name.isdigit() and resource_type is ResourceType.BROKER:
        there = [each.node_id for each in (await admin.describe_cluster()).nodes]
        if int(name) not in there:
            raise click.ClickException(f"there is no broker {name}, only {', '.join(map(str, there))}")
    if name is not None:
        return [ConfigResource(resource_type, name)]
    if resource_type is ResourceType.TOPIC:
        return [ConfigResource(resource_type, each) for each in await admin.list_topics()]
    if resource_type is ResourceType.BROKER:
        nodes = (await admin.describe_cluster()).nodes
        return [ConfigResource(resource_type, str(node.node_id)) for node in nodes]
    return await admin.list_config_resources([resource_type])


def _show_tables(shown: list[dict[str, Any]]) -> None:
    for number, resource in enumerate(shown):
        click.echo("\n" * bool(number), nl=False)
        title = f"{resource['type']} {resource['name'] or '<default>'}"
        if resource["configs"]:
            click.echo(f"{title}:")
            click.echo(table(resource["configs"], list(resource["configs"][0])))
        else:
            click.echo(f"{title}: nothing was changed")
