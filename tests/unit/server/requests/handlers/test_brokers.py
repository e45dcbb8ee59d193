"""BrokerRegistration, BrokerHeartbeat, UnregisterBroker."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    BrokerIdNotRegistered,
    ClusterAuthorizationFailed,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    StaleBrokerEpoch,
)
from millbeck.server.requests.handlers.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
)
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest, UnregisterBrokerRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of, registering


@pytest.mark.parametrize("version", range(2, 5))
def test_every_version_registers_a_broker_and_heartbeats_unfence_it(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        registered = await ask(harness, handle_broker_registration, registering(harness, rack="r"), version)
        assert registered.error_code == 0
        registration = broker.quorum.image.cluster.brokers[2]
        assert (registration.epoch, registration.is_fenced, registration.rack) == (registered.broker_epoch, True, "r")
        assert registration.endpoints[0].host == "n2"
        epoch = registered.broker_epoch
        for beat_version in range(3):
            beat = BrokerHeartbeatRequest(2, epoch, epoch - 1)
            answer = await ask(harness, handle_broker_heartbeat, beat, beat_version)
            assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, False, True)
        answer = await ask(harness, handle_broker_heartbeat, BrokerHeartbeatRequest(2, epoch, epoch))
        assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (True, False, False)
        assert broker.quorum.image.cluster.is_active(2)
        stale = await ask(harness, handle_broker_heartbeat, BrokerHeartbeatRequest(2, epoch - 1, epoch))
        assert stale.error_code == StaleBrokerEpoch.code

    run_scenario(scenario)


def test_who_may_not_register_is_told_why() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        elsewhere = registering(harness, cluster_id="another cluster-------")
        assert (await ask(harness, handle_broker_registration, elsewhere)).error_code == InconsistentClusterId.code
        migrating = registering(harness, is_migrating_zk_broker=True)
        assert (await ask(harness, handle_broker_registration, migrating)).error_code == BrokerIdNotRegistered.code
        twin = registering(harness, 1)
        answer = await ask(harness, handle_broker_registration, twin)
        assert (answer.error_code, answer.broker_epoch) == (DuplicateBrokerRegistration.code, -1)

    run_scenario(scenario)


def test_an_administrator_sends_a_broker_away() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await ask(harness, handle_broker_registration, registering(harness))
        gone = await ask(harness, handle_unregister_broker, UnregisterBrokerRequest(2))
        assert (gone.error_code, gone.error_message) == (0, None)
        assert 2 not in broker_of(harness).quorum.image.cluster.brokers
        again = await ask(harness, handle_unregister_broker, UnregisterBrokerRequest(2))
        assert again.error_code == BrokerIdNotRegistered.code

    run_scenario(scenario)


def test_all_need_permission() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        requests = [
            (handle_broker_registration, registering(harness)),
            (handle_broker_heartbeat, BrokerHeartbeatRequest(1, 0, 0)),
            (handle_unregister_broker, UnregisterBrokerRequest(1)),
        ]
        deny(harness)
        for route, request in requests:
            assert (await ask(harness, route, request)).error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
