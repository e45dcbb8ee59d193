"""``millbeck registry lint``, ``diff`` and ``apply``: check schema files and register them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.registries.connection import registry_command
from millbeck.cli.registries.directory import DirectoryError, SchemaFile, ordered, read, type_of
from millbeck.cli.registries.subjects import problems_of
from millbeck.cli.verbs import Command
from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.registry_client import RegistryClient

if TYPE_CHECKING:
    from millbeck.registry.formats.interface import ParsedSchema

_EXTRA = "this command needs the registry: pip install 'millbeck[registry]'"


def _files(path: str) -> list[SchemaFile]:
    """The schema files of a directory, in the order of their references, or a single file."""
    place = Path(path)
    try:
        if place.is_dir():
            return read(place)
        kind = type_of(place)
        if kind is None:
            raise click.UsageError(f"{path}: the file name of a schema must end in .avsc, .proto or .json")
        return ordered([SchemaFile(place.stem, kind, place.read_text(encoding="utf-8"), place.name)])
    except (DirectoryError, OSError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from error


def _parsed(file: SchemaFile, others: dict[str, SchemaFile]) -> ParsedSchema:
    """Parse a schema with the schemas that it refers to; raises `RegistryError`."""
    try:
        from millbeck.registry.formats.every import every_format
        from millbeck.registry.formats.interface import Imported
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{_EXTRA} ({error.name} is missing)") from error
    imported: dict[str, Imported] = {}

    def collect(each: SchemaFile) -> None:
        for name, subject in each.references:
            if name not in imported:
                collect(others[subject])
                imported[name] = Imported(name, others[subject].text)

    collect(file)
    found = next(each for each in every_format() if each.name == file.kind)
    return found.parse(file.text, list(imported.values()))


@click.command(cls=Command)
@click.argument("paths", metavar="FILE|DIR…", nargs=-1, required=True, type=FILE)
def lint(paths: tuple[str, ...]) -> None:
    """Check schema files without a registry. The exit code is 1 if one of them is not valid.

    \b
    Examples:
      millbeck registry lint schemas/
      millbeck registry lint order.avsc
    """
    from millbeck.registry.errors import RegistryError

    failures = 0
    for path in paths:
        files = _files(path)
        by_subject = {each.subject: each for each in files}
        for each in files:
            try:
                _parsed(each, by_subject)
            except RegistryError as error:
                failures += 1
                click.echo(f"{each.path}: {error}")
    if failures:
        raise SystemExit(1)
    click.echo("valid")


@click.command(cls=Command)
@click.argument("old", metavar="OLD", type=FILE)
@click.argument("new", metavar="NEW", type=FILE)
def diff(old: str, new: str) -> None:
    """Show which compatibility levels allow the change from one schema file to another, and why others do not.

    The exit code is 1 if only NONE allows the change.
    """
    from millbeck.registry.compatibility import problems_between
    from millbeck.registry.errors import RegistryError

    (before,), (after,) = _files(old), _files(new)
    if before.kind != after.kind:
        raise click.ClickException(
            f"{old} is {before.kind} and {new} is {after.kind}: only the level NONE allows a change of the type"
        )
    try:
        one, other = _parsed(before, {}), _parsed(after, {})
        found = {level: problems_between(other, one, level) for level in ("BACKWARD", "FORWARD")}
    except RegistryError as error:
        raise click.ClickException(str(error)) from error
    for level, problems in found.items():
        click.echo(f"{level}: {'not ' if problems else ''}compatible")
        for each in problems:
            click.echo(f"  {each.kind} at {each.path}: {each.sentence}")
    if all(found.values()):
        raise SystemExit(1)


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@click.option(
    "--prune", is_flag=True, help="Soft-delete subjects of the default context without a file in the directory."
)
@click.option("--normalize", is_flag=True, help="Look up and register schemas in their normalised form.")
@registry_command
def apply(folder: str, dry_run: bool, prune: bool, normalize: bool, registry: RegistryClient) -> None:
    """Register the schemas of a directory, in the order of their references.

    Schemas that are registered already stay unchanged. The subject of a file is its path without the extension:
    orders-value for schemas/orders-value.avsc. If a schema would be refused, nothing is changed and the exit code is 1.
    A schema that refers to one that is not registered yet is checked when that one has been registered.

    \b
    Examples:
      millbeck registry apply schemas/ --dry-run
      millbeck registry apply schemas/
    """
    if not Path(folder).is_dir():
        raise click.UsageError(f"{folder} is not a directory")
    files = _files(folder)
    plan = _Plan(registry, normalize=normalize)
    for each in files:
        plan.look(each)
    gone = plan.others(files) if prune else []
    for line in (*plan.lines, *(f"delete      {name}" for name in gone)):
        click.echo(line)
    if plan.refused:
        raise click.ClickException(f"{plan.refused} of {len(files)} schemas would be refused; nothing was changed")
    if dry_run:
        return
    for each in plan.new:
        found = plan.register(each)
        click.echo(f"registered  {each.subject}: id {found['id']}")
    for name in gone:
        registry.call("DELETE", "subjects", name)


class _Plan:
    """The plan of `apply`: the schemas to register, and the versions of the schemas that they refer to."""

    def __init__(self, registry: RegistryClient, *, normalize: bool) -> None:
        self.new: list[SchemaFile] = []
        self.lines: list[str] = []
        self.refused = 0
        self._registry = registry
        self._query = {"normalize": normalize}
        self._versions: dict[str, int] = {}
        """The registered version by subject, for subjects whose file is registered."""

    def look(self, file: SchemaFile) -> None:
        waits_for = [subject for _, subject in file.references if subject not in self._versions]
        if waits_for:
            # A schema that is not registered has no version, so the registry cannot check this one yet.
            self.new.append(file)
            self.lines.append(f"register    {file.subject} (checked once {', '.join(waits_for)} is registered)")
            return
        body = self._body(file)
        try:
            found = self._registered(file, body)
            problems = (
                [] if found else problems_of(self._registry, file.subject, body, normalize=self._query["normalize"])
            )
        except SchemaError as error:
            self.refused += 1
            self.lines.append(f"invalid     {file.subject}: {error}")
            return
        if found:
            self._versions[file.subject] = int(found["version"])
            self.lines.append(f"unchanged   {file.subject}: id {found['id']}, version {found['version']}")
        elif problems:
            self.refused += 1
            self.lines += [f"refused     {file.subject}", *(f"  {each}" for each in problems)]
        else:
            self.new.append(file)
            self.lines.append(f"register    {file.subject}")

    def _registered(self, file: SchemaFile, body: dict[str, Any]) -> Any:
        """The registered version with this schema, or None."""
        try:
            return self._registry.call("POST", "subjects", file.subject, query=self._query, body=body)
        except UnknownSchema:
            return None

    def register(self, file: SchemaFile) -> Any:
        path = ("subjects", file.subject, "versions")
        found = self._registry.call("POST", *path, query=self._query, body=self._body(file))
        version = self._registry.call("POST", "subjects", file.subject, query=self._query, body=self._body(file))
        self._versions[file.subject] = int(version["version"])
        return found

    def others(self, files: list[SchemaFile]) -> list[str]:
        """The subjects of the default context that have no file."""
        known = {each.subject: None for each in files}
        return [name for name in self._registry.call("GET", "subjects") if name not in known and name[:2] != ":."]

    def _body(self, file: SchemaFile) -> dict[str, Any]:
        listed = [
            {"name": name, "subject": subject, "version": self._versions[subject]} for name, subject in file.references
        ]
        return {"schema": file.text, "schemaType": file.kind, "references": listed}
