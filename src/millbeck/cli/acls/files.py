"""Files with the ACLs that a cluster should have, and with tests of these ACLs.

    acls:
    - principal: User:orders-service
      resource: topic
      name: orders
      operations: [write, describe]
    - principal: User:*
      permission: deny
      resource: topic
      name: secret-
      pattern: prefixed
      operations: [all]

Defaults: ``permission`` allow, ``pattern`` literal, ``host`` *. The cluster resource has no name. The file is YAML or
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from millbeck.cli.acls.words import (
    ANY_HOST,
    check_host,
    check_principal,
    entry_of,
    read_word,
    resource_name,
    word,
)
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType

_KEYS: Final = ("principal", "host", "permission", "resource", "name", "pattern", "operations")
_TEST_KEYS: Final = ("principal", "host", "resource", "name", "operation", "allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class AclAssertion:
    """A test: whether a principal may perform an operation on a resource."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str

    def __str__(self) -> str:
        where = "" if self.host == ANY_HOST else f" from {self.host}"
        on = "the cluster"
        if self.resource_type is not ResourceType.CLUSTER:
            on = f"{word(self.resource_type)} {self.resource_name}"
        return f"{self.principal}{where}: {word(self.operation)} on {on}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclTest:
    question: AclAssertion
    is_allowed: bool


def read_acls(path: str) -> list[AccessControlEntry]:
    """The ACLs of a file, without duplicates."""
    content = _content(path)
    if not isinstance(content.get("acls"), list):
        raise click.ClickException(f"{path}: needs a list under the key acls")
    entries: dict[AccessControlEntry, None] = {}
    for position, item in enumerate(content["acls"], 1):
        for entry in _located(path, "acls", position, item, _entries):
            entries[entry] = None
    return list(entries)


def read_tests(path: str) -> list[AclTest]:
    content = _content(path)
    if not isinstance(content.get("tests"), list):
        raise click.ClickException(f"{path}: needs a list under the key tests")
    return [_located(path, "tests", position, item, _test) for position, item in enumerate(content["tests"], 1)]


def _content(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        from millbeck.cli.connection_options import file_problem

        raise click.ClickException(file_problem(path, error)) from error
    content = _parsed(path, text)
    if not isinstance(content, dict):
        raise click.ClickException(f"{path}: must be a mapping")
    return content


def _parsed(path: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise click.ClickException(f"{path}: not JSON: {error}") from error
    try:
        import yaml
    except ImportError:
        raise click.ClickException(
            f"{path}: reading YAML needs PyYAML (pip install 'millbeck[yaml]'); JSON is read without it"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise click.ClickException(f"{path}: not YAML: {error}") from error


def _located(path: str, key: str, position: int, item: Any, read: Any) -> Any:
    """Read one item; errors name its place in the file."""
    try:
        if not isinstance(item, Mapping):
            raise click.ClickException("must be a mapping")
        return read(item)
    except click.ClickException as error:
        raise click.ClickException(f"{path}: entry {position} of {key}: {error.message}") from error


def _checked(item: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    known = tuple(keys)
    unknown = [key for key in item if key not in known]
    if unknown:
        raise click.ClickException(f"unknown key {unknown[0]!r}: it is one of {', '.join(known)}")
    for key in ("principal", "resource"):
        if not isinstance(item.get(key), str):
            raise click.ClickException(f"needs a {key}")
    kind = read_word(ResourceType, item["resource"])
    if kind is ResourceType.ANY:
        raise click.ClickException("resource: any is not allowed here")
    name = item.get("name")
    return {
        "principal": check_principal(item["principal"]),
        "resource": kind,
        "name": resource_name(kind, None if name is None else str(name)),
    }


def _entries(item: Mapping[str, Any]) -> list[AccessControlEntry]:
    given = _checked(item, _KEYS)
    operations = item.get("operations")
    if isinstance(operations, str):
        operations = [operations]
    if not isinstance(operations, list) or not operations:
        raise click.ClickException("needs a list of operations")
    given["host"] = check_host(str(item.get("host", ANY_HOST)))
    given["permission"] = read_word(Permission, str(item.get("permission", "allow")))
    given["pattern"] = read_word(PatternType, str(item.get("pattern", "literal")))
    if given["pattern"] not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise click.ClickException("pattern must be literal or prefixed")
    if given["permission"] is Permission.ANY:
        raise click.ClickException("permission must be allow or deny")
    found = [read_word(Operation, str(each)) for each in operations]
    if Operation.ANY in found:
        raise click.ClickException("operations: any is not allowed here; use all for every operation")
    return [entry_of(given, operation) for operation in found]


def _test(item: Mapping[str, Any]) -> AclTest:
    given = _checked(item, _TEST_KEYS)
    if not isinstance(item.get("allowed"), bool):
        raise click.ClickException("needs allowed: true or false")
    operation = read_word(Operation, str(item.get("operation", "")))
    return AclTest(
        question=AclAssertion(
            principal=given["principal"],
            host=check_host(str(item.get("host", "127.0.0.1"))),
            operation=operation,
            resource_type=given["resource"],
            resource_name=given["name"],
        ),
        is_allowed=item["allowed"],
    )


def exported(entries: Iterable[AccessControlEntry]) -> dict[str, object]:
    """The content of a file with these ACLs; ACLs that differ only in the operation become one item."""
    items: dict[tuple[object, ...], dict[str, Any]] = {}
    for entry in entries:
        row = dict(_item(entry))
        operation = row.pop("operation")
        item = items.setdefault(tuple(row.items()), {**row, "operations": []})
        item["operations"].append(operation)
    return {"acls": list(items.values())}


def _item(entry: AccessControlEntry) -> Iterable[tuple[str, object]]:
    yield "principal", entry.principal
    if entry.host != ANY_HOST:
        yield "host", entry.host
    if entry.permission_type == Permission.DENY:
        yield "permission", word(Permission.DENY)
    yield "resource", word(ResourceType(entry.resource_type))
    if entry.resource_type != ResourceType.CLUSTER:
        yield "name", entry.resource_name
    if entry.pattern_type == PatternType.PREFIXED:
        yield "pattern", word(PatternType.PREFIXED)
    yield "operation", word(Operation(entry.operation))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The changes after which a cluster has the ACLs of a file."""

    missing: tuple[AccessControlEntry, ...]
    surplus: tuple[AccessControlEntry, ...]


def difference(wanted: Iterable[AccessControlEntry], present: Iterable[AccessControlEntry]) -> Difference:
    here, there = dict.fromkeys(wanted), dict.fromkeys(present)
    return Difference(
        missing=tuple(entry for entry in here if entry not in there),
        surplus=tuple(entry for entry in there if entry not in here),
    )
