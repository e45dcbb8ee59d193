"""``millbeck config``: describe and alter settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.commands.topic import raise_failures
from millbeck.cli.completed_types import FILE
from millbeck.cli.config_changes import changes_of, parse_settings
from millbeck.cli.config_entities import (
    BROKERS,
    RESOURCE_TYPES,
    TOPICS,
    USERS,
    WITH_QUOTAS,
    Entity,
    EntityCommand,
    entity_options,
)
from millbeck.cli.connection_options import Target, file_problem, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show, show_table
from millbeck.cli.verbs import SubcommandGroup, kafka_tool

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


@click.group(cls=SubcommandGroup, flags={"--describe": "describe", "--alter": "alter"})
def command() -> None:
    """Describe and alter dynamic settings (Kafka's kafka-configs, whose flags are accepted too)."""


@command.command("describe", cls=EntityCommand)
@click.option("--all", "all_settings", is_flag=True, help="Show every setting, not only dynamic overrides.")
@click.option("--documentation", is_flag=True, help="Also show the description of each setting.")
@output_option
@entity_options
@target_options
def describe(
    entities: tuple[Entity, ...], all_settings: bool, documentation: bool, output: str, target: Target
) -> None:
    """Show settings and the source of each value; of users, client ids and addresses their quotas.

    \b
    Examples:
      millbeck config describe --topic orders
      millbeck config describe --broker 1 --all --output json
      millbeck config describe --user alice
      millbeck config --describe --entity-type topics --entity-name orders
    """
    entity = entities[0]
    if entity[0] in WITH_QUOTAS:
        run_admin(target, lambda admin: _describe_clients(admin, entities))
        return

    async def work(admin: Admin) -> None:
        resources = await _resources_of(admin, entity)
        described = (
            await admin.describe_configs(
                resources,
                include_synonyms=output != TABLE or kafka_tool() is not None,
                include_documentation=documentation,
            )
            if resources
            else None
        )
        if described is None:
            return
        raise_failures(described.failed)
        if kafka_tool() is not None:
            for resource, entries in described.succeeded.items():
                _print_as_kafka(entity[0], resource.name, list(entries.values()), every=all_settings)
            return
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


@command.command("alter", cls=EntityCommand)
@click.option("--add-config", multiple=True, metavar="K=V,K=[A,B]", help="Settings to set; put a list in brackets.")
@click.option("--add-config-file", metavar="FILE", type=FILE, help="A .properties file of settings to set.")
@click.option("--delete-config", multiple=True, metavar="K,K", help="Settings to reset to their defaults.")
@click.option("--force", is_flag=True, help="Set a broker setting even if this release does not know it.")
@entity_options
@target_options
def alter(
    entities: tuple[Entity, ...],
    force: bool,
    add_config: tuple[str, ...],
    add_config_file: str | None,
    delete_config: tuple[str, ...],
    target: Target,
) -> None:
    """Set settings, or reset them to their defaults; of users, client ids and addresses their quotas.

    \b
    Examples:
      millbeck config alter --topic orders --add-config retention.ms=86400000,cleanup.policy=delete
      millbeck config alter --topic orders --delete-config retention.ms
      millbeck config --alter --entity-type brokers --entity-default --add-config max.connections=1000
      millbeck config alter --user alice --add-config producer_byte_rate=1048576
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
    if any(name is None for _, name in entities):
        raise click.UsageError("name one entity: give --entity-name or --entity-default")
    entity = entities[0]
    if entity[0] in WITH_QUOTAS:
        _alter_clients(target, entities, added, removed)
        return
    if entity[0] == BROKERS and not force and kafka_tool() is None:
        _check_broker_settings(added)

    async def work(admin: Admin) -> None:
        resource = (await _resources_of(admin, entity))[0]
        outcomes = await admin.incremental_alter_configs({resource: changes_of(added, removed)})
        if outcomes.failed and entity[0] == TOPICS:
            known = await admin.list_topics()
            if resource.name not in known:
                from millbeck.cli.suggestions import did_you_mean

                hint = did_you_mean(resource.name, known) or ": create it with millbeck topic create"
                raise click.ClickException(f"there is no topic {resource.name}{hint}")
        raise_failures(outcomes.failed, settings=[*added, *removed], scope=entity[0].removesuffix("s"))
        if kafka_tool() is None:
            click.echo(f"changed {resource}")
        else:
            from millbeck.cli.kafka_tools.formats import config_changed

            click.echo(config_changed(*entity))

    run_admin(target, work)


async def _describe_clients(admin: Admin, entities: tuple[Entity, ...]) -> None:
    from millbeck.cli.kafka_tools.client_quotas import describe_quotas
    from millbeck.cli.kafka_tools.users import describe_credentials

    await describe_quotas(admin, entities)
    kind, name = entities[0]
    if kind == USERS and name != "" and len(entities) == 1:
        await describe_credentials(admin, name)


def _alter_clients(
    target: Target, entities: tuple[Entity, ...], added: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Change the quotas of users, client ids and addresses, or the SCRAM credentials of a user."""
    from millbeck.cli.kafka_tools.client_quotas import change_quotas, read_quota_changes
    from millbeck.cli.kafka_tools.users import change_credentials, is_credential, read_changes

    names = [*added, *removed]
    if not any(map(is_credential, names)):
        quotas = read_quota_changes(entities, added, removed)
        run_admin(target, lambda admin: change_quotas(admin, entities, quotas))
        return
    if not all(map(is_credential, names)):
        raise click.UsageError("change quotas and SCRAM credentials one after the other")
    (kind, name), *others = entities
    if kind != USERS or not name or others:
        raise click.UsageError("SCRAM credentials belong to one user: give --user NAME")
    credentials = read_changes(added, removed)
    run_admin(target, lambda admin: change_credentials(admin, name, credentials))


def _check_broker_settings(names: Iterable[str]) -> None:
    """Refuse unknown settings, which are probably mistyped: brokers accept every name, since it may belong to a
    plugin."""
    from millbeck.cli.suggestions import settings_hint

    if hint := settings_hint(names, "broker"):
        raise click.ClickException(f"not a setting of brokers{hint} (use --force to set it anyway)")


def _print_as_kafka(kind: str, name: str, entries: list[ConfigEntry], *, every: bool) -> None:
    from millbeck.cli.kafka_tools.formats import config_lines
    from millbeck.kernel.option_layers import ConfigSource

    if kind == "client-metrics" and not entries:
        click.echo(f"The client-metric '{name}' doesn't exist and doesn't have dynamic config.")
        return
    # A single broker shows the settings of that broker, not the defaults of all brokers.
    inherited = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    kept = [each for each in entries if every or (is_changed(each) and (not name or each.source != inherited))]
    click.echo("\n".join(config_lines(kind, name, kept, every=every)))


def is_changed(entry: ConfigEntry) -> bool:
    """Whether the setting is a dynamic override, of the resource itself or of the default of all brokers."""
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


async def _resources_of(admin: Admin, entity: Entity) -> list[ConfigResource]:
    from millbeck.client.admin.results import ConfigResource, ResourceType

    kind, name = entity
    resource_type = ResourceType[RESOURCE_TYPES[kind]]
    if name and name.isdigit() and resource_type is ResourceType.BROKER:
        there = [each.node_id for each in (await admin.describe_cluster()).nodes]
        if int(name) not in there:
            raise click.ClickException(f"broker {name} does not exist; the brokers are {', '.join(map(str, there))}")
    if name is not None:
        return [ConfigResource(resource_type, name)]
    if resource_type is ResourceType.TOPIC:
        return [ConfigResource(resource_type, each) for each in await admin.list_topics()]
    if resource_type is ResourceType.BROKER:
        nodes = (await admin.describe_cluster()).nodes
        names = [str(node.node_id) for node in nodes]
        # Kafka's tool shows the defaults of all brokers as a further broker without a name.
        return [ConfigResource(resource_type, each) for each in (*names, *([""] if kafka_tool() is not None else ()))]
    return await admin.list_config_resources([resource_type])


def _show_tables(shown: list[dict[str, Any]]) -> None:
    for number, resource in enumerate(shown):
        click.echo("\n" * bool(number), nl=False)
        title = f"{resource['type']} {resource['name'] or '<default>'}"
        if resource["configs"]:
            click.echo(f"{title}:")
            show_table(resource["configs"], list(resource["configs"][0]))
        else:
            click.echo(f"{title}: no dynamic overrides")
