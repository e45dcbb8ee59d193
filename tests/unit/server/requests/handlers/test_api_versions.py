"""ApiVersions: what is listed works, and a client that guessed too high can go on."""

from __future__ import annotations

import asyncio
import struct

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest, UnsupportedVersion
from millbeck.metadata.features import FROM_THE_START, LATEST_METADATA_VERSION, MINIMUM_METADATA_VERSION
from millbeck.metadata.image import EMPTY
from millbeck.server.requests.handlers import api_versions
from millbeck.server.requests.routes import ROUTES
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.metadata import ApiVersionsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario


def named(name: str = "test", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_exactly_what_is_served(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        response = await client.ask(named(), version)
        assert response.error_code == 0
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        served = {route.api_key: (route.advertised_min, route.max_version) for route in ROUTES}
        assert listed == served
        assert listed[0] == (0, 13)
        assert listed[22] == (0, 5)

    run_scenario(scenario)


@pytest.mark.parametrize("version", [3, 4])
def test_features_are_told_with_their_levels(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        response = await client.ask(named(), version)
        supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        assert supported.pop("metadata.version") == (MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION)
        # Clients that ask in an older version can not take a lowest level of zero.
        assert ("eligible.leader.replicas.version" in supported) == (version >= 4)
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert finalized.pop("metadata.version") == LATEST_METADATA_VERSION
        assert finalized == {"kraft.version": 1} | {name: level for name, level, _ in FROM_THE_START}
        assert response.finalized_features_epoch >= 0

    run_scenario(scenario)


def test_features_with_a_lowest_level_of_zero_are_kept_from_old_clients() -> None:
    from millbeck.metadata.features import FeatureRange

    ranges = {"metadata.version": FeatureRange(7, 30), "group.version": FeatureRange(0, 1), "off": FeatureRange(0, 0)}
    names = {
        version: [
            each.name
            for each in api_versions.response([], EMPTY, version, supported_features=ranges).supported_features
        ]
        for version in (3, 4)
    }
    assert names == {3: ["metadata.version"], 4: ["group.version", "metadata.version"]}


@pytest.mark.parametrize(("level", "shown"), [(0, []), (1, [("kraft.version", 1)])])
def test_the_quorums_own_level_is_shown_once_it_is_raised(level: int, shown: list[tuple[str, int]]) -> None:
    finalized = api_versions.response([], EMPTY, 4, supported_features={}, kraft_version=level).finalized_features
    assert [(each.name, each.max_version_level) for each in finalized] == shown


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_version_we_do_not_have_is_answered_in_version_zero_and_the_connection_stays(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        received: list[bytes] = []
        client.data_received = received.append  # type: ignore[method-assign,assignment]
        body = b"whatever a newer client may say"
        client.write(request_prefix(18, 3, 77, "new", len(body))[:6] + struct.pack(">h", version) + _rest(body))
        await asyncio.sleep(1)
        frame = b"".join(received)
        size, correlation_id, error, count = struct.unpack_from(">iihi", frame)
        assert (correlation_id, error, count) == (77, UnsupportedVersion.code, len(ROUTES))
        assert size == len(frame) - 4 == 4 + 2 + 4 + 6 * count
        del client.data_received
        assert (await client.ask(named(), 3)).error_code == 0

    run_scenario(scenario)


def _rest(body: bytes) -> bytes:
    return request_prefix(18, 3, 77, "new", len(body))[8:] + body


@pytest.mark.parametrize("software", ["", "-a", "a-", ".x", "a b", "ä", "a" * 10 + "\n", "a_b"])
def test_clients_have_to_name_themselves_decently_from_version_three_on(software: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for request in (named(name=software), named(version=software)):
            assert (await client.ask(request, 3)).error_code == InvalidRequest.code
        assert (await client.ask(named(name=software), 2)).error_code == 0

    run_scenario(scenario)


def test_the_name_is_remembered() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await client.ask(named("librdkafka", "2.3.0-rc.1"), 3)
        assert harness.node is not None
        (connection,) = harness.node.listeners[0].connections.values()
        assert connection.client_software == ("librdkafka", "2.3.0-rc.1")

    run_scenario(scenario)
