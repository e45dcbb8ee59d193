"""What an audit's denials ask for: the smallest ACLs, each once, and none for what an ACL denies on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.cli.acls.suggestions import suggested
from millbeck.cli.acls.words import acl_line
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import parse_principal
from millbeck.security.standard_authorizer import StandardAuthorizer


def denied(operation: str, resource: str, api: str = "Produce", **more: str) -> dict[str, str]:
    given = {"principal": "User:app", "host": "10.0.0.7", "rule": "DefaultDeny", "time": "2026-11-19T14:00:00.000Z"}
    return {"event": "denied", "operation": operation, "resource": resource, "api": api, **given, **more}


CASES = {
    "each once": ([denied("WRITE", "TOPIC:t"), denied("WRITE", "TOPIC:t", "AddPartitionsToTxn")], ["write t"]),
    "implied by another": ([denied("DESCRIBE", "TOPIC:t", "Metadata"), denied("READ", "TOPIC:t", "Fetch")], ["read t"]),
    "not implied for another name": (
        [denied("DESCRIBE", "TOPIC:u", "Metadata"), denied("READ", "TOPIC:t", "Fetch")],
        ["read t", "describe u"],
    ),
    "the narrower of two": (
        [denied("CREATE", "CLUSTER:kafka-cluster", "Metadata"), denied("CREATE", "TOPIC:t", "Metadata")],
        ["create t"],
    ),
    "the only one": ([denied("ALTER", "CLUSTER:kafka-cluster", "CreateAcls")], ["alter kafka-cluster"]),
    "denied on purpose": ([denied("WRITE", "TOPIC:t", rule="MatchingAcl(acl=StandardAcl(...))")], []),
    "other events and damaged ones": (
        [{"event": "login"}, denied("PAINT", "TOPIC:t"), denied("READ", "THING:t"), {"event": "denied"}],
        [],
    ),
}


@pytest.mark.parametrize(("events", "expected"), CASES.values(), ids=CASES.keys())
def test_the_smallest_acls(events: list[dict[str, str]], expected: list[str]) -> None:
    found = [f"{Operation(each.operation).name.lower()} {each.resource_name}" for each in suggested(events)]
    assert found == expected


def test_prefixes_and_hosts() -> None:
    events = [denied("READ", "TOPIC:app-1"), denied("READ", "TOPIC:app-2"), denied("READ", "TOPIC:other", host="::1")]
    assert [acl_line(each) for each in suggested(events, ["app-"])] == [
        acl_line(each) for each in suggested([events[0], events[2]], ["app-"])
    ]
    assert [each.host for each in suggested(events, ["app-"], hosts=True)] == ["10.0.0.7", "::1"]


def test_under_the_suggested_acls_nothing_is_denied() -> None:
    events = [
        denied(operation, f"{kind}:{name}", api)
        for operation, kind, api in (
            ("READ", "TOPIC", "Fetch"),
            ("READ", "GROUP", "JoinGroup"),
            ("WRITE", "TOPIC", "P"),
        )
        for name in ("a", "b-1", "b-2")
    ]
    authorizer = StandardAuthorizer()
    authorizer.change([], suggested(events, ["b-"]))
    authorizer.loaded()
    for each in events:
        kind, _, name = each["resource"].partition(":")
        assert authorizer.authorize(
            parse_principal("User:app"), "10.0.0.7", Operation[each["operation"]], ResourceType[kind], name
        )


def test_the_command_prints_a_file_for_apply(run: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    events = [denied("READ", "TOPIC:t"), denied("READ", "GROUP:g", principal="User:other")]
    path.write_text("".join(json.dumps(each) + "\n" for each in events) + '{"cut')
    done = run("acl", "suggest", "--from-audit", str(path), "--principal", "User:app", "-o", "json")
    assert json.loads(done.stdout) == {
        "acls": [{"principal": "User:app", "resource": "topic", "name": "t", "operations": ["read"]}]
    }
    assert "other" in run("acl", "suggest", "--from-audit", str(path)).stdout
