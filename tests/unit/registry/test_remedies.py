"""What a registry without permissions says."""

from __future__ import annotations

import asyncio

import pytest
from click.testing import CliRunner

from millbeck.cli.commands.acl import command
from millbeck.host import real_environment
from millbeck.kernel.errors import (
    ApiError,
    GroupAuthorizationFailed,
    InvalidSessionTimeout,
    NotCoordinator,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from millbeck.registry.election import Identity
from millbeck.registry.errors import UnknownLeader
from millbeck.registry.instance import Instance, InstanceSettings
from millbeck.registry.remedies import with_remedy


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TopicAuthorizationFailed(), "--operation CREATE --operation DESCRIBE_CONFIGS --topic _schemas"),
        (GroupAuthorizationFailed(), "--operation READ --group schema-registry"),
        (TransactionalIdAuthorizationFailed(), "--transactional-id millbeck-schema-registry-_schemas"),
    ],
)
def test_the_acl_that_is_missing_is_named(error: ApiError, text: str) -> None:
    found = with_remedy(
        error, topic="_schemas", group="schema-registry", transactional_id="millbeck-schema-registry-_schemas"
    )
    assert type(found) is type(error)
    assert text in str(found)
    # The command takes these options; only brokers are missing here.
    arguments = str(found).partition("millbeck acl ")[2].split()
    assert "No such option" not in CliRunner().invoke(command, [*arguments, "--bootstrap-server", "127.0.0.1:1"]).output


def test_a_session_timeout_that_the_brokers_refuse_is_named() -> None:
    found = with_remedy(InvalidSessionTimeout(), topic="t", group="g", transactional_id="x")
    assert "schema.registry.group.session.timeout.ms" in str(found)


def test_other_errors_are_what_they_are() -> None:
    error = NotCoordinator()
    assert with_remedy(error, topic="t", group="g", transactional_id="x") is error


def test_a_request_that_finds_no_leader_is_told_why(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> str:
        instance = Instance(real_environment(), Identity("r1", 8081), InstanceSettings(client={}))
        for _ in range(2):
            instance._take_note(GroupAuthorizationFailed())
        instance._settled.set()
        with pytest.raises(UnknownLeader) as caught:
            await instance.wait_settled()
        return str(caught.value)

    assert "millbeck acl add" in asyncio.run(scenario())
    assert len(caplog.records) == 1
