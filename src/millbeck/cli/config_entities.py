"""The entities of `millbeck config`, by Kafka's options: resources with settings, and owners of quotas.

An entity is a pair of its type and its name; the name None stands for all entities of the type, and an empty one for
their default. Users and client ids can be combined; everything else is named alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from millbeck.cli.completed_types import BROKER, GROUP, TOPIC
from millbeck.cli.verbs import Command

Entity = tuple[str, str | None]

TOPICS: Final = "topics"
BROKERS: Final = "brokers"
USERS: Final = "users"
CLIENTS: Final = "clients"
IPS: Final = "ips"
RESOURCE_TYPES: Final = {
    TOPICS: "TOPIC",
    BROKERS: "BROKER",
    "groups": "GROUP",
    "broker-loggers": "BROKER_LOGGER",
    "client-metrics": "CLIENT_METRICS",
}
WITH_QUOTAS: Final = (USERS, CLIENTS, IPS)
"""The entity types that are not config resources: they have quotas, and users SCRAM credentials."""
_FLAGS: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker_logger": "broker-loggers",
    "ip": IPS,
    "client_metrics": "client-metrics",
    "group": "groups",
}
"""The types by option, in the order in which Kafka's tool looks at these."""
_DEFAULT_FLAGS: Final = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}


class EntityCommand(Command):
    """A command with entities: ``--entity-default`` counts as an ``--entity-name``, in the order of the arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ordered = [part for each in args for part in (("--entity-name", "") if each == "--entity-default" else (each,))]
        return super().parse_args(ctx, ordered)


def entity_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds Kafka's options for entities, and passes ``entities``."""
    types = [*sorted(RESOURCE_TYPES), *sorted(WITH_QUOTAS)]

    @click.option("--entity-type", type=click.Choice(types), multiple=True, help="The type of the entity.")
    @click.option("--entity-name", metavar="NAME", multiple=True, help="The topic name, group id, broker id, ….")
    @click.option("--entity-default", is_flag=True, expose_value=False, help="The default of all of this type.")
    @click.option("--topic", type=TOPIC, metavar="NAME", help="The same as --entity-type topics --entity-name NAME.")
    @click.option("--broker", type=BROKER, metavar="ID", help="The same as --entity-type brokers --entity-name ID.")
    @click.option("--group", type=GROUP, metavar="ID", help="The same as --entity-type groups --entity-name ID.")
    @click.option("--user", metavar="NAME", help="A user: SCRAM credentials and quotas.")
    @click.option("--client", metavar="ID", help="The quotas of a client id.")
    @click.option("--ip", metavar="ADDRESS", help="The quotas of an address.")
    @click.option("--client-metrics", metavar="NAME", help="The same as --entity-type client-metrics.")
    @click.option("--broker-logger", metavar="ID", help="The same as --entity-type broker-loggers.")
    @click.option("--broker-defaults", is_flag=True, help="The same as --entity-type brokers --entity-default.")
    @click.option("--user-defaults", is_flag=True, help="The quotas of users without their own.")
    @click.option("--client-defaults", is_flag=True, help="The quotas of client ids without their own.")
    @click.option("--ip-defaults", is_flag=True, help="The quotas of addresses without their own.")
    @functools.wraps(function)
    def with_entities(*, entity_type: tuple[str, ...], entity_name: tuple[str, ...], **others: Any) -> None:
        named = [(kind, others.pop(flag)) for flag, kind in _FLAGS.items()]
        defaults = [(kind, "") for flag, kind in _DEFAULT_FLAGS.items() if others.pop(flag)]
        if len(entity_name) > len(entity_type):
            raise click.UsageError("--entity-name and --entity-default need --entity-type")
        names = [*entity_name, *[None] * (len(entity_type) - len(entity_name))]
        entities: list[Entity] = [*zip(entity_type, names, strict=True)]
        entities += [(kind, name) for kind, name in named if name is not None]
        function(entities=_checked([*entities, *defaults]), **others)

    return with_entities


def _checked(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    kinds = [kind for kind, _ in entities]
    if len(kinds) != 1 and sorted(kinds) != [CLIENTS, USERS]:
        raise click.UsageError(
            "name one entity: give --topic, --broker, --group or --entity-type with a name (a user and a client id "
            "can be combined)"
        )
    if any(name == "" and kind not in (BROKERS, *WITH_QUOTAS) for kind, name in entities):
        raise click.UsageError("only brokers, users, clients and ips have a default")
    return tuple(entities)
