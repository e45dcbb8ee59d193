"""``millbeck registry export``, ``import`` and ``copy``: all schemas and settings of a registry, with their ids.

A file has one JSON object in each line: the settings and modes first, then every version in the order of ids. Versions
are written in mode IMPORT, which is set for their subjects and removed afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.registries.connection import connected, registry_command
from millbeck.cli.verbs import Command
from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.registry_client import RegistryClient

_CONFIG: Final = "config"
_MODE: Final = "mode"
SCHEMA: Final = "schema"
_PAGE: Final = 1000
_KEPT: Final[tuple[str, ...]] = ("id", "version", "schema", "schemaType", "references", "metadata", "ruleSet")


def exported(registry: RegistryClient) -> Iterator[dict[str, Any]]:
    """Yield all settings, modes and versions of the registry."""
    versions = _listed(registry, deleted=True)
    subjects = dict.fromkeys(each["subject"] for each in versions)
    for name in (None, *subjects):
        for kind in (_CONFIG, _MODE):
            try:
                found = registry.call("GET", kind, *(() if name is None else (name,)))
            except UnknownSchema:
                continue
            yield {"kind": kind, "subject": name, **_as_request(found)}
    alive = {(each["subject"], each["version"]) for each in _listed(registry, deleted=False)}
    for each in sorted(versions, key=lambda version: (version["id"], version["subject"], version["version"])):
        is_deleted = (each["subject"], each["version"]) not in alive
        yield {"kind": SCHEMA, "subject": each["subject"], **_kept(each), "deleted": is_deleted}


def _listed(registry: RegistryClient, *, deleted: bool) -> list[dict[str, Any]]:
    """All versions of all contexts; with ``deleted`` also soft-deleted ones."""
    versions: list[dict[str, Any]] = []
    while True:
        query = {"subjectPrefix": ":*:", "deleted": deleted, "offset": len(versions) or None, "limit": _PAGE}
        page = registry.call("GET", "schemas", query=query)
        versions += page
        if len(page) < _PAGE:
            return versions


def _as_request(found: dict[str, Any]) -> dict[str, Any]:
    """Convert settings from an answer to a request, in which the level has another name."""
    return {"compatibility" if name == "compatibilityLevel" else name: value for name, value in found.items()}


def _kept(version: dict[str, Any]) -> dict[str, Any]:
    """The members of a version with which it is registered again."""
    return {name: version[name] for name in _KEPT if name in version}


def imported(registry: RegistryClient, lines: Iterable[dict[str, Any]]) -> int:
    """Write exported settings and versions; returns the number of versions. Versions that exist already stay
    unchanged, and so do the modes of subjects that the lines do not set.

    Settings come last, because a subject with an alias would give its versions to the other subject."""
    settings: list[dict[str, Any]] = []
    versions: list[dict[str, Any]] = []
    for line in lines:
        (versions if line.get("kind") == SCHEMA else settings).append(line)
    modes = {name: _own_mode(registry, name) for name in dict.fromkeys(each["subject"] for each in versions)}
    for name in modes:
        registry.call("PUT", "mode", name, query={"force": True}, body={"mode": "IMPORT"})
    try:
        _write_all(registry, versions)
    finally:
        for name, mode in modes.items():
            if mode is None:
                registry.call("DELETE", "mode", name)
            else:
                registry.call("PUT", "mode", name, query={"force": True}, body={"mode": mode})
    for line in settings:
        if line["kind"] == _CONFIG:
            registry.call("PUT", *_path(line), body=_without_place(line))
    for line in settings:
        if line["kind"] == _MODE and line.get("mode") not in (None, "IMPORT"):
            registry.call("PUT", *_path(line), query={"force": True}, body={"mode": line["mode"]})
    return len(versions)


def _own_mode(registry: RegistryClient, subject: str) -> str | None:
    """The mode of a subject itself."""
    try:
        return str(registry.call("GET", "mode", subject)["mode"])
    except UnknownSchema:
        return None


def _path(line: dict[str, Any]) -> tuple[str, ...]:
    return (line["kind"],) if line.get("subject") is None else (line["kind"], line["subject"])


def _without_place(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in ("kind", "subject")}


def _write_all(registry: RegistryClient, versions: list[dict[str, Any]]) -> None:
    """Write the versions. A version may refer to one with a higher id, so versions that fail are tried again."""
    left = versions
    while left:
        failed: list[dict[str, Any]] = []
        reasons: list[str] = []
        for each in left:
            try:
                registry.call("POST", "subjects", each["subject"], "versions", body=_kept(each))
            except SchemaError as error:
                failed.append(each)
                reasons.append(f"{each['subject']} version {each.get('version', 'next')}, id {each['id']}: {error}")
        if len(failed) == len(left):
            raise SchemaError(reasons[0])
        left = failed
    for each in versions:
        if each.get("deleted"):
            registry.call("DELETE", "subjects", each["subject"], "versions", str(each["version"]))


@click.command("export", cls=Command)
@click.argument("path", metavar="FILE", type=FILE)
@registry_command
def export_all(path: str, registry: RegistryClient) -> None:
    """Export all schemas with their ids, settings and modes to a file ("-" means standard output)."""
    with click.open_file(path, "w", encoding="utf-8") as file:
        count = 0
        for line in exported(registry):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += line["kind"] == SCHEMA
    click.echo(f"exported {count} versions", err=True)


@click.command("import", cls=Command)
@click.argument("path", metavar="FILE", type=FILE)
@registry_command
def import_all(path: str, registry: RegistryClient) -> None:
    """Import an exported file into a registry, with the same ids and versions."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path}: {error}") from error
    if not all(isinstance(line, dict) and line.get("kind") in (_CONFIG, _MODE, SCHEMA) for line in lines):
        raise click.ClickException(f"{path} was not written by millbeck registry export")
    click.echo(f"imported {imported(registry, lines)} versions")


@click.command("copy", cls=Command)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="The URL of the registry to copy from; any registry with Confluent's API.",
)
@registry_command
def copy(source: str, registry: RegistryClient) -> None:
    """Copy all schemas and settings of another registry into this one, with the same ids and versions.

    \b
    Examples:
      millbeck registry copy --from http://old:8081 --url http://127.0.0.1:8081
    """
    with connected(source) as other:
        lines = list(exported(other))
    click.echo(f"copied {imported(registry, lines)} versions")
