"""``millbeck registry subject`` and ``schema``: list, show, delete, register and check schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.registries.connection import registry_command
from millbeck.cli.registries.directory import type_of
from millbeck.cli.verbs import Command
from millbeck.client.schemas.errors import UnknownSchema
from millbeck.client.schemas.registry_client import RegistryClient


class _Verbs(click.Group):
    command_class = Command


@click.group(cls=_Verbs)
def subject() -> None:
    """List, show and delete subjects."""


@subject.command("list")
@click.option(
    "--prefix",
    default="",
    help="List only subjects whose names begin with this text; :.lab: lists a context, :*: all contexts.",
)
@click.option("--deleted", is_flag=True, help="Also list soft-deleted subjects.")
@output_option
@registry_command
def list_subjects(prefix: str, deleted: bool, output: str, registry: RegistryClient) -> None:
    """List subjects."""
    found = registry.call("GET", "subjects", query={"subjectPrefix": prefix, "deleted": deleted})
    show_rows([{"subject": name} for name in found], output, columns=["subject"])


@subject.command("show")
@click.argument("name")
@output_option
@registry_command
def show_subject(name: str, output: str, registry: RegistryClient) -> None:
    """Show the versions of a subject."""
    rows = []
    for number in registry.call("GET", "subjects", name, "versions"):
        version = registry.call("GET", "subjects", name, "versions", str(number))
        references = ", ".join(f"{each['subject']}:{each['version']}" for each in version.get("references", ()))
        rows.append(
            {
                "version": number,
                "id": version["id"],
                "type": version.get("schemaType", "AVRO"),
                "references": references or "-",
            }
        )
    show_rows(rows, output, columns=["version", "id", "type", "references"])


@subject.command("delete")
@click.argument("name")
@click.option("--version", "number", metavar="N", help="Delete only this version: a number, or latest.")
@click.option("--permanent", is_flag=True, help="Permanently delete a subject or version that was soft-deleted before.")
@registry_command
def delete_subject(name: str, number: str | None, permanent: bool, registry: RegistryClient) -> None:
    """Soft-delete a subject or one of its versions, or delete it permanently with --permanent."""
    path = ("subjects", name) if number is None else ("subjects", name, "versions", number)
    found = registry.call("DELETE", *path, query={"permanent": permanent})
    numbers = found if isinstance(found, list) else [found]
    kind = "permanently deleted" if permanent else "soft-deleted"
    click.echo(f"{kind}: {', '.join(f'{name}:{each}' for each in numbers)}")


@click.group(cls=_Verbs)
def schema() -> None:
    """Print, register and check schemas."""


@schema.command("get")
@click.argument("which")
@click.argument("number", default="latest")
@click.option(
    "--format", "form", help="The form of the text: resolved (for Avro and JSON) or serialized (for Protobuf)."
)
@registry_command
def get_schema(which: str, number: str, form: str | None, registry: RegistryClient) -> None:
    """Print the schema with an id, or a version of a subject, by default the latest.

    \b
    Examples:
      millbeck registry schema get 17
      millbeck registry schema get orders-value
      millbeck registry schema get orders-value 3
    """
    path = ("schemas", "ids", which) if which.isdecimal() else ("subjects", which, "versions", number)
    click.echo(registry.call("GET", *path, query={"format": form})["schema"])


def _given(function: Any) -> Any:
    """Adds the arguments and options for a schema in a file."""
    for option in (
        click.option("--normalize", is_flag=True, help="Look up and register the schema in its normalised form."),
        click.option(
            "--reference",
            "references",
            multiple=True,
            metavar="NAME=SUBJECT:VERSION",
            help="A reference of the schema: its name, and the version that it means. Can be repeated.",
        ),
        click.option(
            "--type",
            "kind",
            type=click.Choice(["AVRO", "PROTOBUF", "JSON"], case_sensitive=False),
            help="The schema type; default: by the file's extension.",
        ),
        click.argument("path", metavar="FILE", type=FILE),
        click.argument("name", metavar="SUBJECT"),
    ):
        function = option(function)
    return function


def _body(path: str, kind: str | None, references: tuple[str, ...]) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path}: {error}") from error
    found = kind or type_of(Path(path))
    if found is None:
        raise click.UsageError(f"{path}: cannot tell the schema type from the extension: give --type")
    listed = []
    for each in references:
        name, _, place = each.partition("=")
        target, _, version = place.rpartition(":")
        if not name or not target or not version.isdecimal():
            raise click.UsageError(f"--reference {each}: expected NAME=SUBJECT:VERSION")
        listed.append({"name": name, "subject": target, "version": int(version)})
    return {"schema": text, "schemaType": found.upper(), "references": listed}


@schema.command("register")
@_given
@registry_command
def register_schema(
    name: str, path: str, kind: str | None, references: tuple[str, ...], normalize: bool, registry: RegistryClient
) -> None:
    """Register a file as the next version of a subject.

    \b
    Examples:
      millbeck registry schema register orders-value order.avsc
      millbeck registry schema register orders-value order.proto --reference shop/customer.proto=customer:1
    """
    body = _body(path, kind, references)
    found = registry.call("POST", "subjects", name, "versions", query={"normalize": normalize}, body=body)
    click.echo(f"{name}: id {found['id']}" + (f", version {found['version']}" if "version" in found else ""))


@schema.command("check")
@_given
@registry_command
def check_schema(
    name: str, path: str, kind: str | None, references: tuple[str, ...], normalize: bool, registry: RegistryClient
) -> None:
    """Check whether a file could be registered as the next version of a subject. The exit code is 1 if not."""
    body = _body(path, kind, references)
    problems = problems_of(registry, name, body, normalize=normalize)
    for each in problems:
        click.echo(each)
    if problems:
        raise SystemExit(1)
    click.echo("compatible")


def problems_of(registry: RegistryClient, name: str, body: dict[str, Any], *, normalize: bool = False) -> list[str]:
    """The reasons why the subject's compatibility level refuses a schema; empty if it does not, or if the subject does
    not exist."""
    query = {"verbose": True, "normalize": normalize}
    try:
        found = registry.call("POST", "compatibility", "subjects", name, "versions", query=query, body=body)
    except UnknownSchema:
        return []
    if found["is_compatible"]:
        return []
    return [str(each) for each in found.get("messages") or ["not compatible"]]
