"""``millbeck registry compat``, ``mode`` and ``context``: settings, modes and contexts."""

from __future__ import annotations

from typing import Any

import click

from millbeck.cli.output import output_option, show_rows
from millbeck.cli.registries.connection import registry_command
from millbeck.cli.verbs import Command
from millbeck.client.schemas.registry_client import RegistryClient


class _Verbs(click.Group):
    command_class = Command


def _path(kind: str, name: str | None) -> tuple[str, ...]:
    return (kind,) if name is None else (kind, name)


def _place(name: str | None) -> str:
    return "the registry" if name is None else name


@click.group(cls=_Verbs)
def compat() -> None:
    """Show and set compatibility levels."""


@compat.command("get")
@click.argument("name", metavar="[SUBJECT]", required=False)
@registry_command
def get_level(name: str | None, registry: RegistryClient) -> None:
    """Print the compatibility level of a subject, or of the registry."""
    found = registry.call("GET", *_path("config", name), query={"defaultToGlobal": True})
    policy = found.get("compatibilityPolicy")
    click.echo(found["compatibilityLevel"] + (f" ({policy})" if policy else ""))


@compat.command("set")
@click.argument("level")
@click.argument("name", metavar="[SUBJECT]", required=False)
@click.option(
    "--policy",
    type=click.Choice(["STRICT", "LENIENT"], case_sensitive=False),
    help="For JSON Schema: STRICT takes undeclared properties into account, LENIENT ignores them.",
)
@registry_command
def set_level(level: str, name: str | None, policy: str | None, registry: RegistryClient) -> None:
    """Set the compatibility level of a subject, or of the registry.

    \b
    Examples:
      millbeck registry compat set FULL orders-value
      millbeck registry compat set FULL orders-value --policy LENIENT
    """
    body: dict[str, Any] = {"compatibility": level.upper()}
    if policy is not None:
        body["compatibilityPolicy"] = policy.upper()
    found = registry.call("PUT", *_path("config", name), body=body)
    click.echo(f"{_place(name)}: {found['compatibility']}")


@compat.command("unset")
@click.argument("name", metavar="SUBJECT")
@registry_command
def unset_level(name: str, registry: RegistryClient) -> None:
    """Remove the settings of a subject, so that those of the registry apply."""
    registry.call("DELETE", "config", name)
    click.echo(f"{name}: as the registry")


@click.group(cls=_Verbs)
def mode() -> None:
    """Show and set modes: READWRITE, READONLY, IMPORT, FORWARD."""


@mode.command("get")
@click.argument("name", metavar="[SUBJECT]", required=False)
@registry_command
def get_mode(name: str | None, registry: RegistryClient) -> None:
    """Print the mode of a subject, or of the registry."""
    click.echo(registry.call("GET", *_path("mode", name), query={"defaultToGlobal": True})["mode"])


@mode.command("set")
@click.argument("wanted", metavar="MODE")
@click.argument("name", metavar="[SUBJECT]", required=False)
@click.option("--force", is_flag=True, help="Allow the mode IMPORT even if there are schemas already.")
@registry_command
def set_mode(wanted: str, name: str | None, force: bool, registry: RegistryClient) -> None:
    """Set the mode of a subject, or of the registry."""
    found = registry.call("PUT", *_path("mode", name), query={"force": force}, body={"mode": wanted.upper()})
    click.echo(f"{_place(name)}: {found['mode']}")


@mode.command("unset")
@click.argument("name", metavar="SUBJECT")
@registry_command
def unset_mode(name: str, registry: RegistryClient) -> None:
    """Remove the mode of a subject, so that the mode of the registry applies."""
    registry.call("DELETE", "mode", name)
    click.echo(f"{name}: as the registry")


@click.group(cls=_Verbs)
def context() -> None:
    """List and delete contexts of subjects."""


@context.command("list")
@output_option
@registry_command
def list_contexts(output: str, registry: RegistryClient) -> None:
    """List all contexts."""
    show_rows([{"context": name} for name in registry.call("GET", "contexts")], output, columns=["context"])


@context.command("delete")
@click.argument("name")
@registry_command
def delete_context(name: str, registry: RegistryClient) -> None:
    """Delete a context that has no subjects."""
    registry.call("DELETE", "contexts", name)
    click.echo(f"deleted: {name}")
