"""Settings and flags that Kafka once had and what took their place: whoever uses one is told, not left to wonder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_QUORUM: Final = "the cluster keeps its own metadata: set process.roles, node.id and controller.quorum.voters"
_MESSAGE_FORMAT: Final = "records have one format, magic 2, since Kafka 4.0: remove it"
_PROTOCOL_VERSION: Final = "versions are agreed on by metadata.version: see millbeck storage format --release-version"

RETIRED_KEYS: Final = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "broker.id.generation.enable": "use node.id: every node is given its number",
    "control.plane.listener.name": "use controller.listener.names",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "host.name": "use listeners",
    "inter.broker.protocol.version": _PROTOCOL_VERSION,
    "log.cleaner.enable": "the cleaner always runs where a topic is compacted: remove it",
    "log.message.format.version": _MESSAGE_FORMAT,
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "message.format.version": _MESSAGE_FORMAT,
    "message.timestamp.difference.max.ms": "use message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    "message.downconversion.enable": _MESSAGE_FORMAT,
    "log.message.downconversion.enable": _MESSAGE_FORMAT,
    "offsets.commit.required.acks": "commits always wait for all replicas in sync: remove it",
    "port": "use listeners",
    "quota.consumer.default": "set a default quota for clients instead",
    "quota.producer.default": "set a default quota for clients instead",
    "zookeeper.connect": _QUORUM,
}
RETIRED_PREFIXES: Final = {"zookeeper.": _QUORUM}


def replacement_of(key: str) -> str | None:
    """What to do about a setting that is gone; None for any other."""
    found = RETIRED_KEYS.get(key)
    if found is not None:
        return found
    return next((advice for prefix, advice in RETIRED_PREFIXES.items() if key.startswith(prefix)), None)


def refuse_retired(keys: Iterable[str], where: str) -> None:
    """Raise for the first setting that is gone, naming what replaces it."""
    for key in keys:
        advice = replacement_of(key)
        if advice is not None:
            raise click.ClickException(f"{where}: {key} is gone; {advice}")


def retired_option(*names: str, replacement: str) -> Callable[[F], F]:
    """Accepts a flag only to say what to use instead."""

    def refuse(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
        if value is not None:
            raise click.ClickException(f"{names[0]} is gone; {replacement}")

    return click.option(*names, hidden=True, expose_value=False, is_eager=True, callback=refuse, default=None)
