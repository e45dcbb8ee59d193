"""Every API and version, one field at a time made strange: the node answers or closes, and never stumbles.

The requests go to a whole node in the simulator. An exception that nobody expected, in a handler or behind it, fails
the test, as does a node that no longer serves afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.server.requests.routes import ROUTES
from millbeck.wire.api_keys import APIS
from millbeck.wire.codec import EncodeError
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.fuzz.field_mutations import mutations
from tests.unit.server.harness.broker_harness import BrokerHarness, Client

PATIENCE_SECONDS = 0.3
"""How long a parked request is waited for; what it does later still counts."""


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: APIS[route.api_key].name)
def test_no_field_of_a_request_makes_the_node_stumble(route: Any) -> None:
    tried: list[str] = []

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic = CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=2, replication_factor=1)])
        await client.ask(topic, 7)
        api = APIS[route.api_key]
        for version in range(api.min_version, api.max_version + 1):
            for what, request in mutations(api.request, version):
                try:
                    reply = client.send(request, version)
                except EncodeError:
                    continue  # null where it may not be
                tried.append(f"version {version}: {what}")
                client = await _outcome(harness, client, environment, reply)
                assert harness.node is not None
                assert harness.node.broker.unexpected_errors == 0, tried[-1]
                assert not harness.node.failed.done(), tried[-1]
        await asyncio.sleep(60)
        client = await harness.connect(environment)
        assert (await client.ask(ApiVersionsRequest("test", "1"), 3)).error_code == 0

    BrokerHarness().run(scenario, limit_s=200_000)
    versions = {each.partition(":")[0] for each in tried}
    assert len(versions) == APIS[route.api_key].max_version - APIS[route.api_key].min_version + 1
    assert tried[0].endswith("nothing")


async def _outcome(harness: BrokerHarness, client: Client, environment: Environment, reply: Any) -> Client:
    """Wait a moment for the answer; the connection to go on with."""
    try:
        await asyncio.wait_for(reply, PATIENCE_SECONDS)
    except (ConnectionError, TimeoutError):
        client.close()
        return await harness.connect(environment)
    return client
