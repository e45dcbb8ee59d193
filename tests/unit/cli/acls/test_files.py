"""Files of ACLs: read, exported, compared; what is wrong is said with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from millbeck.cli.acls.files import difference, exported, read_acls, read_tests
from millbeck.cli.output import yaml_lines
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

TEXT = """\
acls:
- principal: User:orders-service
  resource: topic
  name: orders
  operations: [write, describe]
- principal: User:*
  permission: deny
  host: 10.0.0.1
  resource: topic
  name: "007"
  pattern: prefixed
  operations: all
- {principal: "User:admin", resource: cluster, operations: [alter, DescribeConfigs]}
"""


def written(tmp_path: Path, content: str | dict[str, Any]) -> str:
    path = tmp_path / "acls.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    entries = read_acls(written(tmp_path, TEXT))
    assert len(entries) == 5
    first, denied, cluster = entries[0], entries[2], entries[3]
    assert (first.host, first.permission_type, first.pattern_type) == ("*", Permission.ALLOW, PatternType.LITERAL)
    assert (denied.resource_name, denied.pattern_type, denied.operation) == ("007", PatternType.PREFIXED, Operation.ALL)
    assert (denied.host, denied.permission_type) == ("10.0.0.1", Permission.DENY)
    assert (cluster.resource_type, cluster.resource_name) == (ResourceType.CLUSTER, CLUSTER_NAME)


@pytest.mark.parametrize("as_yaml", [True, False])
def test_what_is_exported_reads_as_the_same_acls(tmp_path: Path, as_yaml: bool) -> None:
    entries = read_acls(written(tmp_path, TEXT))
    content: Any = exported(entries)
    again = read_acls(written(tmp_path, "\n".join(yaml_lines(content)) if as_yaml else content))
    assert set(again) == set(entries)
    changes = difference(entries, again)
    assert (changes.missing, changes.surplus) == ((), ())


def test_differences(tmp_path: Path) -> None:
    entries = read_acls(written(tmp_path, TEXT))
    changes = difference(entries[:3], entries[1:])
    assert (changes.missing, changes.surplus) == ((entries[0],), tuple(entries[3:]))


GOOD = {"principal": "User:a", "resource": "topic", "name": "t", "operations": ["read"]}
WRONG: dict[str, tuple[Any, str]] = {
    "no list": ({"acl": []}, "needs a list under the key acls"),
    "no mapping": ({"acls": ["x"]}, "entry 1 of acls: must be a mapping"),
    "unknown key": ({"acls": [GOOD, {**GOOD, "topic": "t"}]}, "entry 2 of acls: unknown key 'topic'"),
    "no principal": ({"acls": [{**GOOD, "principal": None}]}, "needs a principal"),
    "no name": ({"acls": [{**GOOD, "name": ""}]}, "a topic needs a name"),
    "no operations": ({"acls": [{**GOOD, "operations": []}]}, "needs a list of operations"),
    "unknown operation": ({"acls": [{**GOOD, "operations": ["fly"]}]}, "'fly' is not one of"),
    "any": ({"acls": [{**GOOD, "operations": ["any"]}]}, "operations: any is not allowed here"),
    "match": ({"acls": [{**GOOD, "pattern": "match"}]}, "must be literal or prefixed"),
    "any permission": ({"acls": [{**GOOD, "permission": "any"}]}, "must be allow or deny"),
    "a network": ({"acls": [{**GOOD, "host": "10.0.0.0/8"}]}, "is a network"),
    "any resource": ({"acls": [{**GOOD, "resource": "any"}]}, "any is not allowed here"),
    "not YAML": ("acls: [", "not YAML"),
    "not JSON": ("{acls", "not JSON"),
    "a list": ("- a", "must be a mapping"),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(click.ClickException) as raised:
        read_acls(written(tmp_path, content))
    assert message in raised.value.message
    assert "acls.yaml" in raised.value.message


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(click.ClickException, match="nowhere"):
        read_acls("nowhere")


def test_tests_need_an_expectation(tmp_path: Path) -> None:
    case = {"principal": "User:a", "resource": "topic", "name": "t", "operation": "read"}
    with pytest.raises(click.ClickException, match="needs allowed: true or false"):
        read_tests(written(tmp_path, {"tests": [case]}))
    (read,) = read_tests(written(tmp_path, {"tests": [{**case, "allowed": False}]}))
    assert (read.question.operation, read.question.host, read.is_allowed) == (Operation.READ, "127.0.0.1", False)
