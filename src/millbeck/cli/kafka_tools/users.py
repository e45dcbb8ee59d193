"""SCRAM credentials in the syntax of ``kafka-configs --entity-type users``: settings whose name is the mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.users import DeletedCredential, NewCredential


def is_credential(name: str) -> bool:
    """Whether a setting is a SCRAM mechanism."""
    from millbeck.security.sasl.scram_messages import BY_NAME

    return name in BY_NAME


def read_changes(added: Mapping[str, str], removed: Iterable[str]) -> list[NewCredential | DeletedCredential]:
    """Read ``SCRAM-SHA-256=[iterations=8192,password=secret]`` (without the brackets) and names to delete."""
    from millbeck.client.admin.users import ITERATIONS, DeletedCredential, NewCredential
    from millbeck.security.sasl.scram_messages import BY_NAME

    changes: list[NewCredential | DeletedCredential] = [DeletedCredential(mechanism=BY_NAME[name]) for name in removed]
    for name, text in added.items():
        given = dict(part.strip().partition("=")[::2] for part in text.split(","))
        iterations, password = given.pop("iterations", str(ITERATIONS)), given.pop("password", "")
        if given or not password or not iterations.isdigit():
            raise click.UsageError(f"{name} is set as {name}=[iterations=8192,password=secret]")
        changes.append(NewCredential(mechanism=BY_NAME[name], password=password, iterations=int(iterations)))
    return changes


async def change_credentials(admin: Admin, name: str, changes: Iterable[NewCredential | DeletedCredential]) -> None:
    from millbeck.cli.commands.topic import raise_failures

    for change in changes:
        # One request each: two changes of a user in the same request are refused.
        raise_failures((await admin.alter_users({name: change})).failed)
    click.echo(f"Completed updating config for user {name}.")


async def describe_credentials(admin: Admin, name: str | None) -> None:
    """Print a line for each user with credentials, or for the named one."""
    found = await (admin.describe_users() if name is None else admin.describe_users([name]))
    for user, credentials in sorted(found.succeeded.items()):
        shown = ", ".join(f"{each.mechanism_name}=iterations={count}" for each, count in credentials.items())
        click.echo(f"SCRAM credential configs for user-principal '{user}' are {shown}")
