"""Client quotas over the wire of a whole node: altered, described by filters, and there after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, InvalidRequest, UnsupportedVersion
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.wire.messages.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario
from tests.unit.server.harness.secured import allow, connect_as, run_secured

ENTITIES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "alice": (("user", "alice"),),
    "any user": (("user", None),),
    "alice's app": (("user", "alice"), ("client-id", "app")),
    "app": (("client-id", "app"),),
    "host": (("ip", "10.0.0.1"),),
}


def altering(*entities: tuple[tuple[str, str | None], ...], value: float = 1000.0) -> AlterClientQuotasRequest:
    entries = []
    for entity in entities:
        key = "connection_creation_rate" if entity[0][0] == "ip" else "producer_byte_rate"
        entries.append(AlterClientQuotasEntry([EntityData(*part) for part in entity], [OpData(key, value)]))
    return AlterClientQuotasRequest(entries=entries)


def asking(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest([ComponentData(*each) for each in components], strict)


FOUND = {
    "everything": (asking(), {"alice", "any user", "alice's app", "app", "host"}),
    "nothing else": (asking(strict=True), set()),
    "any user": (asking(("user", 2, None)), {"alice", "any user", "alice's app"}),
    "users alone": (asking(("user", 2, None), strict=True), {"alice", "any user"}),
    "the default": (asking(("user", 1, None)), {"any user"}),
    "alice": (asking(("user", 0, "alice")), {"alice", "alice's app"}),
    "alice and any client": (asking(("user", 0, "alice"), ("client-id", 2, None)), {"alice's app"}),
    "hosts": (asking(("ip", 2, None), strict=True), {"host"}),
}


@pytest.mark.parametrize(("request_", "names"), FOUND.values(), ids=FOUND.keys())
def test_filters_find_what_matches(request_: DescribeClientQuotasRequest, names: set[str]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        answer = await client.ask(altering(*ENTITIES.values()), 1)
        assert [each.error_code for each in answer.entries] == [0] * len(ENTITIES)
        await asyncio.sleep(0.1)
        harness.machine.power_loss()
        await harness.start()
        described = await (await harness.connect(environment)).ask(request_, 1)
        found = {frozenset((part.entity_type, part.entity_name) for part in each.entity) for each in described.entries}
        assert found == {frozenset(ENTITIES[name]) for name in names}
        assert all(value.value == 1000.0 for each in described.entries for value in each.values)

    run_scenario(scenario)


REFUSED = {
    "no type": (asking(("", 2, None)), InvalidRequest, "Invalid empty entity type."),
    "unknown type": (asking(("group", 2, None)), UnsupportedVersion, "Unsupported entity type group"),
    "twice": (
        asking(("user", 2, None), ("user", 1, None)),
        InvalidRequest,
        "Entity type user cannot appear more than once in the filter.",
    ),
    "no name": (
        asking(("user", 0, None)),
        InvalidRequest,
        "Request specified MATCH_TYPE_EXACT, but set match string to null.",
    ),
    "a name for the default": (
        asking(("user", 1, "a")),
        InvalidRequest,
        "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
    ),
    "a name for any": (
        asking(("user", 2, "a")),
        InvalidRequest,
        "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
    ),
    "unknown match": (asking(("user", 9, None)), InvalidRequest, "Unknown match type 9"),
    "ip and user": (
        asking(("user", 2, None), ("ip", 2, None)),
        InvalidRequest,
        "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
        "filter component.",
    ),
}


def test_filters_that_make_no_sense_are_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for request, error, text in REFUSED.values():
            answer = await client.ask(request, 1)
            assert (answer.error_code, answer.error_message, answer.entries) == (error.code, text, None)

    run_scenario(scenario)


def test_only_those_allowed_may_see_and_alter_quotas() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await connect_as(harness, environment)

        async def codes() -> list[Any]:
            described = await alice.ask(asking(), 1)
            changed = await alice.ask(altering(ENTITIES["alice"]), 1)
            return [described.error_code, changed.entries[0].error_code]

        assert await codes() == [ClusterAuthorizationFailed.code] * 2
        await allow(client, Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
        assert await codes() == [0, 0]

    run_secured(scenario)
