"""Client quotas in the syntax and with the output of ``kafka-configs``; `millbeck quota` is the command for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.config_entities import CLIENTS, IPS, USERS, Entity

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.quotas import QuotaEntity

QUOTAS: Final = {
    USERS: ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    IPS: ("connection_creation_rate",),
}
_COMPONENTS: Final = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
_SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
"""What Kafka's tool calls the parts of an entity, in the order in which it prints them."""


def read_quota_changes(
    entities: Sequence[Entity], added: Mapping[str, str], removed: Iterable[str]
) -> dict[str, float | None]:
    """The quotas to set, and those to remove with the value None. Raises ``UsageError``."""
    kind = entities[0][0]
    known = QUOTAS[IPS if kind == IPS else USERS]
    changes: dict[str, float | None] = dict.fromkeys(removed)
    for name, text in added.items():
        try:
            changes[name] = float(text)
        except ValueError:
            changes[name] = math.nan
        if not math.isfinite(changes[name] or 0.0):
            raise click.UsageError(f"{name}={text}: {text!r} is not a number")
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise click.UsageError(f"{unknown[0]} is not a quota of {kind}: use {', '.join(known)}")
    return changes


async def change_quotas(admin: Admin, entities: Sequence[Entity], changes: Mapping[str, float | None]) -> None:
    from millbeck.cli.kafka_tools.formats import config_changed

    entity: QuotaEntity = tuple(sorted((_COMPONENTS[kind], name or None) for kind, name in entities))
    there = (await admin.describe_client_quotas(*(kind for kind, _ in entity))).get(entity, {})
    missing = [name for name, value in changes.items() if value is None and name not in there]
    if missing:
        raise click.ClickException(f"there is no {', '.join(missing)} to delete; `millbeck quota list` shows quotas")
    (await admin.alter_client_quotas({entity: changes})).all()
    click.echo(config_changed(*entities[0]))


async def describe_quotas(admin: Admin, entities: Sequence[Entity]) -> None:
    """Print a line for each quota entity of exactly these types, and with these names where there are any."""
    wanted = {_COMPONENTS[kind]: name for kind, name in entities}
    for entity, quotas in (await admin.describe_client_quotas(*wanted)).items():
        if {kind for kind, _ in entity} == set(wanted) and all(
            wanted[kind] in (None, name or "") for kind, name in entity
        ):
            click.echo(quota_line(entity, quotas))


def quota_line(entity: QuotaEntity, quotas: Mapping[str, float]) -> str:
    names = dict(entity)
    parts = [
        f"the default {shown}" if names[kind] is None else f"{shown} '{names[kind]}'"
        for kind, shown in _SHOWN.items()
        if kind in names
    ]
    values = ", ".join(f"{name}={java_double(value)}" for name, value in quotas.items())
    return f"Quota configs for {', '.join(parts)} are {values}"


def java_double(value: float) -> str:
    """A number as Java prints a double: 1024.0, but 1.048576E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
