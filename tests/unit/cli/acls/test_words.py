"""Words of ACLs in all their spellings, and hosts that no client would match."""

from __future__ import annotations

import click
import pytest

from millbeck.cli.acls.words import acl_line, as_filter, check_host, check_principal, read_word, word
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType


@pytest.mark.parametrize("text", ["describe-configs", "DescribeConfigs", "DESCRIBE_CONFIGS", "describe configs"])
def test_kafkas_spellings_are_read(text: str) -> None:
    assert read_word(Operation, text) is Operation.DESCRIBE_CONFIGS
    assert word(Operation.DESCRIBE_CONFIGS) == "describe-configs"


def test_an_unknown_word_is_answered_with_those_there_are() -> None:
    with pytest.raises(click.ClickException, match="'fly' is not one of any, all, read, write"):
        read_word(Operation, "fly")
    with pytest.raises(click.ClickException, match="unknown"):
        read_word(ResourceType, "unknown")


@pytest.mark.parametrize("host", ["*", "10.0.0.1", "::1"])
def test_addresses_are_hosts(host: str) -> None:
    assert check_host(host) == host


@pytest.mark.parametrize(
    ("host", "message"),
    [("10.0.0.0/8", "is a network"), ("fe80::/10", "is a network"), ("db.local", "is not an address")],
)
def test_hosts_that_match_no_client_are_refused(host: str, message: str) -> None:
    with pytest.raises(click.ClickException, match=message):
        check_host(host)


@pytest.mark.parametrize("principal", ["alice", ":alice", "User:", ""])
def test_a_principal_has_a_type_and_a_name(principal: str) -> None:
    with pytest.raises(click.ClickException, match="is not a principal"):
        check_principal(principal)


def test_an_acl_is_one_sentence_and_its_own_filter() -> None:
    entry = AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name="orders-",
        pattern_type=PatternType.PREFIXED,
        principal="User:alice",
        host="10.0.0.1",
        operation=Operation.READ,
        permission_type=Permission.DENY,
    )
    assert acl_line(entry) == ("deny User:alice from 10.0.0.1 to read every topic whose name begins with orders-")
    assert as_filter(entry).matches(entry)
