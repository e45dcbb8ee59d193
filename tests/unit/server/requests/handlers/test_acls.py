"""ACLs over the wire of a whole node: created, described, deleted, in force at once and after a restart."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    SecurityDisabled,
    TopicAuthorizationFailed,
)
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.network.listener import Listener
from millbeck.wire.messages.acls import (
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, fetch, produce, results, run_scenario
from tests.unit.server.harness.secured import (
    ACLS_VERSION,
    SECURED,
    acl,
    allow,
    connect_as,
    create_acls,
    delete_acls,
    run_secured,
)


def described(**given: Any) -> DescribeAclsRequest:
    values: dict[str, Any] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    return DescribeAclsRequest(**{**values, **given})


ANY_FILTER = DeleteAclsFilter(
    resource_type_filter=ResourceType.ANY,
    pattern_type_filter=PatternType.ANY,
    operation=Operation.ANY,
    permission_type=Permission.ANY,
    resource_name_filter=None,
    principal_filter=None,
    host_filter=None,
)


async def metadata_code(client: Client, name: str = "t") -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    code: int = (await client.ask(request, 12)).topics[0].error_code
    return code


def test_without_an_authorizer_they_are_listed_and_answer_security_disabled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        found = await client.ask(described(), ACLS_VERSION)
        assert (found.error_code, found.error_message) == (SecurityDisabled.code, "No Authorizer is configured.")
        creating = await client.ask(CreateAclsRequest(creations=[acl(Operation.READ)] * 2), ACLS_VERSION)
        assert [each.error_code for each in creating.results] == [SecurityDisabled.code] * 2
        deleting = await client.ask(DeleteAclsRequest(filters=[ANY_FILTER]), ACLS_VERSION)
        assert [each.error_code for each in deleting.filter_results] == [SecurityDisabled.code]

    run_scenario(scenario)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_created_described_and_deleted(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        creations = [
            acl(Operation.READ),
            acl(Operation.WRITE),
            acl(Operation.READ, ResourceType.GROUP, "g", pattern=PatternType.PREFIXED, host="10.0.0.0/8"),
        ]
        answer = await client.ask(CreateAclsRequest(creations=creations), version)
        assert [each.error_code for each in answer.results] == [0, 0, 0]
        await asyncio.sleep(0.1)
        found = await client.ask(described(), version)
        shown = {(each.resource_type, each.resource_name, each.pattern_type): each.acls for each in found.resources}
        assert {key: len(acls) for key, acls in shown.items()} == {(2, "t", 3): 2, (3, "g", 4): 1}
        assert (shown[3, "g", 4][0].host, shown[3, "g", 4][0].principal) == ("10.0.0.0/8", "User:alice")
        only = await client.ask(described(operation=Operation.WRITE), version)
        assert [each.operation for resource in only.resources for each in resource.acls] == [Operation.WRITE]
        nonsense = await client.ask(described(permission_type=9), version)
        assert nonsense.error_code == InvalidRequest.code
        assert len(await delete_acls(client)) == 3
        assert (await client.ask(described(), version)).resources == []

    run_secured(scenario)


def test_only_those_allowed_may_see_and_change_acls() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await connect_as(harness, environment)
        denied = ClusterAuthorizationFailed.code
        assert (await alice.ask(described(), ACLS_VERSION)).error_code == denied
        creating = CreateAclsRequest(creations=[acl(Operation.ALL)])
        assert (await alice.ask(creating, ACLS_VERSION)).results[0].error_code == denied
        deleting = DeleteAclsRequest(filters=[ANY_FILTER])
        assert (await alice.ask(deleting, ACLS_VERSION)).filter_results[0].error_code == denied
        assert (await client.ask(described(), ACLS_VERSION)).resources == []
        await allow(client, Operation.ALTER, ResourceType.CLUSTER)
        assert (await alice.ask(described(), ACLS_VERSION)).error_code == 0
        assert (await alice.ask(creating, ACLS_VERSION)).results[0].error_code == 0
        assert len(await delete_acls(alice)) == 2

    run_secured(scenario)


def test_acls_are_in_force_at_once_also_for_cached_metadata_replies() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        alice = await connect_as(harness, environment)
        denied = TopicAuthorizationFailed.code
        for name in ("t", "missing"):
            assert await metadata_code(alice, name) == denied
        await allow(client, Operation.DESCRIBE)
        assert await metadata_code(alice) == 0
        await create_acls(client, acl(Operation.DESCRIBE, permission=Permission.DENY, user="User:*"))
        assert await metadata_code(alice) == denied
        await delete_acls(client, permission_type=Permission.DENY)
        assert await metadata_code(alice) == 0

    run_secured(scenario)


@pytest.mark.parametrize("settings", [{}, {"metadata_log_max_record_bytes_between_snapshots": "1"}])
def test_acls_survive_a_crash_and_removing_one_keeps_the_others(settings: dict[str, str]) -> None:
    """CVE-2024-27309, with ACLs from the log and from a snapshot."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await create_acls(client, acl(Operation.READ), acl(Operation.WRITE), acl(Operation.ALTER, user="User:bob"))
        harness.machine.power_loss()
        await harness.start()
        client = await harness.connect(environment)
        assert len(await delete_acls(client, operation=Operation.WRITE)) == 1
        alice, eve = await connect_as(harness, environment), await connect_as(harness, environment, "eve")
        assert await metadata_code(alice) == 0
        assert await metadata_code(eve) == TopicAuthorizationFailed.code
        assert len(await delete_acls(client)) == 2

    run_secured(scenario, **settings)


def test_a_fetch_session_that_loses_read_is_answered_an_error_without_new_data() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await allow(client, Operation.READ)
        await produce(client, b"one")
        alice = await connect_as(harness, environment)
        opened = await alice.ask(fetch((0, 1), session=(0, 0)), 12)
        assert opened.session_id > 0
        quiet = await alice.ask(fetch(session=(opened.session_id, 1)), 12)
        assert quiet.responses == []
        await delete_acls(client)
        denied = await alice.ask(fetch(session=(opened.session_id, 2)), 12)
        assert results(denied)[0].error_code == TopicAuthorizationFailed.code
        await allow(client, Operation.READ)
        await produce(client, b"two")
        again = await alice.ask(fetch(session=(opened.session_id, 3)), 12)
        assert results(again)[0].error_code == 0
        assert results(again)[0].records

    run_secured(scenario)


def test_a_waiting_fetch_that_loses_read_gets_no_records() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await allow(client, Operation.READ)
        alice = await connect_as(harness, environment)
        waiting = asyncio.ensure_future(alice.ask(fetch((0, 0), max_wait_ms=30_000), 12))
        await asyncio.sleep(0.1)
        await delete_acls(client)
        await produce(client, b"secret")
        answer = results(await waiting)[0]
        assert (answer.error_code, answer.records or b"") == (TopicAuthorizationFailed.code, b"")

    run_secured(scenario)


def test_a_dry_run_allows_and_logs_what_it_would_deny(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        alice = await connect_as(harness, environment)
        with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
            assert await metadata_code(alice) == 0
        assert harness.node is not None
        assert harness.node.broker.decisions.denied_count > 0

    run_secured(scenario, millbeck_authorizer_dry_run="true")
    assert any(
        "User:alice is Denied operation = DESCRIBE" in text and text.endswith("allowed in this dry run")
        for text in caplog.messages
    )


@pytest.mark.parametrize(("early", "is_open"), [(None, True), ("CONTROLLER", True), ("", False)])
def test_listeners_that_do_not_start_early_wait_for_the_acls(
    monkeypatch: pytest.MonkeyPatch, early: str | None, is_open: bool
) -> None:
    options: dict[str, Any] = {} if early is None else {"early_start_listeners": early}
    harness = BrokerHarness(
        **SECURED,
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        **options,
    )
    opened: list[str] = []
    found: list[bool] = []
    really_open = Listener.open

    def open_it(self: Listener) -> None:
        opened.append(self.address.name)
        really_open(self)

    def loaded(self: StandardAuthorizer) -> None:
        found.append("CONTROLLER" in opened)
        self.is_loaded = True

    monkeypatch.setattr(Listener, "open", open_it)
    monkeypatch.setattr(StandardAuthorizer, "loaded", loaded)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert found == [is_open]
        assert opened[-2:] == ["CONTROLLER", "PLAINTEXT"]

    harness.run(scenario)


def test_networks_are_limited_from_one_moment_to_the_next() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        change = IncrementalAlterableConfig("listener.name.plaintext.millbeck.allowed.networks", 0, "192.168.0.0/16")
        resource = IncrementalAlterConfigsResource(4, "1", [change])
        answer = await client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer
        await asyncio.sleep(0.1)
        other = await harness.connect(environment)
        await asyncio.sleep(0.1)
        assert other.is_lost
        assert not client.is_lost

    run_secured(scenario)


def test_denials_are_logged_as_by_kafka(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await connect_as(harness, environment)
        with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
            await alice.ask(CreateAclsRequest(creations=[acl(Operation.ALL)]), ACLS_VERSION)

    run_secured(scenario)
    (line,) = [each for each in caplog.messages if "Denied" in each]
    assert line.startswith("Principal = User:alice is Denied operation = ALTER from host = ")
    assert line.endswith(
        " on resource = Cluster:LITERAL:kafka-cluster for request = CreateAcls with resourceRefCount = 1 based on rule "
        "DefaultDeny"
    )
