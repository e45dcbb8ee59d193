"""Parsing and formatting of quotas on the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from millbeck.client.admin.quotas import QuotaEntity

SHORT_NAMES: Final[Mapping[str, str]] = {
    "produce": "producer_byte_rate",
    "consume": "consumer_byte_rate",
    "request": "request_percentage",
    "mutations": "controller_mutation_rate",
    "connections": "connection_creation_rate",
}
"""The quotas by this command's short names; Kafka's names are accepted as well."""
DEFAULT: Final = "default"
_UNITS: Final[Mapping[str, int]] = {"k": 2**10, "m": 2**20, "g": 2**30}


def entity_of(given: Mapping[str, str | None]) -> QuotaEntity:
    """The quota entity of the options. Raises ``UsageError``."""
    named = {kind.replace("_", "-"): name for kind, name in given.items() if name is not None}
    if not named:
        raise click.UsageError("give --user, --client-id, both, or --ip")
    if "ip" in named and len(named) > 1:
        raise click.UsageError("--ip cannot be used together with --user or --client-id")
    return tuple(sorted((kind, None if name == DEFAULT else name) for kind, name in named.items()))


def quota_name(text: str) -> str:
    name = SHORT_NAMES.get(text, text)
    if name not in SHORT_NAMES.values():
        raise click.UsageError(f"{text} is not a quota: use {', '.join(SHORT_NAMES)}")
    return name


def read_quota(text: str) -> tuple[str, float | None]:
    """Read ``produce=10M``: name and value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text}: use {name}=VALUE")
    factor = _UNITS.get(value[-1:].lower(), 1)
    try:
        number = float(value if factor == 1 else value[:-1]) * factor
    except ValueError:
        number = math.nan
    if not number > 0 or math.isinf(number):
        raise click.UsageError(f"{text}: {value} is not a number above 0, such as 5000 or 10M")
    return quota_name(name), number


def entity_text(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {name or '(default)'}" for kind, name in reversed(entity))


def value_text(value: float) -> str:
    return f"{value:g}" if value != int(value) else str(int(value))


def quota_rows(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    rows = []
    for entity, values in quotas.items():
        names = {kind: name or "(default)" for kind, name in entity}
        for key, value in sorted(values.items()):
            rows.append(
                {
                    "user": names.get("user", ""),
                    "client_id": names.get("client-id", ""),
                    "ip": names.get("ip", ""),
                    "quota": key,
                    "value": int(value) if value == int(value) else value,
                }
            )
    return rows
